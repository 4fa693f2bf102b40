package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

// TestNobody: what nobody is logged in for is sent to the login page, unseen.
func TestNobody(t *testing.T) {
	h := New(Options{API: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler), Version: "test", Now: time.Now})
	for path, want := range map[string]string{
		Path: Path + "login", Path + "channels": Path + "login?next=%2Fconsole%2Fchannels", Path + "no?a=b": Path + "login?next=%2Fconsole%2Fno%3Fa%3Db",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("%s: got %d to %q, want %s", path, w.Code, w.Header().Get("Location"), want)
		}
	}
}

// TestProblemPage: what the API refuses is said on the page, with its status.
func TestProblemPage(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"status":503,"title":"Service Unavailable","detail":"the disk is <full>"}`))
	})
	h := New(Options{API: api, Log: slog.New(slog.DiscardHandler), Version: "test", Now: time.Now})
	r := httptest.NewRequest("GET", Path, nil)
	r = r.WithContext(auth.WithHolder(r.Context(), auth.Operator()))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the disk is &lt;full&gt;") {
		t.Errorf("got %d\n%s", w.Code, w.Body)
	}
	if got := w.Header().Get("Content-Security-Policy"); got != policy {
		t.Errorf("got policy %q", got)
	}
}

// TestLoginTooOften: who guessed too often is told how long to wait, by page and header.
func TestLoginTooOften(t *testing.T) {
	operate := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "240")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"status":429,"title":"Too Many Requests","detail":"too many"}`))
	})
	h := New(Options{
		API: operate, Log: slog.New(slog.DiscardHandler), Version: "test", Now: time.Now,
		Setup: func(context.Context, string, string) (bool, bool, error) { return true, false, nil },
	})
	for _, path := range []string{"login", "setup"} {
		r := httptest.NewRequest("POST", Path+path, strings.NewReader("name=ada&password=wrong&again=wrong"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "240" || !strings.Contains(w.Body.String(), "Try again in 4 min.") {
			t.Errorf("%s: %d, Retry-After %q\n%s", path, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
}

// After the login a browser goes on at a page of the console, whatever a link says.
func FuzzLocal(f *testing.F) {
	for _, next := range []string{"", "/console/", "/console/channels?a=b", "//evil.example", "/console//evil.example", "https://evil.example/console/", "/console/../x", "/console/%2e%2e//x", "/\\x"} {
		f.Add(next)
	}
	base, err := url.Parse("http://host.example/console/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, next string) {
		got := local(next)
		to, err := base.Parse(got)
		if err != nil || to.Host != "host.example" || to.Scheme != "http" || !strings.HasPrefix(to.Path, Path) {
			t.Errorf("%q leads to %q (%v, %v)", next, got, to, err)
		}
	})
}

// Pages get their files; nobody gets a list of them, or what is beside them.
func TestStatic(t *testing.T) {
	h := New(Options{API: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler), Version: "test", Now: time.Now})
	for name, want := range map[string]int{"app.css": 200, "htmx.min.js": 200, "": 404, "README.md": 404, "none.js": 404, ".": 404, "../static": 404} {
		r := httptest.NewRequest("GET", Path+"static/", nil)
		r.URL.Path += name
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want && (want != 404 || w.Code/100 != 3) {
			t.Errorf("%q: %d, expected %d", name, w.Code, want)
		}
	}
}
