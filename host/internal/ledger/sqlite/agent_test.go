package sqlite

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

func TestAgents(t *testing.T) {
	s := opened(t)
	ctx := t.Context()
	by := ledger.Change{Actor: "test", Action: "agent.test"}

	all, err := s.Agents(ctx, 0, 10)
	if err != nil || len(all) != 1 || all[0].Name != "echo" || all[0].Kind != "echo" || !all[0].Enabled || time.Since(all[0].CreatedAt) > time.Hour {
		t.Fatalf("a new database has the agents %+v, %v", all, err)
	}
	a, err := s.CreateAgent(ctx, ledger.Agent{ID: "id-a", Name: "a", Kind: "k", Config: json.RawMessage(`{"url":"u"}`), Enabled: true},
		&ledger.NewCredential{Hash: []byte("h1"), Hint: "hin1"}, by)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"a", "id-a"} {
		if got, err := s.Agent(ctx, ref); err != nil || got.Key != a.Key || string(got.Config) != `{"url":"u"}` || got.Kind != "k" || !got.Enabled {
			t.Errorf("%s: got %+v, %v", ref, got, err)
		}
	}
	if _, err := s.CreateAgent(ctx, ledger.Agent{ID: "id-b", Name: "a", Kind: "k"}, nil, by); !errors.Is(err, ledger.ErrNameTaken) {
		t.Errorf("the same name: %v", err)
	}
	if _, err := s.CreateAgent(ctx, ledger.Agent{ID: "id-b", Name: "b", Kind: "k"}, &ledger.NewCredential{Hash: []byte("h1")}, by); !errors.Is(err, ledger.ErrTokenTaken) {
		t.Errorf("the same key: %v", err)
	}
	if _, err := s.Agent(ctx, "b"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("an agent that was refused is there: %v", err)
	}
	a.Enabled, a.Config = false, json.RawMessage(`{}`)
	if a, err = s.UpdateAgent(ctx, a, by); err != nil || a.Enabled || string(a.Config) != "{}" {
		t.Errorf("got %+v, %v", a, err)
	}
	if _, err := s.UpdateAgent(ctx, ledger.Agent{Key: 99, Name: "x"}, by); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
	changes, err := s.Audit(ctx, ledger.AuditQuery{}, 0, 10)
	if err != nil || len(changes) != 2 || changes[0].Target != "a" {
		t.Errorf("audited as %+v, %v", changes, err)
	}
	if err := s.DeleteAgent(ctx, a, by); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteAgent(ctx, a, by); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := s.CredentialByHash(ctx, ledger.AgentKey, []byte("h1")); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("key of the deleted agent: %v", err)
	}
}

// An agent that channels name can neither go nor lose its name.
func TestAgentInUse(t *testing.T) {
	s := opened(t)
	by := ledger.Change{Actor: "test", Action: "agent.test"}
	a, err := s.CreateAgent(t.Context(), ledger.Agent{ID: "id-a", Name: "a", Kind: "k", Enabled: true}, nil, by)
	if err != nil {
		t.Fatal(err)
	}
	routed, _ := newChannel(t, s, "routed")
	choice, _ := newChannel(t, s, "choice")
	newChannel(t, s, "other")
	routed.Agent, choice.Agents = "a", []string{"echo", "a"}
	for _, c := range []ledger.Channel{routed, choice} {
		if _, err := s.UpdateChannel(t.Context(), c, by); err != nil {
			t.Fatal(err)
		}
	}
	var used *ledger.InUseError
	if err := s.DeleteAgent(t.Context(), a, by); !errors.As(err, &used) || !slices.Equal(used.Channels, []string{"routed", "choice"}) {
		t.Errorf("delete: %v", err)
	}
	renamed := a
	renamed.Name = "b"
	if _, err := s.UpdateAgent(t.Context(), renamed, by); !errors.As(err, &used) || len(used.Channels) != 2 {
		t.Errorf("rename: %v", err)
	}
	a.Enabled = false
	if _, err := s.UpdateAgent(t.Context(), a, by); err != nil {
		t.Errorf("another change: %v", err)
	}
}
