package auth

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

func TestHashMatches(t *testing.T) {
	h := newHasher()
	stored, err := h.hash(t.Context(), "correct horse battery")
	if err != nil || !strings.HasPrefix(stored, "$argon2id$v=19$m=65536,t=3,p=4$") {
		t.Fatalf("got %q, %v", stored, err)
	}
	if again, err := h.hash(t.Context(), "correct horse battery"); err != nil || again == stored {
		t.Errorf("the salt is not new: %q, %v", again, err)
	}
	for _, c := range []struct {
		stored, password string
		want             bool
	}{
		{stored, "correct horse battery", true}, {stored, "correct horse batterY", false}, {stored, "", false},
		{stored, strings.Repeat("x", 1<<20), false}, {"", "", false}, {"", "correct horse battery", false},
	} {
		if ok, err := h.matches(t.Context(), c.stored, c.password); err != nil || ok != c.want {
			t.Errorf("%.20q: %v, %v, want %v", c.password, ok, err, c.want)
		}
	}
	// What another program made of the same recommendation's first form counts too.
	const other = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	if ok, err := h.matches(t.Context(), other, "password"); err != nil || !ok {
		t.Errorf("the reference implementation's hash: %v, %v", ok, err)
	}
}

// So many at once that the machine's memory would go are refused, not queued.
func TestHashBounded(t *testing.T) {
	h := newHasher()
	for range hashersAtOnce {
		h.slots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, maxWaiting)
	for range maxWaiting {
		go func() {
			_, err := h.hash(ctx, "x")
			done <- err
		}()
	}
	for h.waiting.Load() < maxWaiting { // each goroutine is on its way there
	}
	if _, err := h.hash(t.Context(), "x"); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	cancel()
	for range maxWaiting {
		if err := await.Value(t, "who waited gives up", done); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if n := h.waiting.Load(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

func TestParseArgon(t *testing.T) {
	const salt, sum = "c29tZXNhbHQ", "nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	good := "$argon2id$v=19$m=256,t=2,p=1$" + salt + "$" + sum
	if a, err := parseArgon(good); err != nil || a.String() != good {
		t.Errorf("%s, %v", a, err)
	}
	for name, text := range map[string]string{
		"errEmpty": "", "errOther": "$2b$12$x", "errVariant": strings.Replace(good, "argon2id", "argon2i", 1), "errVersion": strings.Replace(good, "v=19", "v=16", 1),
		"errMemory": strings.Replace(good, "m=256", "m=99999999", 1), "errNoMemory": strings.Replace(good, "m=256", "m=0", 1),
		"errPasses": strings.Replace(good, "t=2", "t=1000", 1), "errNoPasses": strings.Replace(good, "t=2", "t=0", 1),
		"errThreads": strings.Replace(good, "p=1", "p=0", 1), "errTrailing": strings.Replace(good, "p=1", "p=1,x", 1), "errSign": strings.Replace(good, "t=2", "t=+2", 1),
		"errSalt": strings.Replace(good, salt, "eA", 1), "errSum": strings.Replace(good, sum, "!", 1), "errLong": good + strings.Repeat("A", 400), "errMore": good + "$",
	} {
		if a, err := parseArgon(text); err == nil {
			t.Errorf("%s: read as %+v", name, a)
		}
	}
}

func FuzzParseArgon(f *testing.F) {
	f.Add("$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4")
	f.Add("$argon2id$v=19$m=0,t=0,p=0$$")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseArgon(text)
		if err != nil {
			return
		}
		if a.String() != text {
			t.Errorf("%q is written as %q", text, a.String())
		}
		if a.memory > maxMemory || a.passes > maxPasses || a.passes == 0 || a.threads == 0 || len(a.sum) > maxField {
			t.Errorf("%q is let through", text)
		}
	})
}

func TestCheckPassword(t *testing.T) {
	for password, ok := range map[string]bool{
		"correct horse": true, "zwölf Zeichen": true, "elevenchars": false, "": false, "aaaaaaaaaaaaaaaa": false, "abababababababab": false,
		"the operator": false, "The Operator": false, strings.Repeat("abcdefgh", 128): true, strings.Repeat("abcdefgh", 129): false, "abcdefghijkl\xff": false,
	} {
		if err := CheckPassword(password, "the operator"); (err == nil) != ok {
			t.Errorf("%.40q: %v", password, err)
		} else if err != nil && password != "" && len(password) > 5 && strings.Contains(err.Error(), password) {
			t.Errorf("the error holds the password: %v", err)
		}
	}
}
