package bench

import (
	"context"
	"fmt"
	"time"
)

// acksAhead is how many messages of a conversation the culprits take ahead that
// acknowledge, and culpritConversations how many conversations theirs are of.
const (
	acksAhead            = 16
	culpritConversations = 100
)

// ackedCulprit is the load of one connection that acknowledges.
func ackedCulprit() Scenario {
	s := acked(1, 1, culpritConversations)
	s.Acks = acksAhead
	return s
}

// floodAhead is how many messages the one that floods has without an answer. Without an
// end they would fill the sockets, and its acknowledgements would wait behind them.
const floodAhead = 256

// floodAcks sends messages with ids as fast as they are answered or refused, and
// acknowledges all that comes.
func floodAcks(ctx context.Context, w culpritWork, did *Deeds) error {
	s := ackedCulprit()
	s.Window = floodAhead
	return insist(ctx, w, s, did)
}

// insist keeps messages in flight until ctx ends, and waits until all are answered: none
// is left to the measurement without them.
func insist(ctx context.Context, w culpritWork, s Scenario, did *Deeds) error {
	// A connection's ids are new: the host would drop those of the one before.
	p, err := newPeer(ctx, w.target(), s, w.Run+did.Closed%culpritRuns, 0)
	if err != nil {
		return err
	}
	defer p.close()
	st := &stage{peers: 1, began: now()}
	defer context.AfterFunc(ctx, func() {
		st.at.Store(stageOver)
		_ = p.conn.SetDeadline(time.Now().Add(2*slowTime + culpritGrace))
	})()
	err = p.closed(st, 0)
	did.Acts, did.Back = did.Acts+p.sent, did.Back+p.answered
	did.Own.add(p.count())
	return err
}

// drainQueue comes back to what waits, and takes all of it, also after ctx has ended.
func drainQueue(_ context.Context, w culpritWork, did *Deeds) error {
	b, began := &backlog{t: w.target(), s: ackedCulprit()}, now()
	if err := b.attach(context.Background(), w.Run); err != nil {
		return err
	}
	b.peer.sent = w.Queued // over the connection before
	defer b.peer.close()
	if err := b.take(w.Queued, drainPatience); err != nil {
		return fmt.Errorf("after %d of %d answers: %w", b.peer.answered, w.Queued, err)
	}
	did.Acts, did.Own, did.Took = b.peer.answered, b.peer.count(), []float64{(now() - began).Seconds()}
	return nil
}
