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
	c.mu.Lock()
	a := c.taker()
	late := false
	for id, l := range c.flights {
		if now.Sub(l.sent) < c.hub.AckTimeout {
			continue
		}
		if late = l.again; late {
			break
		}
		l.again = true
		_, frame := l.Flight()
		c.change(change{conv: l.conv, to: ledger.Settlement{
			ID: id, State: ledger.Sent, Tracked: true, Frame: frame, Tries: l.Tries(),
			Life: []ledger.Life{{What: "sent once more", Detail: "no acknowledgement within " + c.hub.AckTimeout.String()}},
		}})
		c.offerFrame(l)
	}
	c.mu.Unlock()
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
	c.mu.Lock()
	c.lookDeep()
	ttl := c.policy.ttl(c.hub.TTL)
	// Not while messages change their place: one that ends already would end twice.
	look := c.backlog > 0 && c.requeuing == 0 && now.Sub(c.looked) >= min(expireEvery, ttl/4) && (c.taker() == nil || c.taker().acked())
	if look {
		c.looked = now
	}
	c.mu.Unlock()
	if !look {
		return
	}
	err := c.eachOld(ages, ttl, func(e *ledger.Entry) error {
		conv, err := c.hold(c.hub.ctx, e.Conversation)
		if err != nil {
			return err
		}
		c.mu.Lock()
		l := c.lanes[conv.Key]
		if c.taker() == nil || l != nil && l.Drop(e.ID) {
			c.end(conv, e.ID)
		}
		c.release(conv)
		c.mu.Unlock()
		return nil
	})
	if err != nil {
		c.hub.Log.Warn("queue not looked through", "channel", c.name(), "error", err)
	}
}

// eachOld calls fn for the queued messages that have waited for ttl since they were
// made, or replayed.
func (c *Channel) eachOld(ages *ages, ttl time.Duration, fn func(*ledger.Entry) error) error {
	for last := ledger.MessageID(0); ; {
		page, err := c.hub.Store.Pending(c.hub.ctx, c.chain.Channel, last, drainPage)
		if err != nil {
			return err
		}
		more := len(page) == drainPage
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
// messages from the queue. The mutex must be held.
func (c *Channel) end(conv *conversation, id ledger.MessageID) {
	c.requeuing++
	c.requeued = true
	c.change(change{conv: conv, of: ledger.Out, to: ledger.Settlement{ID: id, State: ledger.Expired, Reason: ledger.ReasonTTL}, once: true, then: func(err error) {
		c.requeuing--
		if err == nil {
			c.backlog--
		}
		c.drain()
	}})
}
