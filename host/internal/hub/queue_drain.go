package hub

import (
	"context"
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// drainPage is how many queued messages are read, and committed as sent, at a time.
const drainPage = 64

var errNobody = errors.New("nobody takes the next message now")

// drain starts writing the queue to whoever is attached, or makes the drain
// that runs look again. What is still on its way back to the queue calls it
// once more.
func (q *queue) drain() {
	if q.backlog == 0 || q.taker() == nil || q.requeuing > 0 {
		return
	}
	if q.draining {
		q.again = true
		return
	}
	q.draining = q.c.hub.spawn(q.c.drainAll)
	q.drains++
}

// drainAgain begins a drain once more that failed.
func (c *Channel) drainAgain() {
	ch := c.lock()
	defer ch.unlock()
	if ch.queue.stalled {
		ch.queue.drain()
	}
}

// drainAll takes queued messages in commit order until there are none, or
// nobody to take them. After a commit that fails the clock begins anew.
func (c *Channel) drainAll() {
	for {
		err := c.drainOnce()
		ch := c.lock()
		failed := err != nil && !errors.Is(err, errNobody)
		more := ch.queue.again && !failed // somebody may have come since
		ch.queue.again, ch.queue.draining = false, more
		news := failed && !ch.queue.stalled
		ch.queue.stalled = failed || ch.queue.stalled && ch.taker().acked() // what lanes have begun says itself when it works again
		name := ch.policy.Name
		ch.unlock()
		if more {
			continue
		}
		if news && c.hub.ctx.Err() == nil {
			c.hub.Log.Error("queue not written: it is tried again each second", "channel", name, "error", err)
		}
		return
	}
}

// drainOnce writes the queue as it is now. It ends early if messages go back to
// the queue, since they come before the others; their commit calls drain.
func (c *Channel) drainOnce() error {
	ch := c.lock()
	unsettled := ch.queue.requeuing > 0
	ch.queue.requeued = false
	a := ch.taker()
	acked := a.acked()
	ch.unlock()
	switch {
	case unsettled:
		return errNobody
	case acked:
		return c.drainLanes(a)
	}
	var last ledger.MessageID
	for {
		page, err := c.hub.Store.Pending(c.hub.ctx, c.tail.Channel, last, drainPage)
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1].ID
		for len(page) > 0 {
			if err := c.roomForMore(); err != nil {
				return err
			}
			n := together(page)
			if err := c.takePage(page[:n]); err != nil {
				return err
			}
			page = page[n:]
		}
	}
}

// together is how many of the messages are committed as sent at once: of large ones
// fewer than there are, and at least one.
func together(page []ledger.Entry) int {
	size := 0
	for i := range page {
		if size += len(page[i].Text) + len(page[i].Parts); size > maxRising && i > 0 {
			return i
		}
	}
	return len(page)
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
	ch := c.lock()
	a := ch.taker()
	ch.unlock()
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
	ch := c.lock()
	a := ch.taker()
	if a == nil || ch.queue.requeued || a.acked() {
		ch.release(conv)
		ch.unlock()
		return errNobody
	}
	view := a.view
	ch.queue.leaving++
	ch.unlock()

	o, row := c.stored(&e, &outlook{a: a, view: view})
	c.hub.Store.Append(&ledger.Unit{
		Conversation: conv.Conversation,
		Settle:       []ledger.Settlement{{ID: e.ID, State: row.State, Reason: row.Reason, Notes: row.Notes}},
	}, func(r ledger.Result) {
		err := r.Err
		ch := c.lock()
		ch.queue.leaving--
		if err != nil { // it waits still: what was taken behind it must not overtake it
			ch.queue.requeued = true
		} else {
			ch.queue.backlog--
			ch.count().settled(ledger.Out, row.State, row.Reason)
			ch.stateChanged(conv, e.ID, row.State, row.Reason)
			switch {
			case row.State != ledger.Sent:
				ch.queue.drop(conv, e.ID)
			case ch.queue.requeued: // since this one was taken, and it may come before it
				ch.queue.settle(conv, e.ID, ledger.Queued, "")
			default:
				ch.outbox.deliver(conv, o.parcel, r.At())
			}
			if ch.attached != nil {
				r.Later(ch.attached.port)
			}
			if ch.taker() == nil || ch.queue.requeued {
				err = errNobody
			}
		}
		ch.release(conv)
		ch.unlock()
		done <- err
	})
	return nil
}
