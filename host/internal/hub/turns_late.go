package hub

import (
	"context"
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// lifeLate is what happened to a message when its agent did not answer in time.
// Recovery counts it, so that a restart grants no further attempts.
const lifeLate = "agent late"

// IsLate counts an attempt that the agent did not answer in time, also across
// restarts of the host. An agent that has made as many as it may returns ErrLate.
func (t *Turn) IsLate(why error) {
	t.Late++
	r := t.past.r
	if r == nil {
		return
	}
	ch := r.c.lock()
	defer ch.unlock()
	r.job.late, r.job.listed = t.Late, true
	ch.queue.change(change{conv: r.conv, to: ledger.Settlement{ID: r.job.id, State: ledger.Received, Tracked: true, Told: r.job.told, Life: []ledger.Life{{
		What: lifeLate, Detail: fmt.Sprintf("attempt %d of %s: %s", t.Late, r.agent, inShort(why)),
	}}}})
}

// lateness is how many attempts the message of a turn has had in vain, since it was
// received or replayed.
func (h *Hub) lateness(ctx context.Context, id ledger.MessageID) (n int, err error) {
	life, err := h.Store.Life(ctx, id)
	for _, l := range life {
		switch l.What {
		case lifeLate:
			n++
		case ledger.LifeReplayed:
			n = 0
		}
	}
	return n, err
}
