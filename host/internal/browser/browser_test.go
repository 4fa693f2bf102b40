package browser

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func (p *Tab) heard() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.said) > 0
}

// TestHears: what a page must not do is heard, or no test of one could fail.
func TestHears(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>x</title><main><p>words</p></main></html>`))
	}))
	defer srv.Close()
	p := Open(t, srv.URL)
	p.Shows("words")
	if said := p.Said(); len(said) > 0 {
		t.Errorf("heard %q of a quiet page", said)
	}
	for name, script := range map[string]string{
		"forbidden handler": `main.innerHTML = '<img src=x onerror=alert(1)>'`,
		"forbidden style":   `main.innerHTML = '<p style="color:red">x</p>'`,
		"exception":         `setTimeout(() => { throw new Error("loud") })`,
		"console":           `console.log("loud")`,
	} {
		p.JS(nil, "(main => { "+script+" })(document.querySelector('main'))")
		for deadline := time.Now().Add(within); !p.heard() && time.Now().Before(deadline); {
			time.Sleep(20 * time.Millisecond) // between two polls
		}
		if said := p.Said(); len(said) == 0 {
			t.Errorf("%s: heard nothing", name)
		} else if name == "console" && !strings.Contains(said[0], "loud") {
			t.Errorf("%s: heard %q", name, said)
		}
	}
}
