package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

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
	return &wire.Routing{SessionKey: e.Origin.SessionKey, ConversationID: e.Conversation, ReplyCtx: wire.Raw(e.Origin.ReplyCtx)}, nil
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

// Answerer is who is to answer an open message: the agent that has its turn now, else
// who answers in its conversation.
func (h *Hub) Answerer(ctx context.Context, e ledger.Entry) (string, error) {
	row, err := h.Store.ChannelByKey(ctx, e.Channel)
	if err != nil {
		return "", err
	}
	c, err := h.channel(ctx, row)
	if err != nil {
		return "", err
	}
	conv, err := c.hold(ctx, e.Conversation)
	if err != nil {
		return "", err
	}
	ch := c.lock()
	defer ch.unlock()
	name := ch.agentName(conv)
	if conv.asked != "" && !slices.ContainsFunc(conv.waiting, func(job turnJob) bool { return job.id == e.ID }) {
		name = conv.asked
	}
	ch.release(conv)
	return name, nil
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
	routing := c.latest(conv)
	ch := c.lock()
	attached := ch.attached != nil
	ch.release(conv)
	ch.unlock()
	if !attached {
		return ErrNotAttached
	}
	c.typing(*routing, on)
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
