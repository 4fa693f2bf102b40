package auth_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

// TestLimiter: the account asks the host's limiter before it looks at a password, and
// tells it what was right.
func TestLimiter(t *testing.T) {
	const right = "correct horse battery"
	s, err := sqlite.Open(t.Context(), blank.Dir(t, t.TempDir()), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	now := time.Now()
	var gate auth.Gate
	a := auth.NewAccount(auth.AccountOptions{
		Store: s, Dir: t.TempDir(), Limiter: netguard.NewFailures(func() time.Time { return now }), Failures: &gate.Failures, Now: time.Now,
		URL: func(code string) string { return "http://host/?code=" + code },
	})
	a.Cheapen()
	url, err := a.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(url, "=")
	ctx := auth.WithOrigin(t.Context(), "192.0.2.7:1", "x")
	if _, err := a.SetUp(ctx, code, "me", right); err != nil {
		t.Fatal(err)
	}
	logIn := func(ctx context.Context, password string) error {
		_, err := a.LogIn(ctx, "me", password)
		return err
	}
	change := func(ctx context.Context, present string) error {
		return a.SetPassword(ctx, auth.Operator(), present, right+"!")
	}
	for _, try := range []func(context.Context, string) error{logIn, change} {
		for i := range 4 {
			var wait *auth.WaitError
			if err := try(ctx, "wrong"); err == nil || errors.As(err, &wait) {
				t.Fatalf("try %d: %v", i, err)
			}
		}
		if err := logIn(ctx, right); err != nil { // which makes up for what was wrong
			t.Fatal(err)
		}
		for i := range 5 {
			var wait *auth.WaitError
			if err := try(ctx, "wrong"); err == nil || errors.As(err, &wait) {
				t.Fatalf("try %d after a login: %v", i, err)
			}
		}
		for _, password := range []string{right, "wrong"} { // the same answer
			var wait *auth.WaitError
			if err := try(ctx, password); !errors.As(err, &wait) || wait.Wait != time.Second {
				t.Errorf("%q: got %v, expected to wait a second", password, err)
			}
		}
		if err := logIn(auth.WithOrigin(t.Context(), "192.0.2.8:1", "x"), right); err != nil {
			t.Errorf("from another address: %v", err)
		}
		now = now.Add(2 * time.Hour)
	}
	if n := gate.Failures.Count(auth.Login); n != 18 {
		t.Errorf("%d failures counted, expected the 18 that were looked at", n)
	}
}
