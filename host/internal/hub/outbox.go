package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// outbox is the one way out of a channel. A message is planned for who would take
// it now, which decides what becomes of it; it is appended; and after its commit
// it is dispatched, or what was booked for it is undone. Each happens once. The
// first two are here, the others in outbox_dispatch.go.
type outbox struct {
	*locked

	lastSent time.Time                   // to the far end
	drafts   map[ledger.MessageID]*draft // by their beginning, then by their last edit
}

// outgoing is one message on its way out.
type outgoing struct {
	message message.Message
	agent   string // who speaks; "" = the host or an operator
	apart   bool   // it leaves a stream that is open as it is
	chosen  string // whom the message hands the conversation over to; "" = nobody

	notes    []render.Note
	degraded []render.Note // notes, of one that waits: they count if it is sent as it was planned
	parcel   Parcel
	lane     *lane  // reserved for it; nil = none
	fleet    int    // see queue, when that was
	draft    *draft // whose beginning or last edit it is; nil = none's
	rests    bool   // it flies, and is queued until it may be written
}

// outlook is who would take a message now.
type outlook struct {
	a       *Attachment // nil = nobody
	view    wire.View
	queue   bool
	backlog int
	most    int  // that may be queued
	acked   bool // it acknowledges: each conversation has a lane
}

func (c *Channel) outlook() outlook {
	ch := c.lock()
	defer ch.unlock()
	return ch.outbox.outlook(ch.taker())
}

func (b *outbox) outlook(a *Attachment) outlook {
	l := outlook{a: a, view: wire.View{Caps: wire.CapText}, queue: b.policy.Queue, backlog: b.queue.backlog, most: b.policy.length(), acked: a.acked()}
	if a != nil {
		l.view = a.view
	}
	return l
}

// plan makes the message's row, with its frames, and decides what becomes of it;
// the error says why that is failed. What is booked for the row then, settle ends.
// strict books nothing for a message that fails: it is not to be appended. set is
// what it changes in its conversation's settings; nil = nothing.
func (c *Channel) plan(l *outlook, conv *conversation, o *outgoing, routing wire.Routing, strict bool, row *ledger.Row) (set *ledger.Settings, err error) {
	*row = c.prepare(o, l, routing)
	if err = l.decide(o, row); err != nil && strict {
		return nil, l.explain(err)
	}
	if row.State != ledger.Queued && !l.acked && !row.Offers && o.chosen == "" {
		return nil, err // as nearly always
	}
	ch := c.lock()
	defer ch.unlock()
	return ch.outbox.book(l, conv, o, row), err
}

// decide gives the row its state, unless that depends on the conversation's lane; an
// error says why it is failed.
func (l *outlook) decide(o *outgoing, row *ledger.Row) error {
	switch {
	case row.State == ledger.Failed:
		return ErrTooLarge
	case l.a == nil && !l.queue:
		row.State, row.Reason = ledger.Failed, ledger.ReasonNotAttached
		return ErrNotAttached
	case (l.a == nil || l.backlog > 0) && l.backlog >= l.most:
		row.State, row.Reason = ledger.Failed, ledger.ReasonQueueFull
		return ErrQueueFull
	case l.acked: // book looks whether its lane is free
	case l.a == nil || l.backlog > 0:
		o.wait(row)
	}
	return nil
}

// explain names the limit that a message met.
func (l *outlook) explain(err error) error {
	if errors.Is(err, ErrQueueFull) {
		return fullAt(l.most)
	}
	return err
}

func fullAt(most int) error {
	return fmt.Errorf("%w: %d messages may wait (queue_limits.length)", ErrQueueFull, most)
}

// wait makes a message one that waits: it is planned when it is taken.
func (o *outgoing) wait(row *ledger.Row) {
	row.State = ledger.Queued
	o.degraded, row.Notes, o.notes = o.notes, nil, nil
}

// book makes true at once what is to be true with the commit: so the next message,
// which may come before it, is decided on rightly.
func (b *outbox) book(l *outlook, conv *conversation, o *outgoing, row *ledger.Row) (set *ledger.Settings) {
	if l.acked && row.State == ledger.Sent {
		switch row.Tracked = b.queue.reserve(conv, o); {
		case !row.Tracked:
			o.wait(row)
		case b.rests(o.draft) > 0:
			o.rests, row.State, row.Tracked = true, ledger.Queued, false
		}
	}
	if row.State == ledger.Queued {
		b.queue.backlog++
	}
	if row.Offers {
		conv.offer = render.OfferOf(&o.message)
		conv.offered++
	}
	if o.chosen == "" {
		return nil
	}
	conv.settings.Agent = o.chosen // the next message goes to whom this one hands the conversation over
	settings := conv.settings
	return &settings
}

// post is one message on its way through a commit of its own.
type post struct {
	c    *Channel
	conv *conversation // held
	o    *outgoing
	row  [1]ledger.Row
	unit ledger.Unit
	by   poster
	ends bool // it ends a stream, whose row is there: unit settles what it says
}

// poster is told once how the commit of its message went.
type poster interface {
	// committed runs with the channel locked, after the message was dispatched, or
	// undone for err.
	committed(ch *locked, err error)
	// over runs after that, without the lock. It must not block.
	over(err error)
}

// append begins the commit of a message that was planned.
func (p *post) append() {
	p.unit.Conversation = p.conv.Conversation
	if !p.ends {
		p.unit.Out = p.row[:]
	}
	p.c.hub.Store.Append(&p.unit, p.done)
}

// waited is a post whose sender waits.
type waited struct {
	post
	done chan error
}

func (c *Channel) newWaited(conv *conversation, o *outgoing) *waited {
	w := &waited{post: post{c: c, conv: conv, o: o}, done: make(chan error, 1)}
	w.by = w
	return w
}

func (w *waited) committed(ch *locked, _ error) { ch.release(w.conv) }
func (w *waited) over(err error)                { w.done <- err }

// commit appends the message and waits for it.
func (w *waited) commit(ctx context.Context) (Sent, error) {
	state, notes := w.row[0].State, w.o.notes
	w.append()
	select {
	case err := <-w.done:
		return Sent{w.row[0].ID, state, notes}, err
	case <-ctx.Done(): // the commit goes on
		return Sent{}, ctx.Err()
	}
}

// send commits one message outside a received frame's commit, and waits. It
// uses up one hold of conv. routing nil = the conversation's latest. strict
// refuses what an agent's answer would record as failed. with is committed too.
func (c *Channel) send(ctx context.Context, conv *conversation, o *outgoing, routing *wire.Routing, replyTo ledger.MessageID, strict bool, with ...ledger.Settlement) (Sent, error) {
	if routing == nil {
		routing = c.latest(conv)
	}
	w, l := c.newWaited(conv, o), c.outlook()
	var err error
	if w.unit.Set, err = c.plan(&l, conv, o, *routing, strict, &w.row[0]); err != nil && strict {
		c.release(conv)
		return Sent{}, err
	}
	w.row[0].ReplyTo, w.unit.Settle = replyTo, with
	return w.commit(ctx)
}

// latest is where an unsolicited message goes: to where the newest came from.
func (c *Channel) latest(conv *conversation) *wire.Routing {
	ch := c.lock()
	defer ch.unlock()
	return &wire.Routing{SessionKey: conv.latest.SessionKey, ConversationID: conv.Key, ReplyCtx: wire.Raw(conv.latest.ReplyCtx)}
}
