package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
)

func TestFrames(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("c", "")
	p := h.attach(token)
	follower := startProcess(t, h.env(), pontoonBinary, "frames", "c", "--follow")
	p.ask("one", "hello", "echo: hello")
	p.send(frame{"type": "nonsense", "token": "canary-one", "input": map[string]any{"x": "canary-two"}, "data": strings.Repeat("canary", 100)})
	p.next("error")
	// A frame is kept when its write is over, and its answer may come before that.
	eventually(t, "the refusal is kept", func() bool { return strings.Count(h.cli("frames", "c"), "\n") >= 4 })
	if err := p.conn.WriteMessage(websocket.TextMessage, []byte("{\"half\x1b[31m")); err != nil {
		t.Fatal(err)
	}
	p.next("error")
	type shown struct {
		Seq                                  int64
		Direction, Type, Verdict, Code, Text string
		Size                                 int
		Frame                                json.RawMessage
	}
	var got struct {
		Recording bool
		Frames    []shown
		Next      string `json:"next_cursor"`
	}
	// What is written may be kept late, behind what was received meanwhile, and the
	// acknowledgement of register not at all.
	var in, out []string
	eventually(t, "the last answer is kept", func() bool {
		got.Frames = nil
		h.json(&got, "frames", "c")
		got.Frames = slices.DeleteFunc(got.Frames, func(f shown) bool { return f.Type == "register_ack" })
		in, out = nil, nil
		for _, f := range got.Frames {
			line := f.Type + " " + f.Verdict + " " + f.Code
			if f.Direction == "in" {
				in = append(in, line)
			} else {
				out = append(out, line)
			}
		}
		return len(in) >= 3 && len(out) >= 3
	})
	bad := slices.IndexFunc(got.Frames, func(f shown) bool { return f.Code == "bad_json" })
	if !slices.Equal(in, []string{"message accepted ", "nonsense refused unknown_type", " refused bad_json"}) ||
		!slices.Equal(out, []string{"send written ", "error written ", "error written "}) || !got.Recording || got.Frames[bad].Text != "{\"half\x1b[31m" || string(got.Frames[bad].Frame) != "null" {
		t.Errorf("received %q, written %q: %+v", in, out, got)
	}
	if raw := h.cli("frames", "c", "--json"); strings.Contains(raw, "canary") || strings.Contains(raw, token) {
		t.Errorf("secrets are shown: %s", raw)
	}
	h.must(&got, "GET", "/channels/c/frames?cursor="+got.Next, "")
	if len(got.Frames) != 0 {
		t.Errorf("behind the last: %+v", got)
	}
	eventually(t, "the follower sees frames", func() bool {
		out := follower.out.String()
		return strings.Contains(out, `"text":"hello"`) && strings.Contains(out, "refused/bad_json") && !strings.Contains(out, "\x1b")
	})
	if err := p.conn.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end is a frame", func() bool { return strings.Contains(h.cli("frames", "c", "--limit", "1"), "closed") })
	h.must(nil, "DELETE", "/channels/c", "")
	if status, _ := h.request("GET", "/channels/c/frames", ""); status != 404 {
		t.Errorf("of a deleted channel: %d", status)
	}
}

func TestNoFrames(t *testing.T) {
	t.Parallel()
	h := startHost(t, "--no-frames")
	h.attach(h.channel("c", "")).ask("one", "hello", "echo: hello")
	var got struct {
		Recording bool
		Frames    []any
	}
	h.json(&got, "frames", "c")
	if got.Recording || len(got.Frames) != 0 {
		t.Errorf("frames %+v", got)
	}
	holds(t, h.cli("frames", "c"), "--no-frames")
}

// An acknowledgement of what is not in flight is ignored, and that shows: as the
// frame's verdict, in a metric, and once a minute in the log.
func TestFramesIgnored(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	a := h.dial("?token="+h.channel("c", ""), nil)
	a.send(frame{"type": "register", "platform": "test", "capabilities": []string{"ack", "text"}, "protocol": "1.1"})
	a.next("register_ack")
	a.send(frame{"type": "message", "conversation_id": "one", "user_id": "u", "text": "hello"})
	answer := a.next("send")["message_id"].(string)
	for _, id := range []string{"mine-1", answer, answer, "mine-2"} {
		a.send(frame{"type": "message_ack", "message_id": id, "ok": true})
	}
	for _, id := range []string{"mine-1", answer, "mine-2"} {
		if e := a.next("error"); e["code"] != "unknown_message" || e["ref"] != id || !strings.Contains(e["message"].(string), strconv.Quote(id)) {
			t.Errorf("the adapter is told %v of %s", e, id)
		}
	}
	a.send(frame{"type": "ping"})
	a.next("pong")
	var got struct {
		Frames []struct{ Type, Verdict string }
	}
	h.json(&got, "frames", "c")
	var verdicts []string
	for _, f := range got.Frames {
		if f.Type == "message_ack" {
			verdicts = append(verdicts, f.Verdict)
		}
	}
	if want := []string{"ignored", "accepted", "ignored", "ignored"}; !slices.Equal(verdicts, want) {
		t.Errorf("verdicts %q, expected %q", verdicts, want)
	}
	if _, page := fetch(t, h.url+"/metrics", h.key); !strings.Contains(page, `pontoon_ignored_acknowledgements_total{channel="c"} 3`) {
		t.Errorf("metrics %s", page)
	}
	if log := h.errs.String(); strings.Count(log, "acknowledgement ignored") != 1 || !strings.Contains(log, "message_id=mine-1") {
		t.Errorf("log %s", log)
	}
}

// The frames of an agent that dials in are kept like those of an adapter, without its key.
func TestAgentFrames(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	var made struct{ Key string }
	h.json(&made, "agent", "create", "helper", "--kind", "websocket")
	conn, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.url, "http")+agentwire.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	defer func() { _ = conn.Close() }()
	for _, c := range []struct{ say, want string }{
		{`{"type":"hello","key":"` + made.Key + `"}`, `"hello_ack"`}, {`{"type":"message","text":"a"}`, `"missing_field"`},
	} {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(c.say)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.ReadMessage(); err != nil || !strings.Contains(string(got), c.want) {
			t.Fatalf("read %s, %v, want %s", got, err, c.want)
		}
	}
	var out string
	eventually(t, "the answers are kept", func() bool {
		out = h.cli("frames", "helper", "--agent")
		return strings.Count(out, "\n") == 4
	})
	holds(t, out, "→ accepted", `"type":"hello"`, "← written", `"type":"hello_ack"`, "→ refused/missing_field", `"type":"error"`)
	if strings.Contains(out, made.Key) {
		t.Errorf("the key is shown: %s", out)
	}
	if r := runCommand(t, h.env(), "", "frames", "echo", "--agent"); r.code == 0 || !strings.Contains(r.err, "of those of kind websocket") {
		t.Errorf("frames of echo: %+v", r)
	}
}
