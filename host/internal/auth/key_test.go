package auth

import (
	"errors"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
)

// Whatever is wrong with a key, the answer is one; a key of another sort is none.
func TestAdmitKey(t *testing.T) {
	s, err := sqlite.Open(t.Context(), blank.Dir(t, t.TempDir()), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	now := time.Now()
	g := NewGate(s, func() time.Time { return now })
	newKey := func(name string, expires time.Time) string {
		secret := Generate(KeyPrefix)
		n := NewCredential(secret, expires)
		n.Terms = ledger.Terms{Name: name, Scopes: []string{string(ScopeAgentRun)}}
		if _, err := s.CreateCredential(t.Context(), ledger.OfHost(), n, ledger.Change{Actor: "test", Action: "key.create"}); err != nil {
			t.Fatal(err)
		}
		return secret
	}
	good, short, gone := newKey("good", time.Time{}), newKey("short", now.Add(time.Minute)), newKey("gone", time.Time{})
	if err := s.RevokeCredential(t.Context(), ledger.OfHost(), 3, ledger.Change{Actor: "test", Action: "key.delete"}); err != nil {
		t.Fatal(err)
	}
	token := Generate(TokenPrefix)
	secret := NewCredential(token, time.Time{})
	if _, err := s.CreateChannel(t.Context(), ledger.Channel{ID: "id", Name: "c", Kind: "bridge", Enabled: true, Agent: "echo"}, &secret, ledger.Change{Actor: "test", Action: "channel.create"}); err != nil {
		t.Fatal(err)
	}
	h, err := g.AdmitKey(t.Context(), good)
	if err != nil || h.Name != "good" || h.Ref() != "1" || !h.May(ScopeAgentRun) || h.May("") || h.May("other") {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := g.AdmitKey(t.Context(), short); err != nil || h.Name != "short" {
		t.Errorf("%+v, %v", h, err)
	}
	now = now.Add(time.Minute)
	for name, key := range map[string]string{"errGone": gone, "errExpired": short, "errToken": token, "errEmpty": "", "errWrong": Generate(KeyPrefix)} {
		if h, err := g.AdmitKey(t.Context(), key); !errors.Is(err, ErrInvalid) || h.Name != "" {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
	if _, err := g.Admit(t.Context(), good); !errors.Is(err, ErrInvalid) {
		t.Errorf("a key opens a channel: %v", err)
	}
	if err := g.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if k, err := s.CredentialByHash(t.Context(), ledger.APIKey, Hash(good)); err != nil || k.LastUsedAt.IsZero() {
		t.Errorf("its use is not noted: %+v, %v", k, err)
	}
	if op := Operator(); !op.May("") || !op.May(ScopeAgentRun) || op.Ref() != "admin" {
		t.Errorf("%+v", op)
	}
}

func TestCheckKey(t *testing.T) {
	for name, ok := range map[string]bool{"app": true, "a.b-c_1": true, "": false, "1": false, "12a": false, "A": false, "admin": false, "a b": false, "a\n": false} {
		if err := CheckKeyName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, c := range []struct {
		scopes      []string
		limited, ok bool
	}{
		{[]string{"agent:run"}, false, true}, {nil, false, false}, {[]string{"all"}, false, false}, {[]string{"agent:run", "agent:run"}, false, false},
		{[]string{"read", "send", "manage"}, true, true}, {[]string{"admin"}, false, true}, {[]string{"read", "admin"}, true, false}, {[]string{"agent:run"}, true, false},
	} {
		if err := CheckScopes(c.scopes, c.limited); (err == nil) != c.ok {
			t.Errorf("%q: %v", c.scopes, err)
		}
	}
}
