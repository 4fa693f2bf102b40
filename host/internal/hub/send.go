package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// dispatch delivers a committed row, unless what it says is still to come. The
// mutex must be held.
func (c *Channel) dispatch(o *outgoing, row *ledger.Row, committed time.Time) {
	if row.Status == message.StatusStreaming {
		return
	}
	c.count().Sent++
	c.count().failed(Outcome{ledger.Out, row.State, row.Reason})
	o.parcel.ID, o.parcel.ReplyTo = row.ID, row.ReplyTo
	if o.draft != nil {
		if c.drafts == nil {
			c.drafts = map[ledger.MessageID]*draft{}
		}
		c.drafts[row.ID] = o.draft
	}
	switch row.State {
	case ledger.Sent:
		switch {
		case row.Tracked:
			c.launch(o)
		case c.backlog > 0 || c.taker().acked():
			// Since it was decided, others have gone back to the queue, which
			// come first, or somebody came who acknowledges.
			c.settle(o.parcel, ledger.Queued, "")
		default:
			c.deliver(o.parcel, committed)
		}
	case ledger.Queued:
		c.waits(o.parcel.conv, row.ID)
	}
}

func (c *Channel) addBacklog(rows []ledger.Row, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countBacklog(rows, by)
}

// countBacklog adds or takes back the queued rows. The mutex must be held.
func (c *Channel) countBacklog(rows []ledger.Row, by int) {
	for i := range rows {
		if rows[i].State == ledger.Queued {
			c.backlog += by
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
		c.mu.Lock()
		c.release(conv)
		c.mu.Unlock()
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
	c.mu.Lock()
	defer c.mu.Unlock()
	name := c.agentName(conv)
	c.release(conv)
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
	c.mu.Lock()
	defer c.mu.Unlock()
	l := outlook{a: c.taker(), view: wire.View{Caps: wire.CapText}, queue: c.policy.Queue, backlog: c.backlog, most: c.policy.length(), acked: c.taker().acked()}
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
		c.mu.Lock()
		routing = &wire.Routing{SessionKey: conv.latest.SessionKey, ConversationID: conv.Key, ReplyCtx: conv.latest.ReplyCtx}
		c.mu.Unlock()
	}
	l := c.outlook()
	row := c.prepare(o, l.view, *routing, conv, l.a)
	if err := c.decide(l, conv, o, &row); err != nil && strict {
		c.mu.Lock()
		c.release(conv)
		c.mu.Unlock()
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
	unit sqlite.Unit
	row  [1]ledger.Row
	over chan error // how it went
}

func (c *Channel) commit(ctx context.Context, conv *conversation, o *outgoing, row ledger.Row, with ...ledger.Settlement) (Sent, error) {
	s := &single{c: c, conv: conv, o: o, row: [1]ledger.Row{row}, over: make(chan error, 1)}
	s.unit = sqlite.Unit{Conversation: conv.Conversation, Out: s.row[:], Settle: with, Set: c.choice(conv, o), Done: s.done}
	c.addBacklog(s.unit.Out, 1)
	c.hub.Store.Append(&s.unit)
	select {
	case err := <-s.over:
		return Sent{s.row[0].ID, row.State, o.notes}, err
	case <-ctx.Done(): // the commit goes on
		return Sent{}, ctx.Err()
	}
}

// done runs on the writer after the commit.
func (s *single) done(r sqlite.Result) {
	c := s.c
	c.mu.Lock()
	if r.Err == nil {
		c.dispatch(s.o, &s.row[0], r.At())
		if c.attached != nil {
			r.Later(c.attached.port)
		}
	} else {
		c.undo(s.o, &s.row[0])
	}
	c.release(s.conv)
	c.mu.Unlock()
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
	c.mu.Lock()
	routing := wire.Routing{SessionKey: conv.latest.SessionKey, ConversationID: conv.Key, ReplyCtx: conv.latest.ReplyCtx}
	attached := c.attached != nil
	c.release(conv)
	c.mu.Unlock()
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
	c.mu.Lock()
	a := c.attached
	if a == nil || !a.view.Caps.Has(wire.CapTyping) || routing.Overhead() > wire.MaxFrame {
		c.mu.Unlock()
		return
	}
	a.port.Offer(Parcel{Key: typingKey + routing.ConversationID, Routing: routing, Frames: []wire.Frame{frame}})
	c.mu.Unlock()
	a.port.Flush()
}
