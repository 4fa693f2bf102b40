package hub

import (
	"context"
	"fmt"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// maxHistory is how many rows History looks at for the messages that it wants.
const maxHistory = 1000

// past is where a turn finds what was said before it; the zero value has none.
type past struct {
	c    *Channel
	conv *conversation
	r    *reply // nil = the agent is asked for an answer in the message's own commit
}

// Envelope is the turn's message as those outside the host see it.
func (t *Turn) Envelope() message.Envelope {
	e := message.Envelope{
		ID: t.Message.ID, Role: t.Message.Role, Status: t.Message.Status, CreatedAt: t.ID.Time().UTC().Format(message.TimeFormat),
		Parts: t.Message.All(), Metadata: t.Message.Meta,
	}
	e.SessionID, e.TurnIndex = t.Session(), t.Index
	return e
}

// Session is the conversation's id, which no other conversation of the host has.
func (t *Turn) Session() string {
	if t.past.conv == nil {
		return ""
	}
	return ledger.MessageID(t.past.conv.ID).String()
}

// Cursor is the place in the conversation's list of messages behind which those
// before the turn's come.
func (t *Turn) Cursor() string { return ledger.Cursor(int64(t.ID)) }

// Handle is what the platform knows an earlier message of the channel by; "" if
// that is not known. store.ErrNotFound = the channel has no such message.
func (t *Turn) Handle(ctx context.Context, id string) (string, error) {
	mid, err := ledger.ParseMessageID(id)
	if err != nil || t.past.c == nil {
		return "", ledger.ErrNotFound
	}
	e, err := t.past.c.hub.Store.Message(ctx, mid)
	if err == nil && e.Channel != t.past.c.tail.Channel {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	return packed.EditHandle(&e), nil
}

// History is what was said in the conversation, oldest first: at most n messages,
// the last of which is the turn's own. Commands, notices of the host, reactions
// and what was taken back or is still being said are not among it; what was
// edited is as it was left.
func (t *Turn) History(ctx context.Context, n int) ([]message.Message, error) {
	h := history{t: t, n: n, out: []message.Message{t.Message}, gone: map[string]bool{}, edits: map[string]message.Message{}}
	if t.past.c == nil {
		return h.out, nil
	}
	scope := ledger.Scope{Channel: t.past.c.tail.Channel, Conversation: &t.past.conv.Key}
	before := ledger.MessageID(0)
	for seen := 0; len(h.out) < n && seen < maxHistory && h.size < ledger.PageBytes; {
		page, err := t.past.c.hub.Store.Before(ctx, scope, before, min(2*n, 100))
		if err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			h.add(&page[i])
			h.size += page[i].Size()
		}
		seen += len(page)
		before = page[len(page)-1].ID
	}
	slices.Reverse(h.out)
	return h.out, nil
}

// history gathers messages, newest first.
type history struct {
	t     *Turn
	n     int
	size  int // bytes of the messages that were looked at
	out   []message.Message
	gone  map[string]bool            // ids of messages that were taken back
	edits map[string]message.Message // what messages say by now, by id
}

// add takes a message that is older than all before, if it belongs there.
func (h *history) add(e *ledger.Entry) {
	m := restore(*e)
	switch act := render.ActOf(&m); {
	case act.Kind == render.ActReact, len(h.out) >= h.n:
		return
	case act.Kind == render.ActDelete:
		h.gone[act.ID] = true
		return
	case act.Kind == render.ActEdit && act.ID != "":
		if _, ok := h.edits[act.ID]; !ok {
			h.edits[act.ID] = m
		}
		return
	}
	if !h.t.isPast(e, &m) || h.gone[m.ID] {
		return
	}
	if last, ok := h.edits[m.ID]; ok {
		m.Text, m.Parts = last.Text, last.Parts
	}
	m.Parts = h.t.past.c.hub.Attachments.Signed(m.Parts, 0)
	h.out = append(h.out, m)
}

// isPast reports what belongs to the history. An answer to an earlier turn may
// be younger than the turn's message; a question that is younger waits behind it.
func (t *Turn) isPast(e *ledger.Entry, m *message.Message) bool {
	if m.Status == message.StatusStreaming || e.ReplyTo == t.ID || e.ID == t.ID {
		return false
	}
	if e.Direction == ledger.In {
		_, _, isCommand := parseCommand(m.Text, m.Meta.String(message.MetaAction))
		return e.ID < t.ID && e.Reason != ledger.ReasonRejected && !isCommand
	}
	ofHost := e.Origin.Agent == "" && e.ReplyTo != 0 // the answer of a command, or an apology
	return !ofHost && m.Meta[message.MetaNotice] == nil
}
