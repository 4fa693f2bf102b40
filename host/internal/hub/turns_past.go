package hub

import (
	"context"
	"errors"
	"fmt"
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

// Past is what was said before a turn's message, with the memory that it takes.
type Past struct {
	Made []any // oldest first: what a Form made of each message
	held []*paging.Share
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
	all  *paging.Budget
	kept keptPasts

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

// Form makes of a message what an agent is told of it. Forms are compared with ==.
type Form interface {
	// Make's result is kept for later turns: it depends on nothing but the message,
	// and nobody changes it. bytes is what it takes of memory.
	Make(m *message.Message) (made any, bytes int)
}

// History is what was said in the conversation before the turn's message, as form makes
// it: at most n messages, and roughly ledger.PageBytes of them. Commands, notices of
// the host, reactions and what was taken back or is still being said are not among it;
// what was edited is as it was left. It waits while other turns have as much in memory
// as the host allows; who calls it must have none in memory then.
func (t *Turn) History(ctx context.Context, n int, form Form) (*Past, error) {
	if t.past.c == nil {
		return &Past{}, nil
	}
	past, err := t.history(ctx, n, form, shortPast)
	if errors.Is(err, ledger.ErrPageBytes) {
		past, err = t.history(ctx, n, form, ledger.PageBytes)
	}
	return past, err
}

// history is History, with room for so many bytes of messages. If there are more, and
// it is less than a page, the error is ledger.ErrPageBytes.
func (t *Turn) history(ctx context.Context, n int, form Form, bytes int) (past *Past, err error) {
	past = &Past{}
	agent := ""
	if t.past.r != nil {
		agent = t.past.r.agent
	}
	pasts := t.past.c.hub.pasts
	if past.held, err = pasts.take(ctx, agent, pastFactor*int64(bytes)); err != nil {
		return nil, err
	}
	h := newHistory(t, n, form)
	known := false
	if k := pasts.kept.of(t.past.conv.ID, form); k != nil {
		known, err = h.extend(ctx, k, bytes)
	}
	if !known && err == nil {
		h = newHistory(t, n, form)
		err = h.read(ctx, bytes)
	}
	if err != nil {
		past.Release()
		return nil, err
	}
	pasts.kept.put(t.past.conv.ID, h.keep())
	past.Made = h.tell()
	past.Keep(pastFactor * int64(h.size))
	return past, nil
}

// history gathers messages, newest first.
type history struct {
	t    *Turn
	form Form
	most int // messages that the turn is told …
	told int // … and those found so far
	size int // bytes of the messages that were looked at

	said    []saidBefore
	gone    map[string]bool            // ids of messages that were taken back
	edits   map[string]message.Message // what messages say by now, by id
	changed bool                       // one of the two has something
	whole   bool                       // there is nothing older, or nobody looks at it

	// What is still being said may change, and what was found before it, which is
	// newer, is read again by the next turn: the first so many of said. Up to head
	// nothing changes but by further messages; 0 = nothing of that was found yet.
	loose int
	head  ledger.MessageID
}

// newHistory finds room for the turn's own message, which is not among it.
func newHistory(t *Turn, n int, form Form) *history {
	return &history{t: t, form: form, most: n - 1}
}

func (h *history) scope(bytes int) ledger.Scope {
	scope := ledger.Scope{Channel: h.t.past.c.tail.Channel, Conversation: &h.t.past.conv.Key}
	if bytes < ledger.PageBytes {
		scope.Bytes = bytes
	}
	return scope
}

// read gathers the messages of the conversation.
func (h *history) read(ctx context.Context, bytes int) error {
	scope := h.scope(bytes)
	before := ledger.MessageID(0)
	for seen := 0; h.told < h.most && seen < maxHistory && h.size < ledger.PageBytes; {
		page, err := h.t.past.c.hub.Store.Before(ctx, scope, before, min(2*(h.most+1), 100))
		if err != nil {
			return fmt.Errorf("read history: %w", err)
		}
		if len(page) == 0 {
			h.whole = true
			return nil
		}
		for i := range page {
			h.size += page[i].Size()
			if h.told < h.most || h.head == 0 { // else there is enough, to the end of the page
				h.take(&page[i])
			}
		}
		if scope.Bytes > 0 && h.size > bytes {
			return ledger.ErrPageBytes
		}
		if seen += len(page); seen >= maxHistory {
			h.whole = true
		}
		before = page[len(page)-1].ID
	}
	return nil
}

// take takes a message that is older than all before, if it belongs there.
func (h *history) take(e *ledger.Entry) {
	h.gather(e)
	switch {
	case e.Status != "" && e.Status != ledger.StatusCompleted && e.Status != ledger.StatusError:
		h.loose, h.head = len(h.said), 0
	case h.head == 0:
		h.head = e.ID
	}
}

// gather notes what the message says, or does to an older one.
func (h *history) gather(e *ledger.Entry) {
	m := restore(*e)
	switch act := render.ActOf(&m); {
	case act.Kind == render.ActReact:
		return
	case act.Kind == render.ActDelete:
		if h.gone == nil {
			h.gone = map[string]bool{}
		}
		h.gone[act.ID], h.changed = true, true
		return
	case act.Kind == render.ActEdit && act.ID != "":
		if h.edits == nil {
			h.edits = map[string]message.Message{}
		}
		if _, ok := h.edits[act.ID]; !ok {
			h.edits[act.ID] = m
		}
		h.changed = true
		return
	}
	if !counts(e, &m) || h.gone[m.ID] {
		return
	}
	if last, ok := h.edits[m.ID]; ok {
		m.Text, m.Parts = last.Text, last.Parts
	}
	s := h.make(e, m)
	h.said = append(h.said, s)
	if s.before(h.t) {
		h.told++
	}
}

// counts reports what belongs to the history of later turns.
func counts(e *ledger.Entry, m *message.Message) bool {
	if m.Status == message.StatusStreaming {
		return false
	}
	if e.Direction == ledger.In {
		_, _, isCommand := parseCommand(m.Text, m.Meta.String(message.MetaAction))
		return e.Reason != ledger.ReasonRejected && !isCommand
	}
	ofHost := e.Origin.Agent == "" && e.ReplyTo != 0 // the answer of a command, or an apology
	return !ofHost && m.Meta[message.MetaNotice] == nil
}
