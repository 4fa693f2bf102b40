package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// TestBidi: a name can't turn the direction of what is around it; a text can, for
// itself.
func TestBidi(t *testing.T) {
	const evil = "a\u202Egnp.exe"
	part := func(raw string) message.Part {
		var p message.Part
		if err := json.Unmarshal([]byte(raw), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	m := api.Message{Author: evil, Parts: []message.Part{
		part(`{"type":"file","fileName":"` + evil + `","caption":"` + evil + `","url":"https://example.org/x"}`), part(`{"type":"text","text":"` + evil + `"}`),
		part(`{"type":"markdown","markdown":"*` + evil + `* <https://example.org/` + evil + `>"}`),
	}}
	w := httptest.NewRecorder()
	(&console{}).part(w, httptest.NewRequest("GET", Path, http.NoBody), bubbleOf(bubble{Message: m, Channel: "red"}))
	page := w.Body.String()
	for _, want := range []string{
		`<strong class="author" dir="auto">a⟨U+202E⟩gnp.exe</strong>`, `target="_blank">a⟨U+202E⟩gnp.exe</a>`, `<span dir="auto">a⟨U+202E⟩gnp.exe</span>`,
		`<p class="said" dir="auto">a&#x202e;gnp.exe</p>`, `<em>a&#x202e;gnp.exe</em>`, `>https://example.org/a⟨U+202E⟩gnp.exe</a>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is not in\n%s", want, page)
		}
	}
	if strings.ContainsAny(page, bidi) {
		t.Errorf("a direction is turned in\n%s", page)
	}
}

// TestTyped: what was typed into a field comes back as it was.
func TestTyped(t *testing.T) {
	var b strings.Builder
	if err := overt(field(input{Name: "text", Rows: 3, Value: "\n <\u2067a\u2069> "})).Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), ">\n &lt;&#x2067;a&#x2069;&gt; </textarea>") {
		t.Errorf("found %s", b.String())
	}
}
