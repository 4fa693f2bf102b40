package sqlite

import (
	"slices"
	"sync"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// unfinished knows the inbound messages whose turn has not ended, the answers that are
// still being made, and those that are sent and not acknowledged. It spares the happy
// path what it would write only to undo it: a received message that is not in here is
// handled, and what is in flight need not be on the pending list.
type unfinished struct {
	mu   sync.Mutex
	ids  map[ledger.MessageID]listed
	last ledger.MessageID // newest committed message

	// queued is how many messages of a channel waited for its adapter at the start:
	// resume found that anyway. It holds until the channel's first commit.
	queued map[int64]int64
}

// listed says that a message is on the pending list, where recovery finds it
// wherever the mark is.
type listed bool

// note is told of all that was committed: the units that have no error.
func (o *unfinished) note(units []unit, fates []error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, u := range units {
		if fates[i] == nil {
			o.noteOne(u)
		}
	}
}

// noteOne is note for one unit. The mutex must be held.
func (o *unfinished) noteOne(u unit) {
	if u.Conversation == nil {
		return
	}
	delete(o.queued, u.chain().channel)
	if u.In != nil {
		o.last = u.In.ID
		if u.In.State == ledger.Received && len(u.Out) == 0 {
			o.ids[u.In.ID] = false
		}
		if !u.In.Aside {
			u.chain().lastIn.Store(int64(u.In.ID))
		}
	}
	chain := u.chain()
	for i := range u.Out {
		o.last = u.Out[i].ID
		if u.Out[i].Status == ledger.StatusStreaming || flies(&u.Out[i]) {
			o.ids[o.last] = false
		}
		if u.Out[i].State == ledger.Sent {
			chain.lastOut.Store(int64(o.last))
		}
	}
	for _, s := range u.Settle {
		switch {
		case s.State == ledger.Received:
			o.ids[s.ID] = listed(s.Tracked)
		case s.Content == nil || s.Content.Status != ledger.StatusStreaming:
			delete(o.ids, s.ID)
		case s.Tracked || s.State == ledger.Queued:
			o.ids[s.ID] = true
		}
	}
}

func (o *unfinished) add(id ledger.MessageID, on listed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids[id] = on
}

func (o *unfinished) remove(id ledger.MessageID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.ids, id)
}

func (o *unfinished) has(id ledger.MessageID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.ids[id]
	return ok
}

// unlisted reports that the message is in here and not on the pending list.
func (o *unfinished) unlisted(id ledger.MessageID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	on, ok := o.ids[id]
	return ok && !bool(on)
}

// onList are the messages in here that are on the pending list, in order.
func (o *unfinished) onList() []int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	var ids []int64
	for id, on := range o.ids {
		if on {
			ids = append(ids, int64(id))
		}
	}
	slices.Sort(ids)
	return ids
}

// queuedIn is how many messages of the channel wait for its adapter; false = that is
// not known here any more.
func (o *unfinished) queuedIn(channel int64) (n int64, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, known = o.queued[channel]
	return n, known
}

// mark is the newest message up to which all are finished, or listed.
func (o *unfinished) mark() ledger.MessageID {
	o.mu.Lock()
	defer o.mu.Unlock()
	mark := o.last
	for id, on := range o.ids {
		if !on {
			mark = min(mark, id-1)
		}
	}
	return mark
}
