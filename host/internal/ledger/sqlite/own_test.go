package sqlite

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// The first owner of a channel does not wait for the disk: who attaches must be
// answered while it hangs. A later one does wait, since it fences what the one before
// appended.
func TestOwnWhileTheDiskHangs(t *testing.T) {
	s := opened(t)
	row, tail := newChannel(t, s, "c")
	other, err := s.CreateChannel(t.Context(), ledger.Channel{ID: "id-d", Name: "d", Kind: "bridge", Agent: "echo"}, nil, ledger.Change{Actor: "test", Action: "test"})
	if err != nil {
		t.Fatal(err)
	}
	hangs, goOn := make(chan struct{}), make(chan struct{})
	resume := sync.OnceFunc(func() { close(goOn) })
	var all sync.WaitGroup
	defer all.Wait()
	defer resume()
	all.Go(func() {
		_ = s.change(func(*db.Queries) error {
			close(hangs)
			<-goOn
			return nil
		})
	})
	await.Value(t, "the disk hangs", hangs)
	ctx := context.WithoutCancel(t.Context())
	first := make(chan *ledger.Tail, 1)
	all.Go(func() {
		owner, err := s.Own(ctx, other.Key)
		if err != nil {
			t.Error(err)
		}
		first <- owner
	})
	if owner := await.Value(t, "the first owner", first); owner == nil || owner.Epoch == 0 {
		t.Errorf("owns as %+v", owner)
	}
	second := make(chan *ledger.Tail, 1)
	all.Go(func() {
		owner, err := s.Own(ctx, row.Key)
		if err != nil {
			t.Error(err)
		}
		second <- owner
	})
	resume()
	if owner := await.Value(t, "the second owner", second); owner == nil || owner.Epoch <= tail.Epoch {
		t.Errorf("owns as %+v after %d", owner, tail.Epoch)
	}
	if err := commit(s, &ledger.Unit{Tail: tail, Cursor: "late"}); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("what the first owner appended then: %v", err)
	}
}
