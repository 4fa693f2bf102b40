package sqlite

import (
	"context"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// maxLooked is how many of a channel's newest messages Ends looks at: it
// must not read a history to its beginning where no adapter confirms anything.
const maxLooked = 64

// Ends tells what came last in a channel.
func (s *Store) Ends(ctx context.Context, channel int64) (ledger.Ends, error) {
	c, err := s.chain(ctx, channel)
	if err != nil {
		return ledger.Ends{}, err
	}
	at, err := s.lastDelivered(ctx, c)
	return ledger.Ends{LastIn: ledger.MessageID(c.lastIn.Load()), LastOut: ledger.MessageID(c.lastOut.Load()), Delivered: at}, err
}

// lastDelivered is as it was when this was first asked: from then on the hub knows.
func (s *Store) lastDelivered(ctx context.Context, c *chain) (time.Time, error) {
	if at := c.delivered.Load(); at != nil {
		return *at, nil
	}
	ms, err := s.read.LastDelivered(ctx, db.LastDeliveredParams{Head: c.head.Load(), Most: maxLooked, Delivered: int64(ledger.Delivered)})
	if err != nil {
		return time.Time{}, failed("read last delivery", err)
	}
	var at time.Time
	if ms != 0 {
		at = time.UnixMilli(ms).UTC()
	}
	c.delivered.Store(&at)
	return at, nil
}
