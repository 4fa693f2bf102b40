package agui

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// turn is one message of a user from when it is given to the hub to when nobody
// works on it any more. It outlives the run that brought it, if the client goes.
type turn struct {
	ref     string // what the hub knows the message by; "" = it came before this process
	stored  chan struct{}
	refused *wire.Error // set before stored is closed: it is not stored
	again   bool        // likewise: it was stored before
	over    chan struct{}

	// Guarded by Front.mu.
	id      ledger.MessageID
	waiters int           // of one that await made
	why     ledger.Reason // before over is closed; "" = it did not fail
	run     *Run          // that shows it; nil = its client went
}

func newTurn(ref string, r *Run) *turn {
	return &turn{ref: ref, run: r, stored: make(chan struct{}), over: make(chan struct{})}
}

// replyCtx is what an answer of the turn comes back with.
func (t *turn) replyCtx() wire.Raw { return wire.Raw(wire.AppendString(nil, t.ref)) }

// Offer implements hub.Port: what is for a run that is being read is shown there.
// All else is in the history already.
func (f *Front) Offer(p hub.Parcel) bool {
	var ref string
	if json.Unmarshal([]byte(p.Routing.ReplyCtx), &ref) != nil {
		return true // of a conversation that no run began
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.turns[ref]; t != nil && t.run != nil {
		t.run.offer(p)
	}
	return true
}

// Settled implements hub.Port. What is stored, Stored says.
func (f *Front) Settled(ref string, err *wire.Error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.turns[ref]; t != nil {
		delete(f.turns, ref)
		t.refused = err
		close(t.stored)
	}
}

// Stored implements hub.Follower.
func (f *Front) Stored(ref string, id ledger.MessageID, again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.turns[ref]
	if t == nil {
		return
	}
	if t.again = again; again {
		delete(f.turns, ref)
	} else {
		t.id = id
		f.ids[id] = t
	}
	close(t.stored)
}

// Over implements hub.Follower.
func (f *Front) Over(id ledger.MessageID, why ledger.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.ids[id]
	if t == nil {
		return
	}
	delete(f.ids, id)
	if f.turns[t.ref] == t {
		delete(f.turns, t.ref)
	}
	t.why = why
	close(t.over)
}

// await is the turn of a stored message that may be under way still: the one
// that is known, or a new one. forget must be called.
func (f *Front) await(id ledger.MessageID) *turn {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.ids[id]
	if t == nil {
		t = newTurn("", nil)
		t.id = id
		f.ids[id] = t
	}
	t.waiters++
	return t
}

// forget lets go of a turn that await gave.
func (f *Front) forget(t *turn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.waiters--; t.waiters == 0 && t.ref == "" && f.ids[t.id] == t {
		delete(f.ids, t.id)
	}
}
