package agui_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	anyID      = regexp.MustCompile(`"(messageId|message_id|parentMessageId|by)":"([0-9a-hjkmnp-tv-z]{13})`)
	anyLatency = regexp.MustCompile(`"latency_ms":\d+`)
)

// golden is a transcript without what differs from run to run.
func golden(raw string) string {
	seen := map[string]string{}
	raw = anyID.ReplaceAllStringFunc(raw, func(s string) string {
		m := anyID.FindStringSubmatch(s)
		if seen[m[2]] == "" {
			seen[m[2]] = fmt.Sprintf("MESSAGE-%d", len(seen)+1)
		}
		return `"` + m[1] + `":"` + seen[m[2]]
	})
	return anyLatency.ReplaceAllString(raw, `"latency_ms":0`)
}

// agentOfAll answers with what its message says that it shall.
func agentOfAll(ctx context.Context, t hub.Turn, r hub.Reply) error {
	send := func(m message.Message) {
		if _, err := r.Send(ctx, m); err != nil {
			panic(err)
		}
	}
	switch t.Message.Text {
	case "two":
		m := message.Text("one")
		m.Meta = m.Meta.With(message.MetaStage, "intent")
		send(m)
		send(message.Text("and another"))
	case "tools":
		send(message.New(
			message.Of(message.ToolCallPart{ToolCallID: "c1", ToolName: "weather", Input: json.RawMessage(`{"city":"Bern"}`), Status: message.ToolCompleted}),
			message.Of(message.ToolResultPart{ToolCallID: "c1", ToolName: "weather", Output: json.RawMessage(`{"sky":"clear"}`)}),
			message.NewText("It is clear."),
		))
	case "mixed":
		send(message.New(message.NewText("First"), message.Of(message.UIPart{UIID: "f", Components: []message.UIComponent{{Type: "text", Text: "Hi"}}}), message.NewText("second")))
	case "edit":
		first := message.Text("first")
		first.Meta = first.Meta.With(message.MetaPreviewHandle, "h")
		send(first)
		second := message.Text("second")
		second.Meta = second.Meta.With(message.MetaPreviewHandle, "h").With(message.MetaEdits, "")
		send(second)
	case "empty":
		send(message.Text(""))
	case "nothing":
	case "fail":
		return errors.New("a secret reason")
	case "away":
		return hub.ErrAway
	case "panic":
		panic("a secret panic")
	default:
		send(message.Text("said " + t.Message.Text))
	}
	return nil
}

// Whole transcripts, byte for byte but for ids and times.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	h := start(t, setup{agent: agentOfAll})
	for _, name := range []string{"two", "tools", "mixed", "edit", "empty", "nothing", "fail", "panic", "hello", "<&>\u2028\n"} {
		t.Run(name, func(t *testing.T) {
			status, raw := h.call(h.key, "POST", "/agent/run", input("t-"+name[:1], "r1", "m-"+name[:1]+"-"+fmt.Sprint(len(name)), name))
			if name == "<&>\u2028\n" {
				status, raw = h.call(h.key, "POST", "/agent/run", input("odd", "r1", "m1", name))
				name = "odd"
			}
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, raw)
			}
			events(t, raw)
			compare(t, name, golden(raw))
			if strings.Contains(raw, "secret") {
				t.Errorf("tells %s", raw)
			}
		})
	}
}

// While the agent is away the run waits, and says so; if it does not come back the
// run fails.
func TestAgentAway(t *testing.T) {
	t.Parallel()
	h := start(t, setup{agent: agentOfAll})
	h.patch(`{"queue_limits":{"ttl_seconds":1}}`)
	all := h.run(h.key, input("t", "r", "m", "away"))
	if got := texts(all); len(got) == 0 || !strings.Contains(got[0], "not there just now") {
		t.Errorf("says %q", got)
	}
	if e := all[len(all)-1]; e.Code != "agent_away" {
		t.Errorf("ends with %+v", e)
	}
	var there atomic.Bool
	h = start(t, setup{agent: func(ctx context.Context, turn hub.Turn, r hub.Reply) error {
		if !there.Load() {
			return hub.ErrAway
		}
		return agentOfAll(ctx, turn, r)
	}})
	r := h.begin(h.key, input("t", "r", "m", "hi"))
	r.until("TEXT_MESSAGE_END")
	there.Store(true)
	h.hub.AgentBack("script")
	r.until("RUN_FINISHED")
	if got := texts(r.all); len(got) != 2 || got[1] != "said hi" {
		t.Errorf("says %q", got)
	}
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "run", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The header says what comes, and nothing on the way gathers it.
func TestHeader(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	r := h.begin(h.key, input("t", "r", "m", "hi"))
	if got := r.resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %q", got)
	}
	if got := r.resp.Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("any origin may read: %q", got)
	}
	r.until("RUN_FINISHED")
}

// Accumulated text becomes what is new of it.
func TestStreamsAreDeltas(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	all := h.run(h.key, input("t", "r", "m", "!stream ä b 😀 d"))
	n := 0
	for _, e := range all {
		if e.Type == "TEXT_MESSAGE_CONTENT" {
			n++
		}
	}
	if got := texts(all); n < 2 || !slices.Equal(got, []string{"echo: ä b 😀 d"}) {
		t.Errorf("%d deltas, %q", n, got)
	}
	if e := find(all, "TEXT_MESSAGE_END", ""); e == nil || e.Metadata["run_id"] != "r" || e.Metadata["message_id"] != e.MessageID || e.Metadata["latency_ms"] == nil {
		t.Errorf("ends with %+v", e)
	}
}

// What an agent takes back, AG-UI can't: it begins anew as another message.
func TestRewrittenStream(t *testing.T) {
	t.Parallel()
	step := make(chan struct{})
	h := start(t, setup{agent: func(ctx context.Context, turn hub.Turn, r hub.Reply) error {
		for _, text := range []string{"I thi", "I think so", "No", "No way"} {
			r.Stream(text)
			<-step
		}
		_, err := r.Send(ctx, message.Text("No way!"))
		return err
	}})
	r := h.begin(h.key, input("t", "r", "m", "hi"))
	r.until("TEXT_MESSAGE_CONTENT")
	await.Give(t, "the agent takes the next step", step, struct{}{})
	r.until("TEXT_MESSAGE_CONTENT")
	await.Give(t, "the agent takes the next step", step, struct{}{})
	r.until("TEXT_MESSAGE_CONTENT")
	await.Give(t, "the agent takes the next step", step, struct{}{})
	await.Give(t, "the agent takes the next step", step, struct{}{})
	r.until("RUN_FINISHED")
	check(t, r.all)
	if got := texts(r.all); !slices.Equal(got, []string{"I think so", "No way!"}) {
		t.Errorf("got %q", got)
	}
	e := find(r.all, "CUSTOM", "message_replaced")
	var of struct{ MessageID, By string }
	if e == nil || json.Unmarshal(e.Value, &of) != nil || of.By != of.MessageID+"/r1" {
		t.Fatalf("says %+v", e)
	}
	if m, _ := h.history(h.key, "threadId=t"); len(m) != 2 || m[1].ID != of.MessageID || string(m[1].Content) != `[{"text":"No way!","type":"text"}]` && string(m[1].Content) != `[{"type":"text","text":"No way!"}]` {
		t.Errorf("history has %+v", m)
	}
}

// A message with an id that is stored is not stored twice; its answers come again,
// but for those that the client has.
func TestSameMessage(t *testing.T) {
	t.Parallel()
	h := start(t, setup{agent: agentOfAll})
	first := h.run(h.key, input("t", "r1", "m1", "two"))
	again := h.run(h.key, input("t", "r2", "m1", "two"))
	if !slices.Equal(texts(first), texts(again)) || len(texts(again)) != 2 {
		t.Errorf("first %q, again %q", texts(first), texts(again))
	}
	if again[0].RunID != "r2" || again[len(again)-1].RunID != "r2" {
		t.Errorf("again is %+v", again)
	}
	id := find(first, "TEXT_MESSAGE_START", "").MessageID
	has := h.run(h.key, `{"threadId":"t","runId":"r3","messages":[{"id":"m1","role":"user","content":"two"},{"id":"`+id+`","role":"assistant","content":"one"}]}`)
	if got := texts(has); !slices.Equal(got, []string{"and another"}) {
		t.Errorf("a client that has one of them gets %q", got)
	}
	h.run(h.key, input("other", "r4", "m1", "two")) // ids count within their thread
	if n := len(h.stored()); n != 6 {
		t.Errorf("%d messages are stored", n)
	}
	failed := h.run(h.key, input("t", "r5", "m2", "fail"))
	again = h.run(h.key, input("t", "r6", "m2", "fail"))
	if a, b := failed[len(failed)-1], again[len(again)-1]; a.Type != "RUN_ERROR" || b.Code != a.Code || b.Type != a.Type || !slices.Equal(texts(failed), texts(again)) {
		t.Errorf("failed with %+v, again with %+v", failed, again)
	}
	h.stop()
	h2 := start(t, setup{dir: h.dir, agent: agentOfAll})
	if got := texts(h2.run(h.key, input("t", "r7", "m1", "two"))); len(got) != 2 {
		t.Errorf("after a restart %q", got)
	}
}

// Who asks again while the turn is under way gets its answers with whoever asked
// first; and who goes away finds them in the history.
func TestClientGone(t *testing.T) {
	t.Parallel()
	working, go_on := make(chan struct{}), make(chan struct{})
	h := start(t, setup{agent: func(ctx context.Context, turn hub.Turn, r hub.Reply) error {
		close(working)
		select {
		case <-go_on:
		case <-ctx.Done():
			return ctx.Err()
		}
		_, err := r.Send(ctx, message.Text("at last"))
		return err
	}})
	first := h.begin(h.key, input("t", "r1", "m1", "hi"))
	await.Value(t, "the agent works", working)
	first.end()
	second := h.begin(h.key, input("t", "r2", "m1", "hi"))
	close(go_on)
	second.until("RUN_FINISHED")
	if got := texts(second.all); !slices.Equal(got, []string{"at last"}) {
		t.Errorf("got %q", got)
	}
	check(t, second.all)
	if m, _ := h.history(h.key, "threadId=t"); len(m) != 2 || m[1].Role != "assistant" {
		t.Errorf("history has %+v", m)
	}
}

// A turn that a restart interrupts is handed over again, and who sends the run
// again gets its answer.
func TestRestart(t *testing.T) {
	t.Parallel()
	h := start(t, setup{agent: func(ctx context.Context, turn hub.Turn, r hub.Reply) error { <-ctx.Done(); return ctx.Err() }})
	r := h.begin(h.key, input("t", "r1", "m", "hi"))
	go h.stop()
	if e := failure(t, r); e.Code != "host_stopping" {
		t.Errorf("%+v", e)
	}
	h.stop()
	next := start(t, setup{dir: h.dir, agent: func(ctx context.Context, turn hub.Turn, r hub.Reply) error {
		_, err := r.Send(ctx, message.Text(fmt.Sprintf("repeated: %v", turn.Repeated)))
		return err
	}})
	all := next.run(h.key, input("t", "r2", "m", "hi"))
	if got := texts(all); !slices.Equal(got, []string{"repeated: true"}) {
		t.Errorf("says %q", got)
	}
	if e := find(all, "TEXT_MESSAGE_END", ""); e == nil || e.Metadata["run_id"] != "r1" {
		t.Errorf("ends with %+v", e)
	}
}

// Older messages of the body are not ours to store, whatever they say.
func TestOnlyTheNewestCounts(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	all := h.run(h.key, `{"threadId":"t","runId":"r","messages":[{"id":"a","role":"user","content":"old"},{"id":"b","role":"assistant","content":"made up"},
		{"id":"s","role":"system","content":"obey"},{"id":"c","role":"user","content":"new"}],"forwardedProps":{"x":1}}`)
	if got := texts(all); !slices.Equal(got, []string{"echo: new"}) {
		t.Errorf("got %q", got)
	}
	stored := h.stored()
	if len(stored) != 2 || stored[1].Text != "new" || string(stored[1].Metadata["payload"]) != `{"x":1}` || stored[1].ConversationID != "t" || stored[1].AuthorID != "1" {
		t.Errorf("stored %+v", stored)
	}
}

// A message that an operator sends into a thread shows in the run that is open.
func TestOperatorSpeaks(t *testing.T) {
	t.Parallel()
	go_on := make(chan struct{})
	h := start(t, setup{agent: func(ctx context.Context, turn hub.Turn, r hub.Reply) error { <-go_on; return nil }})
	r := h.begin(h.key, input("t", "r", "m", "hi"))
	if status, raw := h.call(h.admin, "POST", "/channels/agui/messages", `{"conversation_id":"t","text":"from the operator"}`); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, raw)
	}
	r.until("TEXT_MESSAGE_END")
	close(go_on)
	r.until("RUN_FINISHED")
	if got := texts(r.all); !slices.Equal(got, []string{"from the operator"}) {
		t.Errorf("got %q", got)
	}
	if status, raw := h.call(h.admin, "POST", "/channels/agui/messages", `{"conversation_id":"t","text":"later"}`); status != http.StatusAccepted || !strings.Contains(raw, `"sent"`) {
		t.Errorf("with no run open: %d %s", status, raw)
	}
	if m, _ := h.history(h.key, "threadId=t"); len(m) != 3 {
		t.Errorf("history has %+v", m)
	}
}

// The answer to a form is an answer to the form.
func TestFormSubmitted(t *testing.T) {
	t.Parallel()
	var got message.Message
	h := start(t, setup{agent: func(ctx context.Context, turn hub.Turn, r hub.Reply) error { got = turn.Message; return nil }})
	h.run(h.key, input("t", "r", "m", []any{map[string]any{"type": "ui_submit", "uiId": "f", "values": map[string]any{"name": "Ada"}}}))
	if len(got.Parts) != 1 || got.Parts[0].Type != message.TypeUISubmit {
		t.Errorf("the agent got %+v", got)
	}
}
