package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a message becomes is shown without sending it, by REST and, without a
// host, by command.
func TestRender(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	const chips = `{"parts":[{"type":"text","text":"Raft?"},{"type":"suggestion-chips","chips":[{"label":"Yes","value":"y"},{"label":"No"}]},{"type":"tool-call","toolCallId":"1","toolName":"t","input":{},"status":"completed"}]`
	type note struct{ From, To, Reason string }
	var shown struct {
		Text     string
		Frames   []struct{ Type, Text string }
		Degraded []note
	}
	h.must(&shown, "POST", "/render", chips+`,"capabilities":["buttons"]}`)
	if len(shown.Frames) != 1 || shown.Frames[0].Type != "send_buttons" || shown.Frames[0].Text != "Raft?" || len(shown.Degraded) != 2 || shown.Text != "Raft?\n1. Yes\n2. No" {
		t.Errorf("with buttons: %+v", shown)
	}
	if want := (note{"tool-call", "none", "not for end users"}); shown.Degraded[1] != want {
		t.Errorf("degraded %+v, expected %+v", shown.Degraded[1], want)
	}
	var list struct{ Messages []json.RawMessage }
	h.channel("c", "")
	h.must(&list, "GET", "/channels/c/messages", "")
	if len(list.Messages) != 0 {
		t.Errorf("something was sent: %s", list.Messages)
	}

	file := filepath.Join(t.TempDir(), "message.json")
	writeFile(t, file, chips+"}")
	none := []string{"PONTOON_URL=http://127.0.0.1:1"}
	if r := runCommand(t, none, "", "render", file); r.code != 0 || !strings.Contains(r.out, `"text":"Raft?\n1. Yes\n2. No"`) || !strings.Contains(r.out, "tool-call → none") {
		t.Errorf("render FILE: %+v", r)
	}
	if r := runCommand(t, none, `[{"type":"markdown","markdown":"**hi**"}]`, "render", "--markdown", "basic", "--json", "-"); r.code != 0 || !json.Valid([]byte(r.out)) || !strings.Contains(r.out, `**hi**`) {
		t.Errorf("render -: %+v", r)
	}
	for stdin, want := range map[string]string{
		"":                            "found nothing",
		"{":                           "unexpected end",
		"{}":                          "found no content",
		`[{"type":"text"}]`:           `parts[0] (text) text: found nothing, expected a string`,
		`{"text":"a","parts":[null]}`: "part: ",
	} {
		if r := runCommand(t, none, stdin, "render", "-"); r.code != 1 || !strings.Contains(r.err, want) {
			t.Errorf("render of %q: %+v, expected %q", stdin, r, want)
		}
	}
	if r := runCommand(t, none, "{}", "render", "--caps", "hologram", "-"); r.code != 2 || !strings.Contains(r.err, "hologram") {
		t.Errorf("unknown capability: %+v", r)
	}
}

// Parts are checked strictly on their way out, and the whole message comes back.
func TestParts(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.channel("c", `,"queue":true`)
	status, text := h.request("POST", "/channels/c/messages", `{"conversation_id":"r","parts":[{"type":"text","text":"a"},{"type":"tool-call","toolCallId":"1","toolName":"t","input":{},"status":"asleep"}]}`)
	if status != 422 || !strings.Contains(text, `body.parts[1].status`) || !strings.Contains(text, `expected one of requested, `) {
		t.Errorf("a status that does not exist: %d %s", status, text)
	}
	status, text = h.request("POST", "/channels/c/messages", `{"conversation_id":"r"}`)
	if status != 422 || !strings.Contains(text, "found no content") {
		t.Errorf("neither text nor parts: %d %s", status, text)
	}
	raw, err := os.ReadFile("../../../sdk/message/testdata/parts.json")
	if err != nil {
		t.Fatal(err)
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		t.Fatal(err)
	}
	var sent struct{ ID string }
	h.must(&sent, "POST", "/channels/c/messages", `{"conversation_id":"r","text":"given","parts":`+string(raw)+`}`)
	var list struct {
		Messages []struct {
			Parts    []json.RawMessage
			Metadata map[string]any
			Message  struct {
				Parts     []json.RawMessage
				SessionID string
				TurnIndex int
				Status    string
			}
		}
	}
	h.must(&list, "GET", "/channels/c/messages", "")
	m := list.Messages[0]
	if len(m.Message.Parts) != len(parts) || m.Message.Status != "completed" || m.Message.SessionID == "" || m.Metadata["text"] != "given" {
		t.Fatalf("%d parts came back of %d: %+v", len(m.Message.Parts), len(parts), m.Metadata)
	}
	for i, p := range parts {
		if kept := m.Message.Parts[i]; i < len(parts)-1 && compact(t, kept) != compact(t, p) { // the last one is given an id
			t.Errorf("came back as %s, sent %s", m.Message.Parts[i], p)
		}
	}

	for name, want := range map[string]int{"": 200, "message.json": 200, "part": 200, "frame-to-host": 200, "nothing": 404} {
		resp, err := http.Get(h.url + "/api/v1/schema/" + name) // without a key
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("schema %q: %d", name, resp.StatusCode)
		}
	}
}

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
