package hub

import (
	"context"
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// drainPage is how many queued messages are read, and committed as sent, at a time.
const drainPage = 64

var errNobody = errors.New("nobody takes the next message now")

// drain starts writing the queue to whoever is attached, or makes the drain
// that runs look again. What is still on its way back to the queue calls it
// once more. The mutex must be held.
func (c *Channel) drain() {
	if c.backlog == 0 || c.taker() == nil || c.requeuing > 0 {
		return
	}
	if c.draining {
		c.again = true
		return
	}
	c.draining = c.hub.spawn(c.drainAll)
}

// drainAll takes queued messages in commit order until there are none, or
// nobody to take them. A commit that fails leaves the rest for the next attach
// or send.
func (c *Channel) drainAll() {
	for {
		err := c.drainOnce()
		c.mu.Lock()
		more := c.again && (err == nil || errors.Is(err, errNobody)) // somebody may have come since
		c.again, c.draining = false, more
		name := c.policy.Name
		c.mu.Unlock()
		if more {
			continue
		}
		if err != nil && !errors.Is(err, errNobody) && c.hub.ctx.Err() == nil {
			c.hub.Log.Error("queue not written", "channel", name, "error", err)
		}
		return
	}
}

// drainOnce writes the queue as it is now. It ends early if messages go back to
// the queue, since they come before the others; their commit calls drain.
func (c *Channel) drainOnce() error {
	c.mu.Lock()
	unsettled := c.requeuing > 0
	c.requeued = false
	a := c.taker()
	acked := a.acked()
	c.mu.Unlock()
	switch {
	case unsettled:
		return errNobody
	case acked:
		return c.drainLanes(a)
	}
	var last ledger.MessageID
	for {
		page, err := c.hub.Store.Pending(c.hub.ctx, c.chain.Channel, last, drainPage)
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1].ID
		if err := c.takePage(page); err != nil {
			return err
		}
		if err := c.roomForMore(); err != nil {
			return err
		}
	}
}

// takePage moves queued messages to sent, in the database first, and delivers
// them. Their commits are under way together: one disk sync serves many.
func (c *Channel) takePage(page []ledger.Entry) error {
	done := make(chan error, len(page))
	begun := 0
	var first error
	for _, e := range page {
		if first = c.take(e, done); first != nil {
			break
		}
		begun++
	}
	for range begun {
		if err := <-done; err != nil && (first == nil || errors.Is(first, errNobody)) {
			first = err
		}
	}
	return first
}

// roomForMore waits until whoever is attached has written most of what it got:
// a long queue must not count as an adapter's slowness.
func (c *Channel) roomForMore() error {
	c.mu.Lock()
	a := c.taker()
	c.mu.Unlock()
	if a == nil {
		return errNobody
	}
	select {
	case <-a.port.Room():
		return nil
	case <-c.hub.ctx.Done():
		return context.Cause(c.hub.ctx)
	}
}

// take begins the move of one message; done gets its outcome.
func (c *Channel) take(e ledger.Entry, done chan<- error) error {
	conv, err := c.hold(c.hub.ctx, e.Conversation)
	if err != nil {
		return err
	}
	c.mu.Lock()
	a := c.taker()
	if a == nil || c.requeued || a.acked() {
		c.release(conv)
		c.mu.Unlock()
		return errNobody
	}
	view := a.view
	c.mu.Unlock()

	o := &outgoing{message: restore(e), agent: e.Origin.Agent}
	routing := wire.Routing{SessionKey: e.Origin.SessionKey, ConversationID: e.Conversation, ReplyCtx: e.Origin.ReplyCtx}
	row := c.prepare(o, view, routing, conv, a)
	o.parcel.ID = e.ID
	c.hub.Store.Append(&sqlite.Unit{
		Conversation: conv.Conversation,
		Settle:       []ledger.Settlement{{ID: e.ID, State: row.State, Reason: row.Reason, Notes: row.Notes}},
		Done: func(r sqlite.Result) {
			err := r.Err
			c.mu.Lock()
			if err == nil {
				c.backlog--
				c.count().settled(ledger.Out, row.State, row.Reason)
				c.hub.stateChanged(c, conv, e.ID, row.State, row.Reason)
				switch {
				case row.State != ledger.Sent:
				case c.requeued: // since this one was taken, and it may come before it
					c.settle(o.parcel, ledger.Queued, "")
				default:
					c.deliver(o.parcel, r.At())
				}
				if c.attached != nil {
					r.Later(c.attached.port)
				}
				if c.taker() == nil || c.requeued {
					err = errNobody
				}
			}
			c.release(conv)
			c.mu.Unlock()
			done <- err
		},
	})
	return nil
}
