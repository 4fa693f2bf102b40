package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
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
// that is not known. ledger.ErrNotFound = the channel has no such message.
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

// Past is what was said before, with the memory that it takes.
type Past struct {
	Messages []message.Message // oldest first: the last one is the turn's own
	held     []*paging.Share
}

// Keep says how many bytes are left in memory of what was made of the messages.
func (p *Past) Keep(bytes int64) {
	for _, s := range p.held {
		s.Keep(bytes)
	}
}

// Release says that nothing of it is in memory any more. It must be called.
func (p *Past) Release() { p.Keep(0) }

// Bounds of the memory for what agents are told was said before. What is made of a
// message takes a multiple of its bytes.
const (
	pastFactor = 4
	shortPast  = 128 << 10 // bytes of messages that most conversations have less of
	allPasts   = 96 << 20  // for all agents …
	pastsOfOne = 64 << 20  // … and for each: one that takes none of what it is sent leaves room for others
)

// pasts is the memory for what agents are told.
type pasts struct {
	all *paging.Budget

	mu sync.Mutex                // guards of
	of map[string]*paging.Budget // by agent
}

func newPasts() *pasts {
	return &pasts{all: paging.NewBudget(allPasts, 0), of: map[string]*paging.Budget{}}
}

// take waits for room, which an agent's other turns give back.
func (p *pasts) take(ctx context.Context, agent string, bytes int64) ([]*paging.Share, error) {
	p.mu.Lock()
	one := p.of[agent]
	if one == nil {
		one = paging.NewBudget(pastsOfOne, 0)
		p.of[agent] = one
	}
	p.mu.Unlock()
	mine, err := one.Take(ctx, bytes)
	if err != nil {
		return nil, err
	}
	ours, err := p.all.Take(ctx, bytes) // nobody who has some of it waits for an agent's own
	if err != nil {
		mine.Release()
		return nil, err
	}
	return []*paging.Share{mine, ours}, nil
}

// History is what was said in the conversation: at most n messages, and roughly
// ledger.PageBytes of them. Commands, notices of the host, reactions
// and what was taken back or is still being said are not among it; what was
// edited is as it was left. It waits while other turns have as much in memory as the
// host allows; who calls it must have none in memory then.
func (t *Turn) History(ctx context.Context, n int) (*Past, error) {
	if t.past.c == nil {
		return &Past{Messages: []message.Message{t.Message}}, nil
	}
	past, err := t.history(ctx, n, shortPast)
	if errors.Is(err, ledger.ErrPageBytes) {
		past, err = t.history(ctx, n, ledger.PageBytes)
	}
	return past, err
}

// history is History, with room for so many bytes of messages. If there are more, and
// it is less than a page, the error is ledger.ErrPageBytes.
func (t *Turn) history(ctx context.Context, n, bytes int) (past *Past, err error) {
	past = &Past{}
	agent := ""
	if t.past.r != nil {
		agent = t.past.r.agent
	}
	if past.held, err = t.past.c.hub.pasts.take(ctx, agent, pastFactor*int64(bytes)); err != nil {
		return nil, err
	}
	h := history{t: t, n: n, out: []message.Message{t.Message}, gone: map[string]bool{}, edits: map[string]message.Message{}}
	if err := h.read(ctx, bytes); err != nil {
		past.Release()
		return nil, err
	}
	slices.Reverse(h.out)
	past.Messages = h.out
	past.Keep(pastFactor * int64(h.size))
	return past, nil
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

// read gathers the messages of the conversation.
func (h *history) read(ctx context.Context, bytes int) error {
	c := h.t.past.c
	scope := ledger.Scope{Channel: c.tail.Channel, Conversation: &h.t.past.conv.Key}
	if bytes < ledger.PageBytes {
		scope.Bytes = bytes
	}
	before := ledger.MessageID(0)
	for seen := 0; len(h.out) < h.n && seen < maxHistory && h.size < ledger.PageBytes; {
		page, err := c.hub.Store.Before(ctx, scope, before, min(2*h.n, 100))
		if err != nil {
			return fmt.Errorf("read history: %w", err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			h.add(&page[i])
			h.size += page[i].Size()
		}
		if scope.Bytes > 0 && h.size > bytes {
			return ledger.ErrPageBytes
		}
		seen += len(page)
		before = page[len(page)-1].ID
	}
	return nil
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
