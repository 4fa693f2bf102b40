package hub

import (
	"context"
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/host/internal/store"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// outgoing is one message on its way out.
type outgoing struct {
	message message.Message
	agent   string // who speaks; "" = the host or an operator
	edit    bool
	handle  string

	notes  []render.Note
	parcel Parcel
}

// prepare plans the message for a view and makes its row, in state sent or failed.
func (o *outgoing) prepare(v wire.View, routing wire.Routing, conv *conversation, a *Attachment) store.Row {
	if o.message.Meta != nil {
		_, o.edit = o.message.Meta[message.MetaEdits]
		if o.edit && o.handle == "" {
			o.handle = o.message.Meta.String(message.MetaPreviewHandle)
		}
	}
	planned := o.plan(v, routing)
	o.notes = planned.Notes
	o.parcel = Parcel{Routing: routing, Frames: planned.Frames, conv: conv, planned: a, out: o}
	text := o.message.Text
	if text == "" && len(o.message.Parts) > 0 {
		text = render.Text(&o.message) // so that a list of messages shows something
	}
	row := store.Row{
		Direction: store.Out, State: store.Sent, Text: text, Parts: message.AppendParts(nil, o.message.Parts),
		Origin: store.Origin{SessionKey: routing.SessionKey, ReplyCtx: routing.ReplyCtx, Agent: o.agent}.Append(nil), Offers: planned.Offers,
	}
	if planned.TooLarge {
		row.State, row.Reason = store.Failed, store.ReasonFrameTooLarge
	}
	if len(planned.Notes) > 0 {
		row.Notes = marshal(planned.Notes)
	}
	if len(o.message.Meta) > 0 {
		row.Meta = marshal(o.message.Meta)
	}
	return row
}

func (o *outgoing) plan(v wire.View, routing wire.Routing) render.Planned {
	return render.Plan(render.Input{
		Message: &o.message, View: v, Edit: o.edit, Handle: o.handle, Room: wire.MaxFrame - routing.Overhead(),
	})
}

// marshal encodes what can't fail: our own structs of strings and valid JSON.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("hub: " + err.Error())
	}
	return b
}

// offers remembers what a message offers that is about to be committed, so
// that the very next frame may answer it.
func (c *Channel) offers(conv *conversation, o *outgoing) {
	offer := render.OfferOf(&o.message)
	c.mu.Lock()
	defer c.mu.Unlock()
	conv.offer = offer
}

// dispatch delivers a committed row. The mutex must be held.
func (c *Channel) dispatch(o *outgoing, row *store.Row) {
	o.parcel.ID = row.ID
	switch row.State {
	case store.Sent:
		c.deliver(o.parcel)
	case store.Queued:
		c.drain()
	}
}

func (c *Channel) addBacklog(rows []store.Row, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countBacklog(rows, by)
}

// countBacklog adds or takes back the queued rows. The mutex must be held.
func (c *Channel) countBacklog(rows []store.Row, by int) {
	for i := range rows {
		if rows[i].State == store.Queued {
			c.backlog += by
		}
	}
}

// Outgoing is a message that nobody asked for: an operator's, or a test.
type Outgoing struct {
	Conversation string
	Message      message.Message
	Edit         bool
	Handle       string // of the message to change; "" = unknown
}

// Sent is what became of a message.
type Sent struct {
	ID    store.MessageID
	State store.State
	Notes []render.Note
}

// Send commits a message to a conversation, which is made if need be, and
// writes it or queues it. Errors are ErrNotAttached, ErrQueueFull, ErrTooLarge
// and those of storage; with any of them nothing was stored.
func (h *Hub) Send(ctx context.Context, row store.Channel, out Outgoing) (Sent, error) {
	c, err := h.channel(ctx, row)
	if err != nil {
		return Sent{}, err
	}
	conv, err := c.hold(ctx, out.Conversation)
	if err != nil {
		return Sent{}, err
	}
	o := &outgoing{message: out.Message, edit: out.Edit, handle: out.Handle}
	return c.send(ctx, conv, o, nil, 0, true)
}

// send commits one message outside a received frame's commit, and waits. It
// uses up one hold of conv. routing nil = the conversation's latest. strict
// refuses what an agent's answer would record as failed.
func (c *Channel) send(ctx context.Context, conv *conversation, o *outgoing, routing *wire.Routing, replyTo store.MessageID, strict bool) (Sent, error) {
	c.mu.Lock()
	if routing == nil {
		routing = &wire.Routing{SessionKey: conv.latest.SessionKey, ConversationID: conv.Key, ReplyCtx: conv.latest.ReplyCtx}
	}
	a, queue, backlog := c.taker(), c.policy.Queue, c.backlog
	view := wire.View{Caps: wire.CapText}
	if a != nil {
		view = a.view
	}
	c.mu.Unlock()

	row := o.prepare(view, *routing, conv, a)
	refuse := row.State == store.Failed
	why := ErrTooLarge
	switch {
	case refuse:
	case a == nil && !queue:
		row.State, row.Reason, refuse, why = store.Failed, store.ReasonNotAttached, true, ErrNotAttached
	case (a == nil || backlog > 0) && backlog >= maxQueue:
		row.State, row.Reason, refuse, why = store.Failed, store.ReasonQueueFull, true, ErrQueueFull
	case a == nil || backlog > 0:
		row.State = store.Queued
		row.Notes, o.notes = nil, nil // what waits is planned when it is taken
	}
	if refuse && strict {
		c.mu.Lock()
		c.release(conv)
		c.mu.Unlock()
		return Sent{}, why
	}
	row.ReplyTo = replyTo
	if row.Offers {
		c.offers(conv, o)
	}
	return c.commit(ctx, conv, o, row)
}

func (c *Channel) commit(ctx context.Context, conv *conversation, o *outgoing, row store.Row) (Sent, error) {
	done := make(chan error, 1)
	u := &store.Unit{Conversation: conv.Conversation, Out: []store.Row{row}}
	c.addBacklog(u.Out, 1)
	u.Done = func(r store.Result) {
		c.mu.Lock()
		if r.Err == nil {
			c.dispatch(o, &u.Out[0])
			if c.attached != nil {
				r.Later(c.attached.port)
			}
		} else {
			c.countBacklog(u.Out, -1)
		}
		c.release(conv)
		c.mu.Unlock()
		if r.Err == nil && c.hub.Events.wanted() {
			c.hub.created(c, conv, store.Row{}, u.Out)
		}
		done <- r.Err
	}
	c.hub.Store.Append(u)
	select {
	case err := <-done:
		return Sent{u.Out[0].ID, row.State, o.notes}, err
	case <-ctx.Done(): // the commit goes on
		return Sent{}, ctx.Err()
	}
}

// Typing shows or ends the typing indicator in a conversation, if the far end can.
func (h *Hub) Typing(ctx context.Context, row store.Channel, conversation string, on bool) error {
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
	a.port.Offer(Parcel{Routing: routing, Frames: []wire.Frame{frame}})
	c.mu.Unlock()
	a.port.Flush()
}
