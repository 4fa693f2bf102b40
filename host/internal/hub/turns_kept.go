package hub

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Bounds of what is kept of conversations for the turns to come.
const (
	allKept  = 32 << 20  // bytes
	mostKept = 256 << 10 // of one conversation
	fewRows  = 4         // that a turn finds new, mostly: answer and question, and where the turn before it began to read
	mostRows = 200       // if there are more, all is read anew
	spare    = 64        // messages more than a turn is told, since not every turn is told the same
)

// saidBefore is a message of a conversation as a form made it.
type saidBefore struct {
	id      ledger.MessageID
	replyTo ledger.MessageID
	in      bool
	bytes   int
	made    any
	signed  *message.Message // of a message with addresses that end, which is made anew each time: as it was stored
}

// make makes what an agent is told of a message.
func (h *history) make(e *ledger.Entry, m message.Message) saidBefore {
	s := saidBefore{id: e.ID, replyTo: e.ReplyTo, in: e.Direction == ledger.In}
	parts := h.t.past.c.hub.Attachments.Signed(m.Parts, 0)
	if len(parts) > 0 && &parts[0] != &m.Parts[0] {
		s.signed, s.bytes = &m, pastFactor*e.Size()
		return s
	}
	s.made, s.bytes = h.form.Make(&m)
	return s
}

// before reports whether the turn is told of the message. An answer to an earlier turn
// may be younger than the turn's message; a question that is younger waits behind it.
func (s *saidBefore) before(t *Turn) bool {
	return s.replyTo != t.ID && s.id != t.ID && (!s.in || s.id < t.ID)
}

// tell is what the turn is told, oldest first.
func (h *history) tell() []any {
	out := make([]any, 0, h.most)
	for i := range h.said {
		s := &h.said[i]
		if len(out) >= h.most {
			break
		}
		if !s.before(h.t) {
			continue
		}
		made := s.made
		if s.signed != nil {
			m := *s.signed
			m.Parts = h.t.past.c.hub.Attachments.Signed(m.Parts, 0)
			made, _ = h.form.Make(&m)
		}
		out = append(out, made)
	}
	slices.Reverse(out)
	return out
}

// keptPast is what a turn found of a conversation, for the next one. It does not
// change.
//
// What is stored does not change either, once it is said, but by messages that come
// behind it: those are read by each turn, up to head. If one edits or deletes an
// earlier one, all is read anew, as it is if what was kept is not all there any more:
// of a channel always the oldest message goes first.
type keptPast struct {
	form  Form
	head  ledger.MessageID
	said  []saidBefore // newest first
	whole bool         // there is nothing older
	bytes int
}

// keep is what the next turn need not read; nil = nothing.
func (h *history) keep() *keptPast {
	k := &keptPast{form: h.form, head: h.head, said: slices.Clone(h.said[h.loose:]), whole: h.whole}
	if k.head == 0 {
		return nil
	}
	if most := max(0, h.most) + spare; len(k.said) > most {
		k.said, k.whole = slices.Clone(k.said[:most]), false
	}
	k.bytes = int(unsafe.Sizeof(*k)) + 128 // of its place
	for i := range k.said {
		k.bytes += int(unsafe.Sizeof(k.said[i])) + k.said[i].bytes
	}
	if k.bytes > mostKept {
		return nil
	}
	return k
}

// extend gathers what is new since the turn that kept k, and what that one found. known
// is false if all must be read anew.
func (h *history) extend(ctx context.Context, k *keptPast, bytes int) (known bool, err error) {
	if known, err = h.readTo(ctx, k.head, bytes); !known || err != nil {
		return false, err
	}
	if n := len(k.said); n > 0 { // what is deleted goes oldest first
		if _, err := h.t.past.c.hub.Store.Message(ctx, k.said[n-1].id); errors.Is(err, ledger.ErrNotFound) {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("read history: %w", err)
		}
	}
	h.said = append(make([]saidBefore, 0, len(h.said)+len(k.said)), h.said...)
	h.said = append(h.said, k.said...)
	if h.head == 0 {
		h.head = k.head
	}
	for i := range k.said {
		h.size += k.said[i].bytes
		if k.said[i].before(h.t) {
			h.told++
		}
	}
	h.whole = k.whole
	return h.whole || h.told >= h.most, nil
}

// readTo gathers what is newer than the message head; false if that is not found, or
// if something of it changes what is older.
func (h *history) readTo(ctx context.Context, head ledger.MessageID, bytes int) (bool, error) {
	before := ledger.MessageID(0)
	for n, seen := fewRows, 0; seen < mostRows; n = min(2*n, 100) {
		page, err := h.t.past.c.hub.Store.Before(ctx, h.scope(bytes), before, n)
		if err != nil {
			return false, fmt.Errorf("read history: %w", err)
		}
		if len(page) == 0 {
			return false, nil
		}
		for i := range page {
			if page[i].ID == head {
				return true, nil
			}
			h.size += page[i].Size()
			if h.take(&page[i]); h.changed {
				return false, nil
			}
		}
		seen += len(page)
		before = page[len(page)-1].ID
	}
	return false, nil
}

// keptPasts are those of conversations, least recently used out. The zero value is
// ready.
type keptPasts struct {
	mu    sync.Mutex // guards what follows
	bytes int
	order list.List               // of *keptPlace, used last first
	by    map[int64]*list.Element // by the conversation's id
}

type keptPlace struct {
	conversation int64
	past         *keptPast
}

// of is what is kept of a conversation in a form; nil = nothing.
func (p *keptPasts) of(conversation int64, form Form) *keptPast {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.by[conversation]
	if e == nil {
		return nil
	}
	p.order.MoveToFront(e)
	if k := e.Value.(*keptPlace).past; k.form == form {
		return k
	}
	return nil
}

// put keeps what a turn found; nil = nothing any more.
func (p *keptPasts) put(conversation int64, k *keptPast) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.by[conversation]; e != nil {
		p.drop(e)
	}
	if k == nil {
		return
	}
	if p.by == nil {
		p.by = map[int64]*list.Element{}
	}
	p.by[conversation] = p.order.PushFront(&keptPlace{conversation, k})
	for p.bytes += k.bytes; p.bytes > allKept; {
		p.drop(p.order.Back())
	}
}

func (p *keptPasts) drop(e *list.Element) {
	place := p.order.Remove(e).(*keptPlace)
	delete(p.by, place.conversation)
	p.bytes -= place.past.bytes
}
