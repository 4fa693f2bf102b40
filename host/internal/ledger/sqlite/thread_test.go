package sqlite

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// Equal names of two owners are two conversations, whatever they are called.
func TestThreadsNeverMeet(t *testing.T) {
	s := opened(t)
	c, chain := newChannel(t, s, "a")
	other, _ := newChannel(t, s, "b")
	seen := map[string]string{}
	for _, o := range []struct {
		channel, owner int64
		name, want     string
	}{
		{c.Key, 1, "t", "t"}, {c.Key, 2, "t", "t~2"}, {c.Key, 0, "t", "t~0"}, {c.Key, 3, "u~2", "u~2"}, {c.Key, 1, "u", "u"}, {c.Key, 2, "u", "u~2~2"},
		{other.Key, 2, "t", "t"},
	} {
		if _, err := s.Thread(t.Context(), o.channel, o.owner, o.name); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("%+v: there before: %v", o, err)
		}
		for range 2 {
			if got, err := s.OpenThread(t.Context(), o.channel, o.owner, o.name); err != nil || got != o.want {
				t.Errorf("%+v: %q, %v", o, got, err)
			}
		}
		if o.channel == c.Key {
			if before := seen[o.want]; before != "" {
				t.Errorf("%s is that of %s too", o.want, before)
			}
			seen[o.want] = o.name
		}
	}
	// With its messages a thread is forgotten.
	conv := recalled(t, s, chain, "t")
	if err := commit(s, &ledger.Unit{Conversation: conv, In: &ledger.Row{Text: "x"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.change(func(q *db.Queries) error { return q.DeleteConversation(t.Context(), conv.ID) }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Thread(context.Background(), c.Key, 1, "t"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("after its conversation: %v", err)
	}
	if _, err := s.Thread(context.Background(), c.Key, 2, "t"); err != nil {
		t.Errorf("the other's: %v", err)
	}
}

// A duplicate is no trouble of the disk.
func TestDuplicateIsNoTrouble(t *testing.T) {
	var log bytes.Buffer
	s, err := Open(t.Context(), t.TempDir(), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	for i, want := range []error{nil, ledger.ErrDuplicate, ledger.ErrDuplicate} {
		if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "x", PlatformID: "p"}}); !errors.Is(err, want) {
			t.Errorf("commit %d: %v", i, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(log.Bytes(), []byte("not stored")) {
		t.Errorf("logged %s", log.String())
	}
}
