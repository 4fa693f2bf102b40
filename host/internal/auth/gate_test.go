package auth

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// A key of an agent opens that agent, and nothing that is wrong with it can be
// told from the answer.
func TestAdmitAgent(t *testing.T) {
	ctx := context.Background()
	now := time.Now().Truncate(time.Second)
	g, s, _ := gateOf(t, &now)
	const key = "pna_first-first-first"
	secret := NewCredential(key, now.Add(time.Hour))
	a, err := s.CreateAgent(ctx, ledger.Agent{ID: "id", Name: "helper", Kind: "k", Config: json.RawMessage(`{}`), Enabled: true}, &secret, change)
	if err != nil {
		t.Fatal(err)
	}
	refusedAgent := func(key string) {
		t.Helper()
		grant, err := g.AdmitAgent(ctx, key)
		if !errors.Is(err, ErrInvalid) || err.Error() != ErrInvalid.Error() || grant.Key != 0 || grant.Agent.Name != "" { // in the same words, whatever is wrong
			t.Errorf("%.40q: got %+v, %v, want ErrInvalid", key, grant, err)
		}
	}
	grant, err := g.AdmitAgent(ctx, key)
	if err != nil || grant.Agent.Key != a.Key || grant.Agent.Name != "helper" || grant.Key == 0 || !grant.ExpiresAt.Equal(now.Add(time.Hour)) {
		t.Fatalf("got %+v, %v", grant, err)
	}
	for _, wrong := range []string{"", "unknown-unknown-unknown", key + " ", strings.ToUpper(key), string(Hash(key)), validToken} {
		refusedAgent(wrong) // a channel's token among them
	}
	refused(t, g, key) // nor is a key a token

	ended, end := context.WithCancel(ctx)
	end()
	if err := g.Serve(ended); err != nil {
		t.Fatal(err)
	}
	keys, err := s.Credentials(ctx, ledger.OfAgent(a.Key), 0, 10)
	if err != nil || len(keys) != 1 || !keys[0].LastUsedAt.Equal(now) {
		t.Errorf("got %+v, %v, want a use at %v", keys, err, now)
	}

	a.Enabled = false
	if a, err = s.UpdateAgent(ctx, a, change); err != nil {
		t.Fatal(err)
	}
	refusedAgent(key)
	a.Enabled = true
	if a, err = s.UpdateAgent(ctx, a, change); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RotateCredential(ctx, ledger.OfAgent(a.Key), NewCredential("pna_second-second-second", time.Time{}), now.Add(time.Minute), change); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{key, "pna_second-second-second"} { // both, while they overlap
		if _, err := g.AdmitAgent(ctx, k); err != nil {
			t.Fatalf("%s: %v", k, err)
		}
	}
	now = now.Add(time.Minute)
	refusedAgent(key)
	if grant, err = g.AdmitAgent(ctx, "pna_second-second-second"); err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeCredential(ctx, ledger.OfAgent(a.Key), grant.Key, change); err != nil {
		t.Fatal(err)
	}
	refusedAgent("pna_second-second-second")

	if _, err := g.AdmitAgent(ended, key); err == nil || errors.Is(err, ErrInvalid) {
		t.Errorf("storage that does not answer is %v", err)
	}
}
