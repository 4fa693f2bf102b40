package sqlite

import (
	"context"
	"errors"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// The first owner of a channel in this process fences nobody: an adapter attaches
// while the disk is stuck. Whoever comes after it waits for what it appended.
func TestFirstOwnerDoesNotWaitForTheDisk(t *testing.T) {
	s := opened(t)
	row, err := s.CreateChannel(t.Context(), ledger.Channel{ID: "id-a", Name: "a", Kind: "bridge", Enabled: true, Agent: "echo"},
		&ledger.NewCredential{Hash: []byte("a"), Hint: "hint"}, ledger.Change{Actor: "test", Action: "channel.create"})
	if err != nil {
		t.Fatal(err)
	}
	hold, held := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.change(func(*db.Queries) error { close(held); <-hold; return nil })
	}()
	await.Value(t, "the writer is held up", held)
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	owned := make(chan *ledger.Tail, 2)
	own := func() {
		tail, err := s.Own(ctx, row.Key)
		if err != nil {
			t.Error(err)
		}
		owned <- tail
	}
	go own()
	var first *ledger.Tail
	select {
	case first = <-owned:
	case <-ctx.Done():
		close(hold)
		t.Fatal("the first owner waits for the writer")
	}
	c := recalled(t, s, first, "c")
	late := &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "before the second owner"}, Cursor: "7"}
	done := make(chan error, 1)
	s.Append(late, func(r ledger.Result) { done <- r.Err })
	go own()
	await.Until(t, "the second owner waits", func() bool {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		return len(s.w.jobs) > 0
	})
	close(hold)
	second := await.Value(t, "the second owner", owned)
	if err := await.Value(t, "the commit", done); err != nil && !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("the first owner's unit: %v", err)
	} else if stored := err == nil; stored != (second.Cursor() == "7") {
		t.Errorf("stored: %t, the second owner begins at %q", stored, second.Cursor())
	}
	if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "too late"}}); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("after the second owner came: %v", err)
	}
}
