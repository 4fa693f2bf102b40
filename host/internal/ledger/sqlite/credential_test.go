package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// owners are a channel, another one, an agent and the host.
func owners(t *testing.T, s *Store) (channel, other, agent, host ledger.Owner) {
	t.Helper()
	a, _ := newChannel(t, s, "a")
	b, _ := newChannel(t, s, "b")
	row, err := s.CreateAgent(t.Context(), ledger.Agent{ID: "id-a", Name: "a", Kind: "k", Enabled: true}, nil, ledger.Change{Actor: "test", Action: "agent.create"})
	if err != nil {
		t.Fatal(err)
	}
	return ledger.OfChannel(a.Key), ledger.OfChannel(b.Key), ledger.OfAgent(row.Key), ledger.OfHost()
}

var noted = ledger.Change{Actor: "test", Action: "credential"}

func TestCredentialsOfEachOwner(t *testing.T) {
	s := opened(t)
	ctx := t.Context()
	channel, _, agent, _ := owners(t, s)
	for i, of := range []ledger.Owner{channel, agent} {
		t.Run(string(of.Kind), func(t *testing.T) {
			hash := func(n int) []byte { return fmt.Append(nil, of.Kind, n) }
			until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
			first, err := s.CreateCredential(ctx, of, ledger.NewCredential{Hash: hash(1), Hint: "hin1"}, noted)
			if err != nil || first.Owner != of || !first.Live(time.Now().Add(1000*time.Hour)) {
				t.Fatalf("got %+v, %v", first, err)
			}
			second, err := s.RotateCredential(ctx, of, ledger.NewCredential{Hash: hash(2), Hint: "hin2", ExpiresAt: until.Add(time.Hour)}, until, noted)
			if err != nil || second.Owner != of || second.ID <= first.ID || !second.ExpiresAt.Equal(until.Add(time.Hour)) {
				t.Fatalf("got %+v, %v", second, err)
			}
			if first, err = s.CredentialByHash(ctx, of.Kind, hash(1)); err != nil || !first.ExpiresAt.Equal(until) || first.Hint != "hin1" || !first.Live(time.Now()) || first.Live(until) {
				t.Errorf("the first is %+v, %v", first, err)
			}
			for _, wrong := range []ledger.Owner{{Kind: of.Kind, Key: of.Key + 50}, {Kind: of.Kind}, ledger.OfHost()} {
				if err := s.RevokeCredential(ctx, wrong, second.ID, noted); !errors.Is(err, ledger.ErrNotFound) {
					t.Errorf("revoked as one of %v: %v", wrong, err)
				}
			}
			if err := s.RevokeCredential(ctx, of, second.ID, noted); err != nil {
				t.Fatal(err)
			}
			revoked, err := s.CredentialByHash(ctx, of.Kind, hash(2))
			if err != nil || revoked.RevokedAt.IsZero() || revoked.Live(time.Now()) {
				t.Errorf("the revoked one is %+v, %v", revoked, err)
			}
			if err := s.RevokeCredential(ctx, of, second.ID, noted); err != nil {
				t.Errorf("revoked again: %v", err)
			}
			if again, err := s.CredentialByHash(ctx, of.Kind, hash(2)); err != nil || !again.RevokedAt.Equal(revoked.RevokedAt) {
				t.Errorf("a second time moved it to %v, %v", again.RevokedAt, err)
			}
			all, err := s.Credentials(ctx, of, first.ID, 10)
			if err != nil || len(all) != 1 || all[0].ID != second.ID {
				t.Errorf("behind the first are %+v, %v", all, err)
			}
			if lines, err := s.Audit(ctx, ledger.AuditQuery{Action: noted.Action}, 0, 100); err != nil || len(lines) != 3*(i+1) {
				t.Errorf("%d lines in the audit log, %v: expected one each for what changed something", len(lines), err)
			}
		})
	}
}

// A hash opens one thing, whatever kind of credential it was given to first, also
// after its owner was deleted with it.
func TestHashesAreOfOneKind(t *testing.T) {
	s := opened(t)
	channel, other, agent, host := owners(t, s)
	kinds := []ledger.Owner{channel, other, agent, host}
	for i, of := range kinds {
		hash := fmt.Append(nil, "hash ", i)
		n := ledger.NewCredential{Hash: hash}
		if of == host {
			n.Name = "app"
		}
		if _, err := s.CreateCredential(t.Context(), of, n, noted); err != nil {
			t.Fatal(err)
		}
		for _, second := range kinds {
			n := ledger.NewCredential{Hash: hash}
			if second == host {
				n.Name = "other"
			}
			if _, err := s.CreateCredential(t.Context(), second, n, noted); !errors.Is(err, ledger.ErrTokenTaken) {
				t.Errorf("%v has what is %v's already: %v", second, of, err)
			}
		}
		for _, kind := range []ledger.CredentialKind{ledger.ChannelToken, ledger.AgentKey, ledger.APIKey} {
			c, err := s.CredentialByHash(t.Context(), kind, hash)
			if kind == of.Kind && (err != nil || c.Owner != of) || kind != of.Kind && !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%v's, looked up as %s: %+v, %v", of, kind, c, err)
			}
		}
	}
}

// An id that was given is never given again, as others may remember it.
func TestIDsAreNotUsedAgain(t *testing.T) {
	s := opened(t)
	a, _ := newChannel(t, s, "a")
	before, err := s.Credentials(t.Context(), ledger.OfChannel(a.Key), 0, 10)
	if err != nil || len(before) != 1 {
		t.Fatal(before, err)
	}
	if err := s.DeleteChannel(t.Context(), a, noted); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CredentialByHash(t.Context(), ledger.ChannelToken, before[0].Hash); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("token of the deleted channel: %v", err)
	}
	b, _ := newChannel(t, s, "b")
	after, err := s.Credentials(t.Context(), ledger.OfChannel(b.Key), 0, 10)
	if err != nil || len(after) != 1 || after[0].ID <= before[0].ID {
		t.Errorf("after %d came %+v, %v", before[0].ID, after, err)
	}
}

func TestAPIKeys(t *testing.T) {
	s := opened(t)
	ctx := t.Context()
	later := time.Now().Add(time.Hour)
	create := func(name, hash string) (ledger.Credential, error) {
		return s.CreateCredential(ctx, ledger.OfHost(), ledger.NewCredential{Terms: ledger.Terms{Name: name, Scopes: []string{"agent:run"}, Channels: []string{"c"}}, Hash: []byte(hash), Hint: "aaaa", ExpiresAt: later}, noted)
	}
	a, err := create("app", "a")
	if err != nil || a.ID != 1 || !slices.Equal(a.Scopes, []string{"agent:run"}) || !slices.Equal(a.Channels, []string{"c"}) || !a.Live(time.Now()) || a.Live(later.Add(time.Second)) {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := create("app", "b"); !errors.Is(err, ledger.ErrNameTaken) {
		t.Errorf("a second key of the name: %v", err)
	}
	if _, err := s.APIKeyByRef(ctx, "nobody"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("no such key: %v", err)
	}
	for _, ref := range []string{"app", "1"} {
		if c, err := s.APIKeyByRef(ctx, ref); err != nil || c.ID != a.ID || c.Name != "app" {
			t.Errorf("%s: %+v, %v", ref, c, err)
		}
	}
	if err := s.RevokeCredential(ctx, ledger.OfHost(), a.ID, noted); err != nil {
		t.Fatal(err)
	}
	if _, err := s.APIKeyByRef(ctx, "app"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a revoked key by its name: %v", err)
	}
	if c, err := s.APIKeyByRef(ctx, "1"); err != nil || c.Live(time.Now()) {
		t.Errorf("a revoked key by its id: %+v, %v", c, err)
	}
	b, err := create("app", "c")
	if err != nil || b.ID == a.ID {
		t.Fatalf("the name is free again: %+v, %v", b, err)
	}
	if all, err := s.Credentials(ctx, ledger.OfHost(), 0, 10); err != nil || len(all) != 2 || all[0].ID != a.ID {
		t.Errorf("list: %+v, %v", all, err)
	}
	at := time.Now().Truncate(time.Millisecond)
	if err := s.Touch(ctx, ledger.Uses{Credentials: map[ledger.CredentialRef]time.Time{b.Ref(): at}}); err != nil {
		t.Fatal(err)
	}
	if c, err := s.CredentialByHash(ctx, ledger.APIKey, []byte("c")); err != nil || !c.LastUsedAt.Equal(at) {
		t.Errorf("used: %+v, %v", c, err)
	}
}
