package sqlite

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
)

// Stats are what the store counts since the process began; the writer alone adds.
type Stats struct {
	Commits tally.Histogram // how long the commits of messages took
	Batch   tally.Histogram // how many units each of them had
	Refused atomic.Uint64   // units that the disk did not take
	failing atomic.Bool
}

// Failing reports that the latest commit failed: messages are refused.
func (s *Stats) Failing() bool { return s.failing.Load() }

// Stats are what the store counts.
func (s *Store) Stats() *Stats { return &s.w.stats }

// Reading is how many readers of history are at work now, of how many.
func (s *Store) Reading() (busy, most int) {
	most = cap(s.walkers.slots)
	return most - len(s.walkers.slots), most
}

// Sizes are what the store takes on the disk, and the room that is left there.
type Sizes struct {
	Database, WAL int64 // bytes of the files
	Space         Space // zero where the system does not say
}

// Sizes looks at the disk.
func (s *Store) Sizes() Sizes {
	var z Sizes
	for path, size := range map[string]*int64{s.w.path: &z.Database, s.w.path + "-wal": &z.WAL} {
		if info, err := os.Stat(path); err == nil {
			*size = info.Size()
		}
	}
	z.Space, _ = SpaceIn(s.w.dir)
	return z
}

// OldestQueued is the oldest message of a channel that waits to be sent; 0 = none
// does.
func (s *Store) OldestQueued(ctx context.Context, channel int64) (ledger.MessageID, error) {
	ids, err := s.read.OldestQueued(ctx, db.OldestQueuedParams{Channel: channel, Queued: int64(ledger.Queued)})
	if err != nil {
		return 0, fmt.Errorf("read oldest queued message: %w", err)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	return ledger.MessageID(ids[0]), nil
}
