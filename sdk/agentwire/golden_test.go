package agentwire

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/protocol"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

var update = flag.Bool("update", false, "write the golden frames anew")

func p[T any](v T) *T { return &v }

const odd = "<b>&amp;</b> \"quoted\" back\\slash /path\nline\ttab\r\u0000\u001f\u007f zażółć 漢字 👩‍👩‍👧 \ufffd"

var fromAgent = map[string]*FromAgent{
	"hello":             {Type: TypeHello, Key: "pna_abc", Agent: "weather", Protocol: "1.0", Resume: "04hqk3m2p8001"},
	"hello_min":         {Type: TypeHello},
	"message":           {Type: TypeMessage, TurnID: "04hqk3m2p8001", MessageID: "a-1", Text: p("Sunny.")},
	"message_min":       {Type: TypeMessage, TurnID: "04hqk3m2p8001", Text: p("")},
	"message_odd":       {Type: TypeMessage, TurnID: "04hqk3m2p8001", Text: p(odd)},
	"message_more":      {Type: TypeMessage, TurnID: "04hqk3m2p8001", Text: p("One moment."), More: true},
	"message_parts":     {Type: TypeMessage, TurnID: "04hqk3m2p8001", Parts: json.RawMessage(`[{"type":"text","text":"Sunny."},{"type":"hologram","n":12345678901234567890}]`), Metadata: message.Meta{"stage": json.RawMessage(`"execution"`)}},
	"message_unasked":   {Type: TypeMessage, Channel: "irc-home", ConversationID: p("#ops"), MessageID: "a-2", Text: p("Rain is coming.")},
	"message_one":       {Type: TypeMessage, Channel: "irc-home", ConversationID: p(""), Text: p("Rain is coming.")},
	"message_reply":     {Type: TypeMessage, Channel: "irc-home", ConversationID: p("#ops"), ReplyTo: "04hqk3m2p8001", Text: p("As I said.")},
	"stream":            {Type: TypeStream, TurnID: "04hqk3m2p8001", Text: p("Sun")},
	"stream_end":        {Type: TypeStreamEnd, TurnID: "04hqk3m2p8001", MessageID: "a-3", Text: p("Sunny."), Parts: json.RawMessage(`[{"type":"text","text":"Sunny."}]`)},
	"typing":            {Type: TypeTyping, TurnID: "04hqk3m2p8001"},
	"typing_off":        {Type: TypeTyping, Channel: "irc-home", ConversationID: p("#ops"), On: p(false)},
	"card":              {Type: TypeCard, TurnID: "04hqk3m2p8001", Card: &wire.Card{Header: &wire.Header{Title: "Weather", Color: "blue"}, Elements: []wire.Element{{Type: wire.ElementMarkdown, Content: "**Sunny**"}, {Type: wire.ElementDivider}, {Type: wire.ElementActions, Buttons: [][]wire.Button{{{Text: "More", Value: "more", Style: "primary"}}}}}}},
	"buttons":           {Type: TypeButtons, TurnID: "04hqk3m2p8001", Text: p("Where?"), Buttons: [][]wire.Button{{{Text: "Here", Value: "here"}, {Text: "There", Value: "there"}}}},
	"update":            {Type: TypeUpdate, TurnID: "04hqk3m2p8001", Text: p("Cloudy."), Update: &Earlier{MessageID: "a-1"}},
	"update_handle":     {Type: TypeUpdate, Channel: "irc-home", ConversationID: p("#ops"), Text: p("Cloudy."), Update: &Earlier{PreviewHandle: "h1"}},
	"transfer":          {Type: TypeTransfer, Agent: "billing", TurnID: "04hqk3m2p8001", Text: p("I pass you on."), Reason: "an invoice"},
	"turn_end":          {Type: TypeTurnEnd, TurnID: "04hqk3m2p8001"},
	"turn_end_error":    {Type: TypeTurnEnd, TurnID: "04hqk3m2p8001", Error: "the forecast can't be reached"},
	"message_ack":       {Type: TypeMessageAck, TurnID: "04hqk3m2p8001"},
	"ping":              {Type: TypePing},
	"pong":              {Type: TypePong},
	"transfer_unspoken": {Type: TypeTransfer, Agent: "billing", TurnID: "04hqk3m2p8001"},
}

var fromHost = map[string]*FromHost{
	"hello_ack": {Type: TypeHelloAck, HelloAck: &HelloAck{OK: true, Protocol: "1.0", Agent: "weather",
		Limits: &wire.Limits{MaxFrameBytes: wire.MaxFrame, PingIntervalMS: 54_000, Window: Window}}},
	"hello_ack_resume": {Type: TypeHelloAck, HelloAck: &HelloAck{OK: true, Protocol: "1.0", Agent: "weather",
		Limits: &wire.Limits{MaxFrameBytes: wire.MaxFrame, PingIntervalMS: 54_000, Window: Window}, Resume: &Resumed{From: "04hqk3m2p8002", Gap: "turns ended meanwhile"}}},
	"hello_ack_failed": {Type: TypeHelloAck, HelloAck: &HelloAck{Error: RefusedInvalidKey}},
	"turn": {Type: TypeTurn, Turn: &Turn{
		TurnID: "04hqk3m2p8001", Channel: "irc-home", ConversationID: "#ops", UserID: "alice", UserName: "Alice", Message: question,
		Capabilities: []string{"text", "ack"}, HistoryCursor: "MTIzNDU",
	}},
	"turn_repeated": {Type: TypeTurn, Turn: &Turn{
		TurnID: "04hqk3m2p8001", Repeated: true, Channel: "irc-home", ConversationID: "", Message: question, Capabilities: []string{"text"}, HistoryCursor: "MTIzNDU",
	}},
	"cancel":             {Type: TypeCancel, Cancel: &Cancel{TurnID: "04hqk3m2p8001", Reason: CancelStopped}},
	"message_ack":        {Type: TypeMessageAck, Ack: &Ack{MessageID: "a-1", OK: true, ID: "04hqk3m2p8003"}},
	"message_ack_failed": {Type: TypeMessageAck, Ack: &Ack{MessageID: "a-1", Error: "storage_unavailable: send it again later", Retryable: true}},
	"error":              {Type: TypeError, Error: &wire.Error{Code: wire.CodeMissingField, Message: "text: absent, expected a string, or parts"}},
	"error_ref":          {Type: TypeError, Error: &wire.Error{Code: wire.CodeNotSupported, Message: "turn_id: …", Ref: "a-1"}},
	"ping":               {Type: TypePing},
	"pong":               {Type: TypePong},
}

var question = message.Envelope{
	ID: "04hqk3m2p8001", Role: message.RoleUser, Status: message.StatusCompleted, CreatedAt: "2026-11-21T10:00:00.000Z", SessionID: "0000000000001",
	TurnIndex: 3, Parts: message.Number([]message.Part{message.NewText("How is the weather? <b>&")}),
}

func TestGoldenFromAgent(t *testing.T) {
	checkNames(t, "to_host", fromAgent)
	for name, want := range fromAgent {
		frame := golden(t, "to_host", name, want.Append(nil))
		got, err := DecodeFromAgent(frame)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: decoded\n%+v, want\n%+v", name, got, want)
		}
		if again := got.Append(nil); !bytes.Equal(again, frame) {
			t.Errorf("%s: encoded again\n%s, want\n%s", name, again, frame)
		}
	}
}

func TestGoldenFromHost(t *testing.T) {
	checkNames(t, "to_agent", fromHost)
	for name, want := range fromHost {
		frame := golden(t, "to_agent", name, want.Append(nil))
		got, err := DecodeFromHost(frame)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: decoded\n%+v, want\n%+v", name, got, want)
		}
		if again := got.Append(nil); !bytes.Equal(again, frame) {
			t.Errorf("%s: encoded again\n%s, want\n%s", name, again, frame)
		}
	}
}

// frames is where the golden frames are, for programs in any language.
const frames = "../protocol/agent_frames"

// golden checks that the file holds the frame, or writes it, and returns it.
func golden(t *testing.T, dir, name string, frame []byte) []byte {
	t.Helper()
	path := filepath.Join(frames, dir, name+".json")
	if *update {
		if err := os.WriteFile(path, append(slices.Clone(frame), '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want = bytes.TrimSuffix(want, []byte("\n"))
	if !bytes.Equal(frame, want) {
		t.Errorf("%s: encoded\n%s, the file holds\n%s", name, frame, want)
	}
	return want
}

// checkNames finds files that no test reads.
func checkNames[T any](t *testing.T, dir string, tests map[string]T) {
	t.Helper()
	for _, path := range files(t, dir) {
		if _, ok := tests[strings.TrimSuffix(filepath.Base(path), ".json")]; !ok {
			t.Errorf("%s belongs to no test", path)
		}
	}
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(frames, dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestMalformed(t *testing.T) {
	all, err := protocol.MalformedFrames()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, m := range all {
		if m.Direction != protocol.AgentToHost {
			continue
		}
		tried++
		got, err := DecodeFromAgent([]byte(m.Frame))
		if err == nil {
			t.Errorf("%s: %s: taken as %+v", m.Name, m.Frame, got)
			continue
		}
		if string(err.Code) != m.Code || err.Ref != m.Ref || !strings.HasPrefix(err.Message, m.Field+":") {
			t.Errorf("%s: %s: refused with %+v, want %s of %s, ref %q", m.Name, m.Frame, err, m.Code, m.Field, m.Ref)
		}
	}
	if tried < 20 {
		t.Errorf("the table has %d malformed frames of an agent", tried)
	}
	for _, frame := range []string{`x`, `[]`, `{"type":"turn","turn_id":1}`, `{"type":"cancel","turn_id":[]}`} {
		if got, err := DecodeFromHost([]byte(frame)); err == nil {
			t.Errorf("%s: taken as %+v", frame, got)
		}
	}
}

func TestLenient(t *testing.T) {
	for frame, want := range map[string]*FromAgent{
		`{"type":"ping","turn_id":7,"x":{}}`:                                     {Type: TypePing},
		`{"type":"message","turn_id":"t","text":"a","text":"b","new":[1]}`:       {Type: TypeMessage, TurnID: "t", Text: p("b")},
		` {"text":"\ud800!","parts":[],"card":7,"turn_id":"t","type":"message"}`: {Type: TypeMessage, TurnID: "t", Text: p("\ufffd!")},
		`{"type":"message","turn_id":"t","text":"a","Text":1,"more":null}`:       {Type: TypeMessage, TurnID: "t", Text: p("a")},
		`{"type":"message_ack","turn_id":"t","ok":true}`:                         {Type: TypeMessageAck, TurnID: "t"},
		`{"type":"card","turn_id":"t","card":{"elements":[{"type":"note","Text":"a"}]}}`: {Type: TypeCard, TurnID: "t",
			Card: &wire.Card{Elements: []wire.Element{{Type: wire.ElementNote, Text: "a"}}}},
	} {
		if got, err := DecodeFromAgent([]byte(frame)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", frame, got, err)
		}
	}
	got, err := DecodeFromHost([]byte(`{"type":"hologram","turn_id":1}`))
	if err != nil || got.Type != "hologram" {
		t.Errorf("a type of a later host: %+v, %v", got, err)
	}
}

func TestLast(t *testing.T) {
	ends := []string{}
	for name, f := range fromAgent {
		if f.Last() {
			ends = append(ends, name)
		}
	}
	slices.Sort(ends)
	want := []string{"buttons", "card", "message", "message_min", "message_odd", "message_one", "message_parts", "message_reply", "message_unasked",
		"stream_end", "transfer", "transfer_unspoken", "turn_end", "turn_end_error"}
	if !slices.Equal(ends, want) {
		t.Errorf("these end a turn: %v, want %v", ends, want)
	}
}

func FuzzDecodeFromAgent(f *testing.F) {
	for _, path := range files(f, "to_host") {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if !utf8.Valid(frame) { // the connection has refused it
			return
		}
		got, werr := DecodeFromAgent(frame)
		if werr != nil {
			if werr.Code == "" || werr.Message == "" {
				t.Errorf("refused without a reason: %+v", werr)
			}
			return
		}
		again, werr := DecodeFromAgent(got.Append(nil))
		if werr != nil {
			t.Fatalf("%q was written as %q, which is refused: %v", frame, got.Append(nil), werr)
		}
		if !bytes.Equal(again.Append(nil), got.Append(nil)) {
			t.Errorf("%q becomes %q, then %q", frame, got.Append(nil), again.Append(nil))
		}
	})
}

// Also what is read without the library is read as it would.
func FuzzDecodeFromHost(f *testing.F) {
	for _, turn := range []string{
		`{"type":"turn","turn_id":"04h","channel":"c","conversation_id":"k","message":{"id":"04h","role":"user","turnIndex":1,` +
			`"parts":[{"type":"text","text":"Hello","id":"p1"}]},"capabilities":["text","ack"],"history_cursor":"x"}`,
		`{"type":"turn","turn_id":null,"Channel":"c","message":{"parts":null},"capabilities":null}`,
		`{"type":"turn","repeated":true,"message":{"parts":[],"turnIndex":-1,"turnIndex":7},"capabilities":[]}`,
	} {
		f.Add([]byte(turn))
	}
	for _, path := range files(f, "to_agent") {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if !utf8.Valid(frame) { // the connection has refused it
			return
		}
		got, err := DecodeFromHost(frame)
		if err != nil {
			return
		}
		var want Turn
		if err := json.Unmarshal(frame, &want); got.Turn != nil && (err != nil || !reflect.DeepEqual(*got.Turn, want)) {
			t.Errorf("%q: read %+v, the library reads %+v, %v", frame, *got.Turn, want, err)
		}
		again, err := DecodeFromHost(got.Append(nil))
		if err != nil || !bytes.Equal(again.Append(nil), got.Append(nil)) {
			t.Errorf("%q becomes %q: %v", frame, got.Append(nil), err)
		}
	})
}
