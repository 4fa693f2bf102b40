package hub

import (
	"context"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Fates is what became of dead letters after they were sent on their way again.
type Fates struct {
	Waiting int // for the adapter's word, or their agent's
	Arrived int // delivered, written to an adapter that can't say more, or handled by the agent
	Dead    int // failed or expired again
}

// of is the count of those in a state.
func (f *Fates) of(s ledger.State) *int {
	switch s {
	case ledger.Failed, ledger.Expired:
		return &f.Dead
	case ledger.Sent, ledger.Delivered, ledger.Handled:
		return &f.Arrived
	}
	return &f.Waiting
}

// replaying is a Replaying that changes. The mutex of replayings guards it.
type replaying struct {
	Replaying
	cancel context.CancelFunc
	again  map[ledger.MessageID]ledger.State // of the letters that it replayed, those that something may still become of
}

// move counts a letter's state; what is final is forgotten.
func (r *replaying) move(id ledger.MessageID, to ledger.State) (final bool) {
	if was, known := r.again[id]; known {
		*r.of(was)--
	}
	*r.of(to)++
	switch to {
	case ledger.Delivered, ledger.Handled, ledger.Failed, ledger.Expired:
		delete(r.again, id)
		return true
	}
	r.again[id] = to
	return false
}

// track follows letters that are about to be replayed. The mutex must be held.
func (a *replayings) track(r *replaying, letters []Letter) {
	if a.tracked == nil {
		a.tracked = map[ledger.MessageID]*replaying{}
	}
	for _, l := range letters {
		a.tracked[l.ID] = r
	}
	a.any.Store(int32(len(a.tracked))) //nolint:gosec // G115: of some tens of replays, each of thousands
}

// untrack gives up letters of which nothing came, or that nobody asks for any more. The
// mutex must be held.
func (a *replayings) untrack(r *replaying, letters ...ledger.MessageID) {
	for _, id := range letters {
		if a.tracked[id] == r {
			delete(a.tracked, id)
		}
	}
	a.any.Store(int32(len(a.tracked))) //nolint:gosec // G115: as above
}

// untrackAll is untrack for letters that the replay does not come to.
func (a *replayings) untrackAll(r *replaying, letters []Letter) {
	for _, l := range letters {
		a.untrack(r, l.ID)
	}
}

// moved notes a message's new state, if it is a letter that was replayed. It is called
// with a channel's mutex held.
func (a *replayings) moved(id ledger.MessageID, to ledger.State) {
	if a.any.Load() == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.tracked[id]; r != nil && r.move(id, to) {
		a.untrack(r, id)
	}
}

// came notes how the replay of one letter went.
func (a *replayings) came(r *replaying, id ledger.MessageID, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		r.Left++
		r.Why = err
		a.untrack(r, id)
		return
	}
	r.Replayed++
	if _, known := r.again[id]; !known && a.tracked[id] == r {
		r.move(id, ledger.Queued) // nothing has become of it yet
	}
}
