package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// maxLooked is how many of a channel's newest messages LastDelivered looks at: it
// must not read a history to its beginning where no adapter confirms anything.
const maxLooked = 64

// LastDelivered is when the far end took one of the channel's newest messages, as
// it was when this was first asked: from then on the hub knows. Zero = none of them.
func (s *Store) LastDelivered(ctx context.Context, c *Chain) (time.Time, error) {
	if at := c.delivered.Load(); at != nil {
		return *at, nil
	}
	ms, err := s.read.LastDelivered(ctx, db.LastDeliveredParams{Head: c.head.Load(), Most: maxLooked, Delivered: int64(ledger.Delivered)})
	if err != nil {
		return time.Time{}, fmt.Errorf("read last delivery: %w", err)
	}
	var at time.Time
	if ms != 0 {
		at = time.UnixMilli(ms).UTC()
	}
	c.delivered.Store(&at)
	return at, nil
}
