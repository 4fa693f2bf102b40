package hub

import (
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// change is a message's change of state on its way to the disk.
type change struct {
	conv *conversation
	to   ledger.Settlement
	then func(error) // runs with the channel's mutex held; nil = nothing to do
	once bool        // whoever asked for it is told if the disk does not take it, and asks again
	of   ledger.Direction
}

// settle commits an outbound message's new state.
func (q *queue) settle(conv *conversation, id ledger.MessageID, s ledger.State, why ledger.Reason) {
	q.settleAs(conv, ledger.Settlement{ID: id, State: s, Reason: why})
}

func (q *queue) settleAs(conv *conversation, t ledger.Settlement) {
	if t.State != ledger.Queued {
		q.change(change{conv: conv, to: t, of: ledger.Out})
		return
	}
	q.putBack(change{conv: conv, to: t})
}

// putBack lets a message that was not queued wait.
func (q *queue) putBack(m change) {
	q.backlog++
	q.requeuing++ // what waits must not overtake it
	q.requeued = true
	then := m.then
	m.then = func(err error) {
		q.requeuing--
		if err == nil {
			q.waits(m.conv, messageOf(m.to.ID, m.to.Tries, m.to.Frame))
		} else {
			q.backlog--
		}
		q.drain() // what may be sent meanwhile has waited for this
		if then != nil {
			then(err)
		}
	}
	q.change(m)
}

// change commits what became of a message. What the disk does not take is kept
// and committed once it does: else the message would stay what it was, such as
// sent, though it was not.
func (q *queue) change(m change) {
	m.conv.held++
	if waiting := q.stuck[m.to.ID]; len(waiting) > 0 && !m.once {
		q.stuck[m.to.ID] = append(waiting, m)
		return
	}
	q.apply(m)
}

// apply begins the commit.
func (q *queue) apply(m change) {
	q.c.hub.Store.Append(&ledger.Unit{
		Conversation: m.conv.Conversation,
		Settle:       []ledger.Settlement{m.to},
	}, func(r ledger.Result) {
		defer q.c.lock().unlock()
		if errors.Is(r.Err, ledger.ErrUnavailable) && !m.once && q.c.hub.ctx.Err() == nil {
			if q.stuck == nil {
				q.stuck = map[ledger.MessageID][]change{}
			}
			q.stuck[m.to.ID] = append(q.stuck[m.to.ID], m)
			return
		}
		if r.Err == nil {
			q.overtake(m.to.ID)
			if !m.to.Tracked { // one that is sent still is no news
				q.count().settled(m.of, m.to.State, m.to.Reason)
				q.stateChanged(m.conv, m.to.ID, m.to.State, m.to.Reason)
			}
		}
		q.conclude(m, r.Err)
	})
}

// conclude ends a change that is committed, or never will be.
func (q *queue) conclude(m change, err error) {
	if err != nil && !errors.Is(err, ledger.ErrRemoved) {
		q.c.hub.Log.Error("message state not stored", "message", m.to.ID, "state", m.to.State, "error", err)
	}
	if m.then != nil {
		m.then(err)
	}
	q.release(m.conv)
}

// overtake drops the changes of a message that are stuck, when one that was
// made after them is committed.
func (q *queue) overtake(id ledger.MessageID) {
	old := q.stuck[id]
	delete(q.stuck, id)
	for _, m := range old {
		q.conclude(m, nil)
	}
}

// unstick tries the changes again that the disk did not take: those of one
// message in their order.
func (c *Channel) unstick() {
	ch := c.lock()
	defer ch.unlock()
	again := ch.queue.stuck
	if len(again) == 0 {
		return
	}
	ch.queue.stuck = nil
	for _, changes := range again {
		for _, m := range changes {
			ch.queue.apply(m)
		}
	}
}
