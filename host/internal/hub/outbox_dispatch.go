package hub

import (
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// done runs on the writer after the commit.
func (p *post) done(r ledger.Result) {
	c := p.c
	ch := c.lock()
	ch.outbox.settle(p.conv, p.o, &p.row[0], r)
	if r.Err == nil && p.ends {
		ch.ended(p.conv, p.row[0])
	}
	p.by.committed(ch, r.Err)
	ch.unlock()
	if r.Err == nil && !p.ends && c.hub.Events.wanted() {
		c.hub.created(c, p.conv, ledger.Row{}, p.unit.Out)
	}
	p.by.over(r.Err)
}

// settle ends what plan began: the message is dispatched, or what was booked for it
// is undone.
func (b *outbox) settle(conv *conversation, o *outgoing, row *ledger.Row, r ledger.Result) {
	if r.Err != nil {
		b.undo(o, row)
		return
	}
	b.dispatch(conv, o, row, r.At())
	if b.attached != nil {
		r.Later(b.attached.port)
	}
}

// dispatch delivers a committed row, unless what it says is still to come.
func (b *outbox) dispatch(conv *conversation, o *outgoing, row *ledger.Row, committed time.Time) {
	if row.Status == ledger.StatusStreaming {
		return
	}
	b.count().Sent++
	b.count().failed(Outcome{ledger.Out, row.State, row.Reason})
	o.parcel.ID, o.parcel.ReplyTo = row.ID, row.ReplyTo
	if o.draft != nil {
		if b.drafts == nil {
			b.drafts = map[ledger.MessageID]*draft{}
		}
		b.drafts[row.ID] = o.draft
	}
	switch row.State {
	case ledger.Sent:
		switch {
		case row.Tracked:
			b.queue.launch(o)
		case b.queue.backlog > 0 || b.taker().acked():
			// Since it was decided, others have gone back to the queue, which
			// come first, or somebody came who acknowledges.
			b.queue.settle(conv, row.ID, ledger.Queued, "")
		default:
			b.deliver(conv, o.parcel, committed)
		}
	case ledger.Queued:
		if o.rests {
			b.queue.launch(o)
			return
		}
		if b.taker().acked() {
			b.queue.keep(row.ID, o)
		}
		b.queue.waits(conv, messageOf(row.ID, 0, 0))
	}
}

// undo forgets what was meant to become of a row that was not committed.
func (b *outbox) undo(o *outgoing, row *ledger.Row) {
	if row.State == ledger.Queued {
		b.queue.backlog--
	}
	if o.lane != nil {
		b.queue.unreserve(o)
	}
}

// deliver hands a committed parcel to whoever is attached. It must not overtake
// what is on its way back to the queue. The time is about now: a clock is dear among
// messages that are committed together.
func (b *outbox) deliver(conv *conversation, p Parcel, now time.Time) {
	a := b.taker()
	if a.acked() { // it came meanwhile: what it gets is in a lane, where its acknowledgement is awaited
		b.queue.settle(conv, p.ID, ledger.Queued, "")
		return
	}
	if b.queue.requeuing > 0 && b.policy.Queue {
		a = nil
	}
	if a != nil {
		if !b.fit(&p, a) {
			b.queue.settle(conv, p.ID, ledger.Failed, ledger.ReasonFrameTooLarge)
			return
		}
		p.identify(a.view)
		if a.port.Offer(p) {
			b.lastSent = now
			b.count().Outcomes[outcomeSent]++
			b.arrived(&p, now)
			return
		}
		a.refused = true
	}
	if b.policy.Queue {
		b.queue.settle(conv, p.ID, ledger.Queued, "")
	} else {
		b.queue.settle(conv, p.ID, ledger.Failed, ledger.ReasonNotAttached)
	}
}

// fit plans a parcel again that was made for another view than the attachment's. That
// the first plan fitted says nothing of this one: false = it does not fit.
func (b *outbox) fit(p *Parcel, a *Attachment) bool {
	if p.View == a.id {
		return true
	}
	planned := b.c.render(p.Message, a.view, p.Routing)
	p.Frames, p.View = planned.Frames, a.id
	return !planned.TooLarge
}
