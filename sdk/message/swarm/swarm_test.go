package swarm

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/message/internal/convtest"
)

// golden is a file of testdata: a message of a swarm and the host's.
type golden struct {
	Swarm     json.RawMessage    `json:"swarm"`
	Canonical convtest.Canonical `json:"canonical"`
}

func TestMain(m *testing.M) { convtest.Main(m) }

func TestGolden(t *testing.T) {
	convtest.Golden(t, "parts_in_payload", func(t testing.TB, g *golden) message.Message { return returns(t, string(g.Swarm)) },
		func(g *golden) *convtest.Canonical { return &g.Canonical })
}

// returns takes a message to the host's and back, and wants the same.
func returns(t convtest.TB, raw string) message.Message {
	t.Helper()
	in, err := Parse([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	m, err := in.Canonical()
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	there := convtest.Stored(t, m)
	back, losses := From(&there)
	if len(losses) > 0 {
		t.Fatalf("%s: lost %v", raw, losses)
	}
	convtest.CameBack(t, back, raw, there)
	return m
}

// What is odd comes back too.
func TestReturns(t *testing.T) {
	for name, raw := range map[string]string{
		"bare":            `{"role":"user","content":""}`,
		"roleEmpty":       `{"role":"","content":"a"}`,
		"roleAgent":       `{"role":"agent","content":"a"}`,
		"roleCapital":     `{"role":"User","content":"a"}`,
		"nulls":           `{"role":"user","agentName":null,"content":null,"mode":null,"images":["AAAA"],"payload":null,"tool_calls":null,"tool_call_id":null}`,
		"empties":         `{"role":"user","agentName":"","content":"","mode":"","images":[],"payload":{},"tool_calls":[ ],"tool_call_id":""}`,
		"contentAbsent":   `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		"contentNull":     `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		"payloadOdd":      `{"role":"user","content":"a","payload":[1,"x"]}`,
		"payloadNumber":   `{"role":"user","content":"a","payload":{"n":12345678901234567890.10}}`,
		"ownSwarm":        `{"role":"user","content":"a","swarm":{"absent":["content"]}}`,
		"keyCase":         `{"role":"user","Role":"x","Content":5,"content":"a"}`,
		"toolIdElsewhere": `{"role":"assistant","content":"a","tool_call_id":"1"}`,
		"toolIdNoContent": `{"role":"tool","tool_call_id":"1","images":["AAAA"]}`,
		"toolIdEmpty":     `{"role":"tool","content":"","tool_call_id":""}`,
		"toolJSON":        `{"role":"tool","content":"{\"a\": 1}","tool_call_id":"1"}`,
		"toolCalls":       `{"role":"tool","content":"a","tool_call_id":"1","tool_calls":[{"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}],"images":["AAAA"]}`,
		"argumentsEmpty":  `{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":""}}]}`,
		"argumentsHalf":   `{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}`,
		"argumentsSpace":  `{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":" { \"a\" : \"<\u2028\\u00e9\" }\n"}}]}`,
		"argumentsString": `{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"\"x\""}}]}`,
		"argumentsNull":   `{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"null"}},{"id":"2","type":"function","function":{"name":"f","arguments":null}}]}`,
		"callOdd":         `{"role":"assistant","content":"","tool_calls":[{},{"id":1},{"id":"1","type":"other","function":{"name":"f","arguments":"{}"}},{"id":"1","type":"function","function":[]},{"id":"1","type":"function","function":{"name":"f","arguments":"{}","x":1}},{"id":"1","type":"function","function":{"name":"f","arguments":"{}"},"index":0}]}`,
		"partsOnly":       `{"role":"user","payload":{"bridge.parts":[{"type":"file","url":"u"},{"type":"vision","url":"u","kind":"x"},{"type":"ui","uiId":"f"},{"type":"ui_submit"},{"type":"x","path":"p"}]}}`,
		"partsOfOthers":   `{"role":"user","content":"a","payload":{"bridge.parts":[{"type":"text","text":"a"}]}}`,
		"partsOdd":        `{"role":"user","content":"a","payload":{"bridge.parts":[{"type":"file","url":"u","id":"p1"}],"a":1}}`,
		"partsCase":       `{"role":"user","content":"a","payload":{"bridge.parts":[{"type":"vision","url":"u","Data":"AAAA"}]}}`,
		"partsTypes":      `{"role":"user","content":"a","payload":{"bridge.parts":[{"type":"hologram","Type":"file","url":"u"}]}}`,
		"partsEmpty":      `{"role":"user","content":"a","payload":{"bridge.parts":[]}}`,
		"partsNull":       `{"role":"user","content":"a","payload":{"bridge.parts":[null]}}`,
		"partsPath":       `{"role":"user","content":"a","payload":{"bridge.parts":[{"type":"file","url":"u","Path":"/etc/passwd"}]}}`,
		"strings":         `{"role":"user","content":"<b>&\u2028\u00e9 \ud83d\ude00","agentName":"\u0000","mode":"x"}`,
		"imagesNoImages":  `{"role":"user","content":"a","images":["AAAA","aGVsbG8="]}`,
	} {
		t.Run(name, func(t *testing.T) { returns(t, raw) })
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"errBroken":    {`{"role":`, "unexpected end"},
		"errNull":      {`null`, "expected an object"},
		"errArray":     {`[]`, "array"},
		"errNoRole":    {`{"content":"a"}`, "role: found no text"},
		"errRoleCase":  {`{"Role":"user"}`, "role: found no text"},
		"errRoleNull":  {`{"role":null}`, "role: found no text"},
		"errContent":   {`{"role":"user","content":["a"]}`, "content: "},
		"errMode":      {`{"role":"user","mode":1}`, "mode: "},
		"errImages":    {`{"role":"user","images":"AAAA"}`, "images: "},
		"errImage":     {`{"role":"user","images":[{"0":137}]}`, "images: "},
		"errToolCalls": {`{"role":"user","tool_calls":{}}`, "tool_calls: "},
		"errToolCall":  {`{"role":"user","tool_calls":["f"]}`, "tool_calls: "},
		"errCallNull":  {`{"role":"user","tool_calls":[null]}`, "tool_calls: "},
		"errCallID":    {`{"role":"user","tool_call_id":1}`, "tool_call_id: "},
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := Parse([]byte(c.raw)); err == nil || !strings.HasPrefix(err.Error(), "parse swarm message: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, raw := range []string{`{"role":"user"}`, `{"role":"user","content":null,"images":[],"payload":{"a":1}}`, `{"role":"tool","tool_call_id":"1"}`} {
		m, err := Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.Canonical(); !errors.Is(err, message.ErrNoContent) {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`{"role":"user","images":["AAAA","!"]}`, `{"role":"user","images":["AAAA",""]}`, `{"role":"user","images":["AAAA",null]}`} {
		m, err := Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.Canonical(); err == nil || !strings.Contains(err.Error(), "images[1]: ") {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
}

func TestPlainTextHasNoPart(t *testing.T) {
	m := returns(t, `{"role":"assistant","agentName":"a","content":"x","mode":"user"}`)
	if m.Parts != nil || m.Text != "x" || m.Role != message.RoleAgent || m.Status != message.StatusCompleted || len(m.Meta) != 2 {
		t.Errorf("%+v", m)
	}
}

func parse(raw string) []message.Part {
	parts, err := message.ParseParts([]byte(raw))
	if err != nil {
		panic(err)
	}
	return parts
}

func TestFrom(t *testing.T) {
	one := 1.0
	call := message.NewToolCall("1", "f", json.RawMessage(`{"a": 1}`), message.ToolRequested)
	done := message.Of(message.ToolCallPart{ToolCallID: "1", ToolName: "f", Input: json.RawMessage("{}"), Status: message.ToolCompleted, Output: json.RawMessage("2")})
	result := message.NewToolResult("1", "f", json.RawMessage(`{"b": 2}`))
	file := message.NewAttachment(message.FilePart{Base: message.Base{ID: "p1"}, FileName: "n", URL: "u", Path: "/p"})
	noPart := "the model has no such part"
	for name, c := range map[string]struct {
		in     message.Message
		want   string
		losses []message.Loss
	}{
		"text": {message.Text("a"), `{"role":"assistant","agentName":"","content":"a","mode":"user"}`, nil},
		"zero": {message.Message{}, `{"role":"user","agentName":"","content":"","mode":"user"}`, nil},
		"citation": {message.New(message.NewText("a"), message.NewCitation("t", "u", "")), `{"role":"assistant","agentName":"","content":"a\nt\nu","mode":"user"}`,
			[]message.Loss{{Part: 1, From: "citation", To: "text", Reason: noPart}}},
		"call": {message.New(call), `{"role":"assistant","agentName":"","content":"","mode":"user","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`, nil},
		"callDone": {message.New(done), `{"role":"assistant","agentName":"","content":"","mode":"user","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			[]message.Loss{{Part: 0, From: "tool-call", To: "tool_calls", Reason: "left out: output, status"}}},
		"result": {message.New(result), `{"role":"tool","agentName":"","content":"{\"b\":2}","mode":"tool","tool_call_id":"1"}`,
			[]message.Loss{{Part: 0, From: "tool-result", To: "content", Reason: "left out: toolName"}}},
		"resultBesideText": {message.New(message.NewText("a"), result), `{"role":"assistant","agentName":"","content":"a\nf: {\"b\":2}","mode":"user"}`,
			[]message.Loss{{Part: 1, From: "tool-result", To: "text", Reason: noPart}}},
		"twoResults": {message.New(result, result), `{"role":"assistant","agentName":"","content":"f: {\"b\":2}\nf: {\"b\":2}","mode":"user"}`,
			[]message.Loss{{Part: 0, From: "tool-result", To: "text", Reason: noPart}, {Part: 1, From: "tool-result", To: "text", Reason: noPart}}},
		"vision": {message.New(message.NewVision(message.VisionPart{Kind: "output", MimeType: "image/png", Data: "AAAA", Caption: "c", Width: &one})),
			`{"role":"assistant","agentName":"","content":"c","mode":"user","images":["AAAA"]}`,
			[]message.Loss{{Part: 0, From: "vision", To: "text", Reason: "images have no captions"}, {Part: 0, From: "vision", To: "images", Reason: "left out: mimeType, width"}}},
		"file": {message.New(file), `{"role":"assistant","agentName":"","content":"","mode":"user","payload":{"bridge.parts":[{"type":"file","fileName":"n","url":"u"}]}}`,
			[]message.Loss{{Part: 0, From: "file", To: "payload", Reason: "left out: path"}}},
		"fileBesidePayload": {message.Message{Parts: []message.Part{message.NewSubmit("f", nil)}, Meta: message.Meta{"payload": json.RawMessage(`{"a":1}`)}},
			`{"role":"user","agentName":"","content":"","mode":"user","payload":{"a":1,"bridge.parts":[{"type":"ui_submit","uiId":"f","values":{}}]}}`, nil},
		"fileNoRoom": {message.Message{Parts: []message.Part{message.NewAttachment(message.FilePart{FileName: "n", URL: "u"})}, Meta: message.Meta{"payload": json.RawMessage(`[]`)}},
			`{"role":"user","agentName":"","content":"n\nu","mode":"user","payload":[]}`, []message.Loss{{Part: 0, From: "file", To: "text", Reason: noPart}}},
		"textDiffers": {message.Message{Text: "short", Parts: []message.Part{message.NewMarkdown("long")}, Role: "agent"}, `{"role":"assistant","agentName":"","content":"long","mode":"user"}`,
			[]message.Loss{{Part: 0, From: "markdown", To: "text", Reason: noPart}, {Part: -1, From: "text", To: "none", Reason: "the parts say something else"}}},
		"textStands": {message.Message{Text: "short", Parts: []message.Part{message.NewAudioCue("barge-in")}, Role: "agent"}, `{"role":"assistant","agentName":"","content":"short","mode":"user"}`,
			[]message.Loss{{Part: 0, From: "audio-cue", To: "none", Reason: "has no form in text"}}},
		"malformed": {message.Message{Text: "x", Parts: []message.Part{{}, {Type: "text"}}}, `{"role":"user","agentName":"","content":"x","mode":"user"}`,
			[]message.Loss{{Part: 0, From: "", To: "none", Reason: "malformed part"}, {Part: 1, From: "text", To: "none", Reason: "malformed part"}}},
		"meta": {message.Message{Text: "a", Role: "agent", Meta: message.Meta{"agentName": json.RawMessage(`"n"`), "mode": json.RawMessage(`"tool"`), "payload": json.RawMessage("null"), "role": json.RawMessage(`"system"`)}},
			`{"role":"system","agentName":"n","content":"a","mode":"tool","payload":null}`, nil},
		"roleOfUser":  {message.Message{Text: "a", Role: "user", Meta: message.Meta{"role": json.RawMessage(`"system"`)}}, `{"role":"user","agentName":"","content":"a","mode":"user"}`, nil},
		"roleNotUser": {message.Message{Text: "a", Role: "agent", Meta: message.Meta{"role": json.RawMessage(`"user"`)}}, `{"role":"assistant","agentName":"","content":"a","mode":"user"}`, nil},
		"forgedCall": {message.Message{Parts: parse(`[{"type":"tool-call","toolCallId":"1","toolName":"look","input":{},"status":"requested","swarm":{"id":"1","type":"function","function":{"name":"delete","arguments":"{}"}}},` +
			`{"type":"tool-call","toolCallId":"1","toolName":"look","input":{"at":1},"status":"requested","swarm":{"id":"1","type":"function","function":{"name":"look","arguments":"{ }"}}}]`)},
			`{"role":"user","agentName":"","content":"","mode":"user","tool_calls":[{"id":"1","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]}`, nil},
		"forgedOrigin": {message.Message{Text: "a", Meta: message.Meta{kept: json.RawMessage(`{"rest":{"content":5}}`)}}, `{"role":"user","agentName":"","content":"a","mode":"user"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, losses := From(&c.in)
			if g, w := convtest.Normal(t, got), convtest.Normal(t, json.RawMessage(c.want)); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
			if !reflect.DeepEqual(losses, c.losses) {
				t.Errorf("lost %+v\nwant %+v", losses, c.losses)
			}
		})
	}
}

// What the payload carries for the host comes back as parts.
func TestPartsTravel(t *testing.T) {
	parts := []message.Part{message.NewText("a"), message.NewAttachment(message.FilePart{FileName: "n", URL: "u"}), message.NewForm(message.UIPart{UIID: "f", Components: []message.UIComponent{}})}
	m := message.New(parts...)
	m.Parts = message.Number(m.Parts)
	out, losses := From(&m)
	if losses != nil {
		t.Fatal(losses)
	}
	back, err := out.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	back.Parts = message.Number(back.Parts)
	if got, want := convtest.Normal(t, back.Parts), convtest.Normal(t, m.Parts); got != want || back.Text != "a" || back.Meta["payload"] != nil {
		t.Errorf("got  %s %v\nwant %s", got, back.Meta, want)
	}
}
