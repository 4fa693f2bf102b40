package main

import (
	"encoding/json"
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
