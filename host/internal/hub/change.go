package hub

import (
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
)

// change is a message's change of state on its way to the disk.
type change struct {
	conv *conversation
	to   ledger.Settlement
	then func(error) // runs with the channel's mutex held; nil = nothing to do
	once bool        // whoever asked for it is told if the disk does not take it, and asks again
	of   ledger.Direction
}

// settle commits a message's new state. The mutex must be held.
func (c *Channel) settle(p Parcel, s ledger.State, why ledger.Reason) {
	c.settleAs(p, ledger.Settlement{ID: p.ID, State: s, Reason: why})
}

func (c *Channel) settleAs(p Parcel, t ledger.Settlement) {
	if t.State != ledger.Queued {
		c.change(change{conv: p.conv, to: t, of: ledger.Out})
		return
	}
	c.queue(change{conv: p.conv, to: t})
}

// queue lets a message that was not queued wait. The mutex must be held.
func (c *Channel) queue(ch change) {
	c.backlog++
	c.requeuing++ // what waits must not overtake it
	c.requeued = true
	then := ch.then
	ch.then = func(err error) {
		c.requeuing--
		if err == nil {
			c.waits(ch.conv, ch.to.ID)
		} else {
			c.backlog--
		}
		c.drain() // what may be sent meanwhile has waited for this
		if then != nil {
			then(err)
		}
	}
	c.change(ch)
}

// change commits what became of a message. What the disk does not take is kept
// and committed once it does: else the message would stay what it was, such as
// sent, though it was not. The mutex must be held.
func (c *Channel) change(ch change) {
	ch.conv.held++
	if waiting := c.stuck[ch.to.ID]; len(waiting) > 0 && !ch.once {
		c.stuck[ch.to.ID] = append(waiting, ch)
		return
	}
	c.apply(ch)
}

// apply begins the commit. The mutex must be held.
func (c *Channel) apply(ch change) {
	c.hub.Store.Append(&sqlite.Unit{
		Conversation: ch.conv.Conversation,
		Settle:       []ledger.Settlement{ch.to},
		Done: func(r sqlite.Result) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if errors.Is(r.Err, ledger.ErrUnavailable) && !ch.once && c.hub.ctx.Err() == nil {
				if c.stuck == nil {
					c.stuck = map[ledger.MessageID][]change{}
				}
				c.stuck[ch.to.ID] = append(c.stuck[ch.to.ID], ch)
				return
			}
			if r.Err == nil {
				c.overtake(ch.to.ID)
				if !ch.to.Tracked { // one that is sent still is no news
					c.count().settled(ch.of, ch.to.State, ch.to.Reason)
					c.hub.stateChanged(c, ch.conv, ch.to.ID, ch.to.State, ch.to.Reason)
				}
			}
			c.conclude(ch, r.Err)
		},
	})
}

// conclude ends a change that is committed, or never will be. The mutex must be
// held.
func (c *Channel) conclude(ch change, err error) {
	if err != nil && !errors.Is(err, ledger.ErrRemoved) {
		c.hub.Log.Error("message state not stored", "message", ch.to.ID, "state", ch.to.State, "error", err)
	}
	if ch.then != nil {
		ch.then(err)
	}
	c.release(ch.conv)
}

// overtake drops the changes of a message that are stuck, when one that was
// made after them is committed. The mutex must be held.
func (c *Channel) overtake(id ledger.MessageID) {
	old := c.stuck[id]
	delete(c.stuck, id)
	for _, ch := range old {
		c.conclude(ch, nil)
	}
}

// unstick tries the changes again that the disk did not take: those of one
// message in their order.
func (c *Channel) unstick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := c.stuck
	if len(again) == 0 {
		return
	}
	c.stuck = nil
	for _, changes := range again {
		for _, ch := range changes {
			c.apply(ch)
		}
	}
}
