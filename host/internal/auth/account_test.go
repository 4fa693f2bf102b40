package auth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
)

const password = "correct horse battery"

// settable is a clock that a test sets while others read it.
type settable struct{ at atomic.Pointer[time.Time] }

func (c *settable) now() time.Time      { return *c.at.Load() }
func (c *settable) set(t time.Time)     { c.at.Store(&t) }
func (c *settable) add(d time.Duration) { c.set(c.now().Add(d)) }

// patient lets everybody try. The host's Limiter imports this package: TestLimiter
// is about both.
type patient struct{}

func (patient) Attempt(string) (func(bool), time.Duration) { return func(bool) {}, 0 }

// accountOf makes an account of an empty store, with a clock.
func accountOf(t *testing.T) (*Account, *Gate, *settable) {
	t.Helper()
	now := new(settable)
	now.set(time.Now().Truncate(time.Second))
	clock := now.now
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), blank.Dir(t, dir), sqlite.Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	g := NewGate(s, clock)
	a := NewAccount(AccountOptions{Store: s, Dir: dir, Limiter: patient{}, Failures: &g.Failures, Now: clock, URL: func(code string) string { return "http://host/setup?code=" + code }})
	a.Cheapen()
	return a, g, now
}

func codeOf(t *testing.T, url string, err error) string {
	t.Helper()
	_, code, ok := strings.Cut(url, "?code=")
	if err != nil || !ok {
		t.Fatalf("got %q, %v", url, err)
	}
	return code
}

func actions(t *testing.T, s *sqlite.Store) []string {
	t.Helper()
	all, err := s.Audit(context.Background(), ledger.AuditQuery{}, 0, 500)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range all {
		out = append([]string{c.Action}, out...)
		if strings.Contains(string(c.Detail)+c.Target+c.Actor, password) {
			t.Errorf("the audit log holds the password: %+v", c)
		}
	}
	return out
}

func TestSetUpOnce(t *testing.T) {
	a, g, _ := accountOf(t)
	ctx := WithOrigin(t.Context(), "192.0.2.7:1234", "Browser\x1b/1")
	file := filepath.Join(a.Dir, LinkFile)
	url, err := a.Begin(ctx)
	code := codeOf(t, url, err)
	if b, err := os.ReadFile(file); err != nil || string(b) != url+"\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	checkMode(t, file)
	for _, wrong := range []string{"", code[:len(code)-1], Generate(SetupPrefix)} {
		if _, err := a.SetUp(ctx, wrong, "me", password); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: got %v", wrong, err)
		}
	}
	var bad *FieldError
	for _, c := range []struct{ name, password, field string }{
		{"", password, "name"}, {" me", password, "name"}, {"a\nb", password, "name"}, {strings.Repeat("n", 65), password, "name"}, {"admin", password, "name"}, {"me", "short", "password"},
	} {
		if _, err := a.SetUp(ctx, code, c.name, c.password); !errors.As(err, &bad) || bad.Field != c.field {
			t.Errorf("%q: got %v, want something about %s", c.name, err, c.field)
		}
	}
	made, err := a.SetUp(ctx, code, "me", password)
	if err != nil || made.Remote != "192.0.2.7" || made.UserAgent != "Browser/1" {
		t.Fatalf("got %+v, %v", made.Session, err)
	}
	if h, err := g.AdmitSession(ctx, made.Secret); err != nil || h.Name != "me" || h.Session != made.ID || !h.May("") || h.Via() != "session:1" {
		t.Errorf("got %+v, %v", h, err)
	}
	if _, err := a.SetUp(ctx, code, "other", password); !errors.Is(err, ErrInvalid) {
		t.Errorf("the code opens twice: %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if url, err := a.Begin(ctx); err != nil || url != "" {
		t.Errorf("a second start makes a link: %q, %v", url, err)
	}
}

func TestLinkForForgotten(t *testing.T) {
	a, g, now := accountOf(t)
	ctx := t.Context()
	url, err := a.Begin(ctx)
	first, err := a.SetUp(ctx, codeOf(t, url, err), "me", password)
	if err != nil {
		t.Fatal(err)
	}
	url, _, err = a.NewLink(ctx)
	late := codeOf(t, url, err)
	now.add(LinkLife)
	if _, err := a.SetUp(ctx, late, "me", password); !errors.Is(err, ErrInvalid) {
		t.Errorf("a link opens after its time: %v", err)
	}
	url, _, err = a.NewLink(ctx)
	old := codeOf(t, url, err)
	url, _, err = a.NewLink(ctx)
	code := codeOf(t, url, err)
	if _, err := a.SetUp(ctx, old, "me", password); !errors.Is(err, ErrInvalid) {
		t.Errorf("an older link opens: %v", err)
	}
	second, err := a.SetUp(ctx, code, "you", password+"!")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.AdmitSession(ctx, first.Secret); !errors.Is(err, ErrInvalid) {
		t.Errorf("a session of before goes on: %v", err)
	}
	if h, err := g.AdmitSession(ctx, second.Secret); err != nil || h.Name != "you" {
		t.Errorf("got %+v, %v", h, err)
	}
	if _, err := a.LogIn(ctx, "me", password); !errors.Is(err, ErrInvalid) {
		t.Errorf("the old name and password open: %v", err)
	}
}

func TestLogIn(t *testing.T) {
	a, g, now := accountOf(t)
	ctx := WithOrigin(t.Context(), "192.0.2.7:1", "x")
	if _, err := a.LogIn(ctx, "", ""); !errors.Is(err, ErrInvalid) {
		t.Errorf("nobody was set up: %v", err)
	}
	url, err := a.Begin(ctx)
	if _, err := a.SetUp(ctx, codeOf(t, url, err), "me", password); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"me", "wrong"}, {"Me", password}, {"", password}} {
		if _, err := a.LogIn(ctx, c[0], c[1]); err != ErrInvalid { //nolint:errorlint // one and the same answer
			t.Errorf("%q: got %v", c, err)
		}
	}
	made, err := a.LogIn(ctx, "me", password)
	if err != nil {
		t.Fatal(err)
	}
	h, err := g.AdmitSession(ctx, made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	now.add(SessionIdle - time.Second)
	if _, err := g.AdmitSession(ctx, made.Secret); err != nil {
		t.Errorf("idle for less than its time: %v", err)
	}
	if err := g.flush(ctx); err != nil {
		t.Fatal(err)
	}
	now.add(SessionIdle - time.Second)
	if _, err := g.AdmitSession(ctx, made.Secret); err != nil {
		t.Errorf("its use did not count: %v", err)
	}
	if err := g.flush(ctx); err != nil {
		t.Fatal(err)
	}
	lease, end := g.Lease(ctx, h)
	defer end()
	g.EndLeases(ctx)
	if lease.Err() != nil {
		t.Error("the lease of a live session ended")
	}
	now.add(SessionIdle)
	if _, err := g.AdmitSession(ctx, made.Secret); !errors.Is(err, ErrInvalid) {
		t.Errorf("it outlives its idle time: %v", err)
	}
	if g.EndLeases(ctx); lease.Err() == nil {
		t.Error("the lease outlives the session")
	}
	if n := g.Failures.Count(Login); n != 5 {
		t.Errorf("%d failures counted, expected 4 logins and a session", n)
	}
}

func TestSessionEndsAfterItsLife(t *testing.T) {
	a, g, now := accountOf(t)
	url, err := a.Begin(t.Context())
	made, err := a.SetUp(t.Context(), codeOf(t, url, err), "me", password)
	if err != nil {
		t.Fatal(err)
	}
	for end := now.now().Add(SessionLife); now.now().Before(end); now.add(SessionIdle / 2) {
		if _, err := g.AdmitSession(t.Context(), made.Secret); err != nil {
			t.Fatalf("used all the time: %v", err)
		}
		if err := g.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.AdmitSession(t.Context(), made.Secret); !errors.Is(err, ErrInvalid) {
		t.Errorf("it never ends: %v", err)
	}
}

func TestSetPassword(t *testing.T) {
	a, g, _ := accountOf(t)
	ctx := t.Context()
	url, err := a.Begin(ctx)
	first, err := a.SetUp(ctx, codeOf(t, url, err), "me", password)
	if err != nil {
		t.Fatal(err)
	}
	second, err := a.LogIn(ctx, "me", password)
	if err != nil {
		t.Fatal(err)
	}
	h, err := g.AdmitSession(ctx, second.Secret)
	if err != nil {
		t.Fatal(err)
	}
	ctx = WithHolder(ctx, h)
	var bad *FieldError
	if err := a.SetPassword(ctx, h, "wrong", "new horse battery"); !errors.As(err, &bad) || bad.Field != "present" {
		t.Errorf("got %v", err)
	}
	if err := a.SetPassword(ctx, h, password, "short"); !errors.As(err, &bad) || bad.Field != "password" {
		t.Errorf("got %v", err)
	}
	if err := a.SetPassword(ctx, h, password, "new horse battery"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AdmitSession(ctx, first.Secret); !errors.Is(err, ErrInvalid) {
		t.Errorf("the other session goes on: %v", err)
	}
	if _, err := g.AdmitSession(ctx, second.Secret); err != nil {
		t.Errorf("the own session ended: %v", err)
	}
	if _, err := a.LogIn(t.Context(), "me", "new horse battery"); err != nil {
		t.Errorf("the new password: %v", err)
	}
	if err := a.Rename(ctx, "you"); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(actions(t, a.Store.(*sqlite.Store)), " ")
	if want := "operator.setup session.open session.open operator.password.refused operator.password session.open operator.rename"; got != want {
		t.Errorf("audited\n%s, want\n%s", got, want)
	}
	all, err := a.Store.(*sqlite.Store).Audit(ctx, ledger.AuditQuery{}, 0, 1)
	if err != nil || all[0].Actor != "me" || all[0].Via != h.Via() || string(all[0].Before) != `{"name":"me"}` || string(all[0].After) != `{"name":"you"}` {
		t.Errorf("got %+v, %v", all, err)
	}
}

// Who guesses does not fill the audit log.
func TestFailuresBounded(t *testing.T) {
	a, _, now := accountOf(t)
	for range 300 {
		if _, err := a.SetUp(t.Context(), "wrong", "me", password); !errors.Is(err, ErrInvalid) {
			t.Fatal(err)
		}
	}
	now.add(time.Minute)
	if _, err := a.SetUp(t.Context(), "wrong", "me", password); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	all, err := a.Store.(*sqlite.Store).Audit(t.Context(), ledger.AuditQuery{Action: "operator.setup"}, 0, 100)
	if err != nil || len(all) != 21 || string(all[0].Detail) != `{"left_out_before":280}` {
		t.Errorf("%d lines, the newest %s, %v", len(all), all[0].Detail, err)
	}
}

func TestManySessions(t *testing.T) {
	a, g, _ := accountOf(t)
	first, err := a.open(t.Context(), "me")
	if err != nil {
		t.Fatal(err)
	}
	for range ledger.MaxSessions {
		if _, err := a.open(t.Context(), "me"); err != nil {
			t.Fatal(err)
		}
	}
	all, err := a.Store.(*sqlite.Store).Sessions(t.Context())
	if err != nil || len(all) != ledger.MaxSessions {
		t.Errorf("%d sessions, %v", len(all), err)
	}
	if _, err := g.AdmitSession(t.Context(), first.Secret); !errors.Is(err, ErrInvalid) {
		t.Errorf("the oldest goes on: %v", err)
	}
}
