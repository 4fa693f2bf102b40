package sqlite

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// What a user cleared stays cleared when an older database is upgraded, only grows,
// and is forgotten with its conversation.
func TestClearedUpTo(t *testing.T) {
	dir := t.TempDir()
	d := older(t, dir, 17)
	if _, err := d.Exec(`INSERT INTO channel (id, uid, name, kind, enabled, agent, agents, queue, accept_capabilities, allow_users, profile, created_at)
		VALUES (1, 'u', 'a', 'bridle', 1, 'echo', '[]', 0, '[]', '[]', '{}', 0);
		INSERT INTO conversation (id, channel, key, agent, muted, turns, head, last_in, last_out, offer) VALUES (5, 1, 'c', '', 0, 0, 0, 0, 0, 0);
		INSERT INTO hidden (channel, conversation, upto) VALUES (1, 'c', 42), (1, 'd', 7)`); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	defer func() { _ = s.Close() }()
	want := func(what, conversation string, upTo int64) {
		t.Helper()
		if got, err := s.ClearedUpTo(t.Context(), 1, conversation); err != nil || int64(got) != upTo {
			t.Errorf("%s: %d, %v, want %d", what, got, err, upTo)
		}
	}
	want("from the older database", "c", 42)
	want("never cleared", "e", 0)
	for _, upTo := range []ledger.MessageID{50, 30} {
		if err := s.Clear(t.Context(), 1, "c", upTo); err != nil {
			t.Fatal(err)
		}
		want("cleared again", "c", 50)
	}
	if _, err := s.admin.ExecContext(t.Context(), "DELETE FROM conversation WHERE key = 'c'"); err != nil {
		t.Fatal(err)
	}
	want("its conversation is gone", "c", 0)
	want("another one's is not", "d", 7)
}
