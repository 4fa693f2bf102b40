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

// dispatch delivers a committed row, unless what it says is still to come.
func (ch *locked) dispatch(o *outgoing, row *ledger.Row, committed time.Time) {
	if row.Status == message.StatusStreaming {
		return
	}
	ch.count().Sent++
	ch.count().failed(Outcome{ledger.Out, row.State, row.Reason})
	o.parcel.ID, o.parcel.ReplyTo = row.ID, row.ReplyTo
	if o.draft != nil {
		if ch.queue.drafts == nil {
			ch.queue.drafts = map[ledger.MessageID]*draft{}
		}
		ch.queue.drafts[row.ID] = o.draft
	}
	switch row.State {
	case ledger.Sent:
		switch {
		case row.Tracked:
			ch.queue.launch(o)
		case ch.queue.backlog > 0 || ch.taker().acked():
			// Since it was decided, others have gone back to the queue, which
			// come first, or somebody came who acknowledges.
			ch.queue.settle(o.parcel, ledger.Queued, "")
		default:
			ch.deliver(o.parcel, committed)
		}
	case ledger.Queued:
		ch.queue.waits(o.parcel.conv, row.ID)
	}
}

func (c *Channel) addBacklog(rows []ledger.Row, by int) {
	ch := c.lock()
	defer ch.unlock()
	ch.queue.countBacklog(rows, by)
}

// countBacklog adds or takes back the queued rows.
func (q *queue) countBacklog(rows []ledger.Row, by int) {
	for i := range rows {
		if rows[i].State == ledger.Queued {
			q.backlog += by
		}
	}
}

// Outgoing is a message that nobody waits for: an operator's, a test, or what an
// agent says on its own.
type Outgoing struct {
	Conversation string
	Message      message.Message  // what it does to an earlier one, its metadata say (render.ActOf)
	Agent        string           // who speaks; "" = the host or an operator
	ReplyTo      ledger.MessageID // the user's message that it answers, and goes where that came from; 0 = none
}

// Sent is what became of a message.
type Sent struct {
	ID    ledger.MessageID
	State ledger.State
	Notes []render.Note
}

// Send commits a message to a conversation, which is made if need be, and
// writes it or queues it. Errors are ErrNotAttached, ErrQueueFull, ErrTooLarge,
// ErrContent and those of storage; with any of them nothing was stored.
func (h *Hub) Send(ctx context.Context, row ledger.Channel, out Outgoing) (Sent, error) {
	c, err := h.channel(ctx, row)
	if err != nil {
		return Sent{}, err
	}
	routing, err := h.answered(ctx, row, out)
	if err != nil {
		return Sent{}, err
	}
	conv, err := c.hold(ctx, out.Conversation)
	if err != nil {
		return Sent{}, err
	}
	o := &outgoing{message: out.Message, agent: out.Agent}
	if err := h.keep(ctx, row.ID, &o.message); err != nil {
		c.release(conv)
		return Sent{}, fmt.Errorf("%w: %w", ErrContent, err)
	}
	return c.send(ctx, conv, o, routing, out.ReplyTo, true)
}

// answered is where the message came from that is answered; nil = none is.
func (h *Hub) answered(ctx context.Context, row ledger.Channel, out Outgoing) (*wire.Routing, error) {
	if out.ReplyTo == 0 {
		return nil, nil
	}
	e, err := h.Store.Message(ctx, out.ReplyTo)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && (e.Channel != row.Key || e.Conversation != out.Conversation || e.Direction != ledger.In) {
		return nil, fmt.Errorf("%w: reply_to: found %s, expected a user's message of this conversation", ErrContent, out.ReplyTo)
	}
	if err != nil {
		return nil, err
	}
	return &wire.Routing{SessionKey: e.Origin.SessionKey, ConversationID: e.Conversation, ReplyCtx: e.Origin.ReplyCtx}, nil
}

// AgentOf is who answers in a conversation of the channel.
func (h *Hub) AgentOf(ctx context.Context, row ledger.Channel, conversation string) (string, error) {
	c, err := h.channel(ctx, row)
	if err != nil {
		return "", err
	}
	conv, err := c.hold(ctx, conversation)
	if err != nil {
		return "", err
	}
	ch := c.lock()
	defer ch.unlock()
	name := ch.agentName(conv)
	ch.release(conv)
	return name, nil
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
	l := outlook{a: ch.taker(), view: wire.View{Caps: wire.CapText}, queue: ch.policy.Queue, backlog: ch.queue.backlog, most: ch.policy.length(), acked: ch.taker().acked()}
	if l.a != nil {
		l.view = l.a.view
	}
	return l
}

// decide gives the row its state; an error says why that is failed.
func (c *Channel) decide(l outlook, conv *conversation, o *outgoing, row *ledger.Row) error {
	switch {
	case row.State == ledger.Failed:
		return ErrTooLarge
	case l.a == nil && !l.queue:
		row.State, row.Reason = ledger.Failed, ledger.ReasonNotAttached
		return ErrNotAttached
	case (l.a == nil || l.backlog > 0) && l.backlog >= l.most:
		row.State, row.Reason = ledger.Failed, ledger.ReasonQueueFull
		return ErrQueueFull
	case l.acked && c.reserve(conv, o):
		row.Tracked = true
	case l.a == nil || l.backlog > 0 || l.acked:
		row.State = ledger.Queued
		row.Notes, o.notes = nil, nil // what waits is planned when it is taken
	}
	return nil
}

// send commits one message outside a received frame's commit, and waits. It
// uses up one hold of conv. routing nil = the conversation's latest. strict
// refuses what an agent's answer would record as failed. with is committed too.
func (c *Channel) send(ctx context.Context, conv *conversation, o *outgoing, routing *wire.Routing, replyTo ledger.MessageID, strict bool, with ...ledger.Settlement) (Sent, error) {
	if routing == nil {
		ch := c.lock()
		routing = &wire.Routing{SessionKey: conv.latest.SessionKey, ConversationID: conv.Key, ReplyCtx: conv.latest.ReplyCtx}
		ch.unlock()
	}
	l := c.outlook()
	row := c.prepare(o, l.view, *routing, conv, l.a)
	if err := c.decide(l, conv, o, &row); err != nil && strict {
		c.release(conv)
		return Sent{}, err
	}
	row.ReplyTo = replyTo
	if row.Offers {
		c.offers(conv, o)
	}
	return c.commit(ctx, conv, o, row, with...)
}

// single is a message on its way through a commit of its own.
type single struct {
	c    *Channel
	conv *conversation
	o    *outgoing
	unit ledger.Unit
	row  [1]ledger.Row
	over chan error // how it went
}

func (c *Channel) commit(ctx context.Context, conv *conversation, o *outgoing, row ledger.Row, with ...ledger.Settlement) (Sent, error) {
	s := &single{c: c, conv: conv, o: o, row: [1]ledger.Row{row}, over: make(chan error, 1)}
	s.unit = ledger.Unit{Conversation: conv.Conversation, Out: s.row[:], Settle: with, Set: c.choice(conv, o)}
	c.addBacklog(s.unit.Out, 1)
	c.hub.Store.Append(&s.unit, s.done)
	select {
	case err := <-s.over:
		return Sent{s.row[0].ID, row.State, o.notes}, err
	case <-ctx.Done(): // the commit goes on
		return Sent{}, ctx.Err()
	}
}

// done runs on the writer after the commit.
func (s *single) done(r ledger.Result) {
	c := s.c
	ch := c.lock()
	if r.Err == nil {
		ch.dispatch(s.o, &s.row[0], r.At())
		if ch.attached != nil {
			r.Later(ch.attached.port)
		}
	} else {
		ch.undo(s.o, &s.row[0])
	}
	ch.release(s.conv)
	ch.unlock()
	if r.Err == nil && c.hub.Events.wanted() {
		c.hub.created(c, s.conv, ledger.Row{}, s.unit.Out)
	}
	s.over <- r.Err
}

// Typing shows or ends the typing indicator in a conversation, if the far end can.
func (h *Hub) Typing(ctx context.Context, row ledger.Channel, conversation string, on bool) error {
	c, err := h.channel(ctx, row)
	if err != nil {
		return err
	}
	conv, err := c.hold(ctx, conversation)
	if err != nil {
		return err
	}
	ch := c.lock()
	routing := wire.Routing{SessionKey: conv.latest.SessionKey, ConversationID: conv.Key, ReplyCtx: conv.latest.ReplyCtx}
	attached := ch.attached != nil
	ch.release(conv)
	ch.unlock()
	if !attached {
		return ErrNotAttached
	}
	c.typing(routing, on)
	return nil
}

// typingKey begins the key of a conversation's typing state. That of a stream is
// an id, which has no space.
const typingKey = "typing "

// typing offers a typing frame; lossy.
func (c *Channel) typing(routing wire.Routing, on bool) {
	frame := wire.Frame{Type: wire.TypeStopTyping}
	if on {
		frame.Type = wire.TypeStartTyping
	}
	ch := c.lock()
	a := ch.attached
	if a == nil || !a.view.Caps.Has(wire.CapTyping) || routing.Overhead() > wire.MaxFrame {
		ch.unlock()
		return
	}
	a.port.Offer(Parcel{Key: typingKey + routing.ConversationID, Routing: routing, Frames: []wire.Frame{frame}})
	ch.unlock()
	a.port.Flush()
}
