package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
)

// Parts are checked strictly on their way out, and the whole message comes back.
func TestParts(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	h.Make("c", `,"queue":true`)
	status, text := h.Ask("POST", "/channels/c/messages", `{"conversation_id":"r","parts":[{"type":"text","text":"a"},{"type":"tool-call","toolCallId":"1","toolName":"t","input":{},"status":"asleep"}]}`)
	if status != 422 || !strings.Contains(text, `body.parts[1].status`) || !strings.Contains(text, `expected one of requested, `) {
		t.Errorf("a status that does not exist: %d %s", status, text)
	}
	status, text = h.Ask("POST", "/channels/c/messages", `{"conversation_id":"r"}`)
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
	h.Must(&sent, "POST", "/channels/c/messages", `{"conversation_id":"r","text":"given","parts":`+string(raw)+`}`)
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
	h.Must(&list, "GET", "/channels/c/messages", "")
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
		resp, err := http.Get(h.URL() + "/api/v1/schema/" + name) // without a key
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
