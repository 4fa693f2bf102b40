package sqlite

import (
	"context"
	"os"

	"github.com/pontoon-bridge/pontoon/host/internal/disk"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
)

// Stats are what the store counts.
func (s *Store) Stats() *tally.Storage { return &s.w.stats }

// Reading is how many readers of history are at work now, of how many.
func (s *Store) Reading() (busy, most int) {
	most = cap(s.walkers.slots)
	return most - len(s.walkers.slots), most
}

// Sizes looks at the disk.
func (s *Store) Sizes() disk.Sizes {
	var z disk.Sizes
	for path, size := range map[string]*int64{s.w.path: &z.Database, s.w.path + "-wal": &z.WAL} {
		if info, err := os.Stat(path); err == nil {
			*size = info.Size()
		}
	}
	z.Space, _ = disk.In(s.w.dir)
	return z
}

// OldestQueued is the oldest message of a channel that waits to be sent; 0 = none
// does.
func (s *Store) OldestQueued(ctx context.Context, channel int64) (ledger.MessageID, error) {
	ids, err := s.read.OldestQueued(ctx, db.OldestQueuedParams{Channel: channel, Queued: int64(ledger.Queued)})
	if err != nil {
		return 0, failed("read oldest queued message", err)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	return ledger.MessageID(ids[0]), nil
}
