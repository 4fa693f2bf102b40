package hub

import (
	"cmp"
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
	ch.outbox.forgetDrafts()
	a := ch.taker()
	late := false
	for _, f := range ch.queue.unanswered(now) {
		if late = f.again; late {
			break
		}
		f.again = true
		ch.queue.change(change{conv: f.conv, to: ledger.Settlement{
			ID: f.id, State: ledger.Sent, Tracked: true, Frame: f.frame(), Tries: f.tries(),
			Life: []ledger.Life{{What: "sent once more", Detail: "no acknowledgement within " + c.hub.AckTimeout.String()}},
		}})
		ch.queue.offerFrame(f)
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

// unanswered are the messages in flight that were not acknowledged in time, oldest
// first: of a conversation's the first one, since the adapter takes them one after the
// other.
func (q *queue) unanswered(now time.Time) []*flight {
	var all []*flight
	for _, f := range q.flights {
		since := f.sent
		if f.heard.After(since) { // it waited for the adapter to come to it
			since = f.heard
		}
		if f.awake == nil && !f.queued && !f.held && f.IsFirst(f.id) && now.Sub(since) >= q.c.hub.AckTimeout {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *flight) int { return cmp.Compare(a.id, b.id) })
	return all
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
		waits := l != nil && l.Waits(e.ID) != nil || l == nil && ch.queue.drains == drains && !ch.taker().acked()
		if waits && ch.queue.mayExpire() {
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
// while it is written to somebody who does not acknowledge, who may have gone meanwhile.
func (q *queue) mayExpire() bool { return q.leaving == 0 && (q.taker().acked() || !q.draining) }

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
// messages from the queue; one that the disk refuses waits still, in its place.
func (q *queue) end(conv *conversation, id ledger.MessageID) {
	q.requeuing++
	q.requeued = true
	q.change(change{conv: conv, of: ledger.Out, to: ledger.Settlement{ID: id, State: ledger.Expired, Reason: ledger.ReasonTTL}, once: true, then: func(err error) {
		q.requeuing--
		l := q.lanes[conv.Key]
		if err == nil {
			q.backlog--
			q.unkeep(id)
			delete(q.outbox.drafts, id)
			if l != nil { // perhaps since this began: the word that it is queued came behind its commit
				l.Drop(id)
			}
		}
		if l != nil {
			q.mayTake(l) // another is the first now
			q.forget(l)
		}
		q.drain()
	}})
}
