package hub

import (
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// clock looks for acknowledgements that are overdue and for messages that have
// waited for too long, until the hub is closed.
func (h *Hub) clock(ages *ages) {
	tick := time.NewTicker(min(time.Second, h.AckTimeout/2, h.TTL/4))
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case now := <-tick.C:
			ages.look(h.Store.NewID)
			for _, c := range h.all() {
				c.unstick()
				c.drainAgain()
				c.overdue(now)
				c.expire(now, ages)
				c.giveUp(now)
			}
			h.askAgain(now)
		}
	}
}

// overdue sends once more what was not acknowledged in time, and gives the
// session up if that was in vain.
func (c *Channel) overdue(now time.Time) {
	ch := c.lock()
	a := ch.taker()
	late := false
	for id, l := range ch.queue.flights {
		if now.Sub(l.sent) < c.hub.AckTimeout {
			continue
		}
		if late = l.again; late {
			break
		}
		l.again = true
		_, frame := l.Flight()
		ch.queue.change(change{conv: l.conv, to: ledger.Settlement{
			ID: id, State: ledger.Sent, Tracked: true, Frame: frame, Tries: l.Tries(),
			Life: []ledger.Life{{What: "sent once more", Detail: "no acknowledgement within " + c.hub.AckTimeout.String()}},
		}})
		ch.queue.offerFrame(l)
	}
	ch.unlock()
	switch {
	case a == nil:
	case late:
		a.port.Overdue()
	default:
		a.port.Flush()
	}
}

// expireEvery is how often a channel's queue is looked through.
const expireEvery = 10 * time.Second

// expire ends what has waited for longer than it may.
func (c *Channel) expire(now time.Time, ages *ages) {
	ch := c.lock()
	ch.queue.lookDeep()
	ttl := ch.policy.ttl(c.hub.TTL)
	// Not while messages change their place: one that ends already would end twice.
	look := ch.queue.backlog > 0 && ch.queue.requeuing == 0 && now.Sub(ch.queue.looked) >= min(expireEvery, ttl/4) && ch.queue.mayExpire()
	if look {
		ch.queue.looked = now
	}
	drains := ch.queue.drains
	ch.unlock()
	if !look {
		return
	}
	err := c.eachOld(ages, ttl, func(e *ledger.Entry) error {
		conv, err := c.hold(c.hub.ctx, e.Conversation)
		if err != nil {
			return err
		}
		ch := c.lock()
		l := ch.queue.lanes[conv.Key]
		if l != nil && l.Drop(e.ID) || l == nil && ch.queue.drains == drains && ch.queue.mayExpire() && !ch.taker().acked() {
			ch.queue.end(conv, e.ID)
		}
		ch.release(conv)
		ch.unlock()
		return nil
	})
	if err != nil {
		c.hub.Log.Warn("queue not looked through", "channel", c.name(), "error", err)
	}
}

// mayExpire reports whether what waits too long can be taken from the queue: not
// while it is written to somebody who does not acknowledge.
func (q *queue) mayExpire() bool { return q.taker().acked() || !q.draining }

// eachOld calls fn for the queued messages that have waited for ttl since they were
// made, or replayed.
func (c *Channel) eachOld(ages *ages, ttl time.Duration, fn func(*ledger.Entry) error) error {
	for last := ledger.MessageID(0); ; {
		page, err := c.hub.Store.Pending(c.hub.ctx, c.tail.Channel, last, drainPage)
		if err != nil || len(page) == 0 {
			return err
		}
		more := true
		if i := slices.IndexFunc(page, func(e ledger.Entry) bool { return ages.of(e.ID) < ttl }); i >= 0 {
			page, more = page[:i], false // what follows is younger
		}
		replayed, err := c.hub.Store.Replayed(c.hub.ctx, idsOf(page))
		if err != nil {
			return err
		}
		for i := range page {
			last = page[i].ID
			if at, again := replayed[last]; again && ages.of(ledger.IDAt(at)) < ttl {
				continue
			}
			if err := fn(&page[i]); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

func idsOf(entries []ledger.Entry) []ledger.MessageID {
	ids := make([]ledger.MessageID, len(entries))
	for i := range entries {
		ids[i] = entries[i].ID
	}
	return ids
}

// end expires a message that waits. Until that is committed nobody may take
// messages from the queue.
func (q *queue) end(conv *conversation, id ledger.MessageID) {
	q.requeuing++
	q.requeued = true
	q.change(change{conv: conv, of: ledger.Out, to: ledger.Settlement{ID: id, State: ledger.Expired, Reason: ledger.ReasonTTL}, once: true, then: func(err error) {
		q.requeuing--
		if err == nil {
			q.backlog--
		}
		q.drain()
	}})
}
