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
	at, err := s.lastWritten(ctx, c)
	return ledger.Ends{
		LastIn: ledger.MessageID(c.lastIn.Load()), LastOut: ledger.MessageID(c.lastOut.Load()), Delivered: at.delivered, Sent: at.sent,
	}, err
}

// written is when the newest messages of a channel were taken by its far end, and
// written to it; zero = none of them was.
type written struct{ delivered, sent time.Time }

// lastWritten is as it was when this was first asked: from then on the hub knows. What was
// sent is written about when it was made, or when it left the queue, or before it was
// delivered.
func (s *Store) lastWritten(ctx context.Context, c *chain) (written, error) {
	if at := c.written.Load(); at != nil {
		return *at, nil
	}
	last, err := s.read.LastSent(ctx, db.LastSentParams{
		Head: c.head.Load(), Most: maxLooked, Sent: int64(ledger.Sent), Delivered: int64(ledger.Delivered), Flies: int64(inFlight),
	})
	if err != nil {
		return written{}, failed("read last delivery", err)
	}
	var at written
	if last.Delivered != 0 {
		at.delivered = time.UnixMilli(last.Delivered).UTC()
	}
	if last.Newest != 0 {
		at.sent = ledger.MessageID(last.Newest).Time()
	}
	if settled := time.UnixMilli(last.Settled).UTC(); last.Settled != 0 && settled.After(at.sent) {
		at.sent = settled
	}
	c.written.Store(&at)
	return at, nil
}
