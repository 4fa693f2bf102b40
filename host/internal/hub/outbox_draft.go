package hub

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const (
	// draftInterval is the least time between two edits where the far end does not
	// say: what most platforms allow.
	draftInterval = time.Second
	// draftWait is how long the end of an answer waits for what the far end calls
	// its beginning.
	draftWait = 10 * time.Second
)

// draft is an answer that is shown while it is made by editing a message: its
// beginning, as the far end first got it. The edits in between are lossy; the
// last one is a message like any other, and the answer. Until then the question
// is not answered: a crash hands it over again.
//
// No two of these are handed to the port within the interval that the far end asks for.
// An edit in between that comes too soon is late; the last one is committed at once,
// flies in its lane, and rests there until it may be written.
type draft struct {
	known chan struct{} // closed when it is known what became of the beginning

	// The channel's mutex guards what follows.
	handle string    // "" = none: it can't be edited
	due    time.Time // it is not edited before, by the steady clock
	ended  bool      // there are no edits but the last one
	sure   string    // what it says at the far end for sure; "" = that is not known
	edited string    // what the latest edit in between made it say, unless that was lost; "" = there was none
}

// editInterval is the least time between two frames that change a draft.
func (b *outbox) editInterval() time.Duration {
	if a := b.attached; a != nil && a.view.Profile.EditIntervalMS > 0 {
		return max(streamInterval, time.Duration(a.view.Profile.EditIntervalMS)*time.Millisecond)
	}
	return draftInterval
}

// wrote takes note that a frame which changes the draft was handed to the port.
func (b *outbox) wrote(d *draft) { d.due = b.c.hub.Steady().Add(b.editInterval()) }

// rests is how long the last edit of a draft must wait; none of any other message, which
// has no draft.
func (b *outbox) rests(d *draft) time.Duration {
	if d == nil || !d.ended {
		return 0
	}
	return max(0, d.due.Sub(b.c.hub.Steady()))
}

// know takes note of how the far end calls the beginning of a draft, if it is one's, or
// that the last edit came to its end.
func (b *outbox) know(id ledger.MessageID, handle string) {
	d := b.drafts[id]
	switch {
	case d == nil:
		return
	case d.ended:
		delete(b.drafts, id)
		return
	}
	select {
	case <-d.known:
	default:
		d.handle = handle
		close(d.known)
	}
}

// forgetDrafts forgets the drafts whose last edit ended elsewhere than in flight, such as
// one that waited for too long. While messages wait it may be among them.
func (b *outbox) forgetDrafts() {
	if b.queue.backlog > 0 {
		return
	}
	for id, d := range b.drafts {
		if d.ended && b.rests(d) == 0 && b.queue.flights[id] == nil && b.queue.taking[id] == nil {
			delete(b.drafts, id)
		}
	}
}

// beginDraft commits and sends the beginning; nil if something else is sent in the
// conversation. It uses up one hold of conv.
func (c *Channel) beginDraft(ctx context.Context, conv *conversation, job turnJob, agent, text string) (*stream, error) {
	o := &outgoing{message: message.Text(text), agent: agent}
	o.message.Meta = message.Meta{message.MetaDraft: json.RawMessage("true")}
	s := &stream{c: c, routing: job.routing, replyTo: job.id, draft: &draft{known: make(chan struct{})}}
	w, l := c.newWaited(conv, o), c.outlook()
	w.row[0] = c.prepare(o, &l, job.routing)
	ch := c.lock()
	if w.row[0].State == ledger.Failed || text == "" || !ch.queue.reserve(conv, o) {
		ch.release(conv)
		ch.unlock()
		return nil, nil
	}
	ch.unlock()
	w.row[0].Tracked, o.draft = true, s.draft
	if frames := o.parcel.Frames; len(frames) == 1 {
		s.draft.sure = frames[0].Text
	}
	sent, err := w.commit(ctx)
	if err != nil {
		return nil, err
	}
	s.id = sent.ID
	s.now.text, s.now.at = text, c.hub.Steady()
	return s, nil
}

// offerDraft writes an edit, if it is known how, and time for it.
func (s *showing) offerDraft() {
	ch := s.c.lock()
	wait := s.draft.due.Sub(s.c.hub.Steady())
	select {
	case <-s.draft.known:
	default:
		wait = ch.outbox.editInterval()
	}
	if wait > 0 {
		s.stop = s.c.hub.After(wait, s.due)
		ch.unlock()
		return
	}
	a, handle := ch.taker(), s.draft.handle
	if a == nil || handle == "" || !a.view.Caps.Has(wire.CapUpdateMessage) || s.routing.Overhead() > wire.MaxFrame/2 {
		ch.unlock()
		return
	}
	frame := render.Draft(a.view, handle, s.text, wire.MaxFrame-s.routing.Overhead())
	if frame.Text == s.draft.sure || frame.Text == s.draft.edited { // platforms refuse what changes nothing
		ch.unlock()
		return
	}
	// One that the port drops, since its adapter is behind, counts too: nobody knows of it.
	if a.port.Offer(Parcel{Key: s.id.String(), Routing: s.routing, Frames: []wire.Frame{frame}}) {
		ch.outbox.wrote(s.draft)
		s.draft.sure, s.draft.edited = "", frame.Text
	}
	ch.unlock()
	a.port.Flush()
}

// endDraft makes the beginning the whole answer. What an edit can't show comes
// behind it. It uses up one hold of conv.
func (s *stream) endDraft(ctx context.Context, conv *conversation, o *outgoing, status message.Status) (Sent, error) {
	c := s.c
	late := make(chan struct{})
	stop := c.hub.After(draftWait, func() { close(late) })
	select {
	case <-s.draft.known:
	case <-late:
	case <-ctx.Done():
	}
	stop()
	ch := c.lock()
	handle := s.draft.handle
	delete(ch.outbox.drafts, s.id)
	s.draft.ended = true
	rest, more := beyondText(&o.message)
	if more {
		conv.held++ // for what comes behind it
	}
	ch.unlock()
	text := &outgoing{message: o.message, agent: o.agent}
	if handle != "" { // else it is a new message
		text.draft = s.draft
	}
	if more {
		text.message = message.Text(message.RollUp(o.message.Parts))
		if text.message.Text == "" {
			text.message.Text = s.shown()
		}
	}
	text.message.Status = status
	meta := message.Meta{}
	for k, v := range text.message.Meta {
		meta[k] = v
	}
	text.message.Meta = streamed(meta).With(message.MetaEdits, s.id.String()).With(message.MetaPreviewHandle, handle)
	sent, err := c.send(ctx, conv, text, &s.routing, s.replyTo, false)
	if !more {
		return sent, err
	}
	if err != nil {
		c.release(conv)
		return sent, err
	}
	o.message.Parts = rest
	o.message.Text = render.Text(&o.message)
	return c.send(ctx, conv, o, &s.routing, s.replyTo, false)
}

// isLastEdit reports whether a message makes a draft the whole answer.
func isLastEdit(m *message.Message) bool {
	if m == nil || len(m.Meta) == 0 {
		return false
	}
	_, edits := m.Meta[message.MetaEdits]
	_, streamed := m.Meta[message.MetaStreamed]
	return edits && streamed
}

// beyondText are the parts of a message that an edit can't show; false = there
// are none.
func beyondText(m *message.Message) (rest []message.Part, more bool) {
	for _, p := range m.Parts {
		switch p.Type {
		case message.TypeMarkdown:
			rest = append(rest, p)
		case message.TypeText:
		default:
			rest, more = append(rest, p), true
		}
	}
	return rest, more
}
