package sqlite

import (
	"errors"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// A row of an older version is neither written nor deleted, and the audit log knows
// what each version changed; rows of an older database have versions too.
func TestVersions(t *testing.T) {
	dir := t.TempDir()
	d := older(t, dir, 14)
	if _, err := d.Exec(`INSERT INTO channel (id, uid, name, kind, enabled, agent, agents, queue, accept_capabilities, allow_users, profile, created_at)
		VALUES (1, 'u', 'a', 'bridge', 1, 'echo', '[]', 0, '[]', '[]', '{}', 0);
		INSERT INTO audit (at, actor, action, target, detail) VALUES (1, 'admin', 'channel.create', 'a', '{}')`); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s, _, _ := swept(t, dir, Options{})
	ctx := t.Context()
	by := func(actor string) ledger.Change { return ledger.Change{Actor: actor, Action: "channel.update"} }
	first, err := s.Channel(ctx, "a")
	if err != nil || first.Version != 1 {
		t.Fatalf("an old row is %+v, %v", first, err)
	}
	second, err := s.UpdateChannel(ctx, first, by("one"))
	if err != nil || second.Version != 2 {
		t.Fatalf("a changed row is %+v, %v", second, err)
	}
	if _, err := s.UpdateChannel(ctx, first, by("two")); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("an old version is written: %v", err)
	}
	if err := s.DeleteChannel(ctx, first, by("two")); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("an old version is deleted: %v", err)
	}
	if _, err := s.UpdateChannel(ctx, second, by("three")); err != nil {
		t.Errorf("after what was refused: %v", err)
	}
	if found, err := s.ChangesSince(ctx, "u", 1, 10); err != nil || len(found) != 2 || found[0].Actor != "three" || found[0].Version != 3 || found[1].Actor != "one" {
		t.Errorf("since version 1: %+v, %v", found, err)
	}
	echo, err := s.Agent(ctx, "echo")
	if err != nil || echo.Version != 1 {
		t.Fatalf("an old agent is %+v, %v", echo, err)
	}
	if _, err := s.UpdateAgent(ctx, echo, by("one")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateAgent(ctx, echo, by("two")); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("an old version is written: %v", err)
	}
	if err := s.DeleteAgent(ctx, ledger.Agent{Key: echo.Key, Version: 1, Name: "nobody"}, by("two")); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("an old version is deleted: %v", err)
	}
}
