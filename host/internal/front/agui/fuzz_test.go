package agui_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/host/internal/front/agui"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Whatever a client sends is refused with a place, or is a message with names
// that can be kept.
func FuzzRunInput(f *testing.F) {
	for _, content := range []any{"hi", []any{map[string]any{"type": "text", "text": "x"}, map[string]any{"type": "binary", "mimeType": "image/png", "data": "aGk="}},
		[]any{map[string]any{"type": "image", "source": map[string]any{"type": "url", "value": "https://a.b/c", "mimeType": "image/png"}}},
		[]any{map[string]any{"type": "ui_submit", "uiId": "f", "values": map[string]any{"a": true}}}, []any{map[string]any{"type": "binary", "id": "x", "filename": "y"}}, nil, 7} {
		f.Add([]byte(input("t", "r", "m", content)))
	}
	for _, raw := range []string{`{}`, `[]`, `null`, ``, `{"threadId":"t","runId":"r","messages":[]}`, `{"threadId":"t\u0000","runId":"r","messages":[{"role":"user","id":"m","content":"x"}]}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		thread, run, id, m, err := agui.Decoded(body)
		if err != nil {
			var bad *agui.Bad
			var large *wire.Error
			if errors.As(err, &large) && large.Code == wire.CodeTooLarge {
				return
			}
			if !errors.As(err, &bad) || !strings.HasPrefix(bad.At, "body") || bad.Message == "" {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		for _, name := range []string{thread, run, id} {
			if name == "" || len(name) > 512 || strings.ContainsFunc(name, unicode.IsControl) {
				t.Errorf("took the name %q", name)
			}
		}
		if m.Role != message.RoleUser || m.Meta.String(message.MetaRunID) != run && utf8.ValidString(run) {
			t.Errorf("took %+v", m)
		}
		if b, err := json.Marshal(m.Parts); err != nil || !json.Valid(b) {
			t.Errorf("parts are %q, %v", b, err)
		}
		for _, name := range []string{message.MetaAttachments, message.MetaAction, message.MetaNotice, message.MetaLinks} {
			if _, ok := m.Meta[name]; ok {
				t.Errorf("a client set %s", name)
			}
		}
	})
}

// Whatever an agent says is a valid run.
func FuzzSpoken(f *testing.F) {
	all, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "sdk", "message", "testdata", "parts.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a", "ab", all)
	f.Add("b", "a", []byte(`[{"type":"text","text":""}]`))
	f.Add("", "", []byte(`[{"type":"tool-call","toolCallId":"c","toolName":"","input":""},{"type":"tool-result","toolCallId":"c","toolName":"x","output":null,"error":"no"}]`))
	f.Add("", "x", []byte(`[{"type":"markdown","markdown":"x"},{"type":"text-delta","delta":"y"}]`))
	f.Add("", "", []byte(``))
	f.Fuzz(func(t *testing.T, first, then string, raw []byte) {
		parts, err := message.ParseParts(raw)
		if err != nil {
			return // no list of parts
		}
		m := message.New(parts...)
		m.ID = "m"
		var streamed []string
		if first != "" {
			streamed = []string{first, then}
		}
		out, err := agui.Spoken(streamed, &m)
		if err != nil {
			t.Fatal(err)
		}
		got := events(t, out)
		if said := texts(got); len(said) > 0 && utf8.ValidString(m.Text) && len(parts) == 0 && said[len(said)-1] != m.Text {
			t.Errorf("said %q of %q", said, m.Text)
		}
	})
}
