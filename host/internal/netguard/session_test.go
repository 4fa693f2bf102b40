package netguard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

// doorman lets one secret in.
type doorman struct{ calls int }

const good = auth.SessionPrefix + "good"

func (d *doorman) AdmitSession(_ context.Context, secret string) (auth.Holder, error) {
	d.calls++
	switch secret {
	case good:
		return auth.Holder{Session: 7, Name: "me"}, nil
	case auth.SessionPrefix + "trouble":
		return auth.Holder{}, errors.New("disk is full")
	}
	return auth.Holder{}, auth.ErrInvalid
}

func TestSessions(t *testing.T) {
	const evil = "http://evil.example"
	for name, c := range map[string]struct {
		method, path string
		header       map[string]string
		cookie       string
		tls          bool
		status       int
		who          string
		cleared      bool
	}{
		"ok":               {"GET", "/console/", nil, "pontoon=" + good, false, 200, "me", false},
		"okAPI":            {"GET", "/api/v1/channels", nil, "pontoon=" + good, false, 200, "me", false},
		"okPost":           {"POST", "/api/v1/channels", map[string]string{"Sec-Fetch-Site": "same-origin"}, "pontoon=" + good, false, 200, "me", false},
		"okPostOldBrowser": {"POST", "/api/v1/channels", map[string]string{"Origin": "http://host.example"}, "pontoon=" + good, false, 200, "me", false},
		"okProxyScheme":    {"GET", "/api/v1/channels", map[string]string{"Authorization": "Basic eDp5"}, "pontoon=" + good, false, 200, "me", false},
		"tls":              {"GET", "/console/", nil, "__Host-pontoon=" + good, true, 200, "me", false},
		"errTLSPlainName":  {"GET", "/console/", nil, "pontoon=" + good, true, 200, "", false},
		"errPlainTLSName":  {"GET", "/console/", nil, "__Host-pontoon=" + good, false, 200, "", false},
		"nobody":           {"GET", "/console/", nil, "", false, 200, "", false},
		"errWrong":         {"GET", "/console/", nil, "pontoon=" + auth.SessionPrefix + "x", false, 200, "", true},
		"errOtherSecret":   {"GET", "/console/", nil, "pontoon=pnk_good", false, 200, "", false},
		"errStorage":       {"GET", "/console/", nil, "pontoon=" + auth.SessionPrefix + "trouble", false, 200, "", false},
		"key":              {"GET", "/api/v1/channels", map[string]string{"Authorization": "bearer x"}, "pontoon=" + good, false, 200, "", false},
		"keyCross":         {"POST", "/api/v1/channels", map[string]string{"Authorization": "Bearer x", "Origin": evil, "Sec-Fetch-Site": "cross-site"}, "", false, 200, "", false},
		"crossNoCookie":    {"POST", "/api/v1/channels", map[string]string{"Origin": evil, "Sec-Fetch-Site": "cross-site"}, "", false, 200, "", false},
		"errCross":         {"POST", "/api/v1/channels", map[string]string{"Origin": evil, "Sec-Fetch-Site": "cross-site"}, "pontoon=" + good, false, 403, "", false},
		"errOldCross":      {"DELETE", "/api/v1/channels/x", map[string]string{"Origin": evil}, "pontoon=" + good, false, 403, "", false},
		"errNullOrigin":    {"POST", "/api/v1/channels", map[string]string{"Origin": "null"}, "pontoon=" + good, false, 403, "", false},
		"errOtherPort":     {"POST", "/api/v1/channels", map[string]string{"Origin": "http://host.example:81", "Sec-Fetch-Site": "same-site"}, "pontoon=" + good, false, 403, "", false},
		"errLoginCross":    {"POST", "/console/login", map[string]string{"Origin": evil, "Sec-Fetch-Site": "cross-site"}, "", false, 403, "", false},
		"errBearerCross":   {"POST", "/console/logout", map[string]string{"Authorization": "Bearer x", "Origin": evil}, "pontoon=" + good, false, 403, "", false},
		"crossRead":        {"GET", "/api/v1/channels", map[string]string{"Sec-Fetch-Site": "same-site"}, "pontoon=" + good, false, 200, "", false},
		"typedIn":          {"GET", "/api/v1/channels", map[string]string{"Sec-Fetch-Site": "none"}, "pontoon=" + good, false, 200, "me", false},
		"elsewhere":        {"POST", "/bridle/chat", map[string]string{"Origin": evil, "Sec-Fetch-Site": "same-site"}, "pontoon=" + good, false, 200, "", false},
		"static":           {"GET", "/console/static/app.css", nil, "pontoon=" + good, false, 200, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			who := ""
			h := Sessions(&doorman{}, nil, slog.New(slog.DiscardHandler), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				holder, _ := auth.HolderOf(r.Context())
				who = holder.Name
			}))
			r := httptest.NewRequest(c.method, "http://host.example"+c.path, nil)
			if c.tls {
				r.TLS = &tls.ConnectionState{}
			}
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			if c.cookie != "" {
				r.Header.Set("Cookie", c.cookie)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.status || who != c.who {
				t.Errorf("got %d as %q, want %d as %q: %s", w.Code, who, c.status, c.who, w.Body)
			}
			if cleared := strings.Contains(w.Header().Get("Set-Cookie"), "Max-Age=0"); cleared != c.cleared {
				t.Errorf("Set-Cookie %q", w.Header().Get("Set-Cookie"))
			}
		})
	}
}

// visit asks for a page with a cookie.
func visit(h http.Handler, remote, secret string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/console/", nil)
	r.RemoteAddr = remote
	if secret != "" {
		r.AddCookie(&http.Cookie{Name: cookieName, Value: secret})
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Who guesses sessions is refused after some, whatever it shows then; nobody else is.
func TestSessionsGuessed(t *testing.T) {
	f, now := table()
	d := &doorman{}
	h := Sessions(d, f, slog.New(slog.DiscardHandler), http.NotFoundHandler())
	const from = "192.0.2.1:5"
	for i := range 30 {
		if w := visit(h, from, fmt.Sprint(auth.SessionPrefix, i)); w.Code != http.StatusNotFound || w.Header().Get("Set-Cookie") == "" {
			t.Fatalf("guess %d: %d, %q", i, w.Code, w.Header())
		}
	}
	looked := d.calls
	for _, secret := range []string{good, auth.SessionPrefix + "x", auth.SessionPrefix + "0"} {
		w := visit(h, from, secret)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "2" || !strings.Contains(w.Body.String(), TooManyFailures) || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %d, %q: %s", secret, w.Code, w.Header(), w.Body)
		}
	}
	if d.calls != looked {
		t.Error("it is looked at what a guesser shows")
	}
	if w := visit(h, from, ""); w.Code != http.StatusNotFound {
		t.Errorf("without a cookie: %d", w.Code)
	}
	if w := visit(h, "192.0.2.2:5", good); w.Code != http.StatusNotFound {
		t.Errorf("from another address: %d", w.Code)
	}
	if wait := f.Allow(from, Tokens); wait != 0 {
		t.Errorf("an adapter at the address waits %s", wait)
	}
	*now = now.Add(2 * time.Second)
	if w := visit(h, from, good); w.Code != http.StatusNotFound {
		t.Errorf("after the wait: %d", w.Code)
	}
}

// A browser whose session ended shows it with all that it has under way, and is told
// to forget it each time; a disk in trouble is nobody's guess.
func TestSessionsStale(t *testing.T) {
	f, _ := table()
	h := Sessions(&doorman{}, f, slog.New(slog.DiscardHandler), http.NotFoundHandler())
	const from = "192.0.2.1:5"
	for i := range 500 {
		for _, secret := range []string{"stale", "trouble"} {
			w := visit(h, from, auth.SessionPrefix+secret)
			if cleared := strings.Contains(w.Header().Get("Set-Cookie"), "Max-Age=0"); w.Code != http.StatusNotFound || cleared != (secret == "stale") {
				t.Fatalf("request %d, %s: %d, %q", i, secret, w.Code, w.Header())
			}
		}
	}
	if n, _ := guess(f, from, Cookies, 100); n != 29 {
		t.Errorf("%d guesses are left, expected that it counts once", n)
	}
}

func TestCookie(t *testing.T) {
	r := httptest.NewRequest("POST", "/console/login", nil)
	until := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	w := httptest.NewRecorder()
	SetSession(w, r, good, until)
	if got, want := w.Header().Get("Set-Cookie"), "pontoon="+good+"; Path=/; Expires=Tue, 01 Jan 2030 00:00:00 GMT; HttpOnly; SameSite=Strict"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.TLS = &tls.ConnectionState{}
	w = httptest.NewRecorder()
	SetSession(w, r, good, until)
	if got, want := w.Header().Get("Set-Cookie"), "__Host-pontoon="+good+"; Path=/; Expires=Tue, 01 Jan 2030 00:00:00 GMT; HttpOnly; Secure; SameSite=Strict"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
