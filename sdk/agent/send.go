package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Content is what an agent says: text, parts, a card or buttons.
type Content struct {
	Text     string // with Card it stands before it; with Buttons it is theirs
	Parts    []message.Part
	Card     *wire.Card
	Buttons  [][]wire.Button
	Metadata message.Meta
	ReplyTo  string // message that it answers; "" = the turn's
	Update   string // message that it changes, by the id that Send gave; "" = none
}

// frame is the content without its place.
func (c Content) frame() *agentwire.FromAgent {
	f := &agentwire.FromAgent{
		Type: agentwire.TypeMessage, Parts: message.AppendParts(nil, c.Parts), Card: c.Card, Buttons: c.Buttons, Metadata: c.Metadata, ReplyTo: c.ReplyTo,
	}
	if c.Text != "" || len(c.Parts) == 0 {
		f.Text = &c.Text
	}
	switch {
	case c.Update != "":
		f.Type, f.Update = agentwire.TypeUpdate, &agentwire.Earlier{MessageID: c.Update}
	case c.Card != nil:
		f.Type = agentwire.TypeCard
	case c.Buttons != nil:
		f.Type = agentwire.TypeButtons
	}
	return f
}

// pending is a frame that waits for the host's word.
type pending struct {
	id    string
	frame []byte
	done  chan answer // holds one
}

type answer struct {
	id    string
	err   error
	again bool // it may be sent again later
}

// Say sends what belongs to no turn to a conversation of a channel that is routed
// to this agent. It returns when the message is on the host's disk, with its id.
func (a *Agent) Say(ctx context.Context, channel, conversation string, c Content) (id string, err error) {
	f := c.frame()
	f.Channel, f.ConversationID = channel, &conversation
	return a.ask(ctx, f)
}

var errFrame = errors.New("the message is larger than a frame")

// ask sends a frame and waits for the host's word, over as many connections as
// that takes.
func (a *Agent) ask(ctx context.Context, f *agentwire.FromAgent) (id string, err error) {
	a.mu.Lock()
	f.MessageID = a.ids.next()
	a.mu.Unlock()
	p := &pending{id: f.MessageID, frame: f.Append(nil), done: make(chan answer, 1)}
	if len(p.frame) > wire.MaxFrame {
		return "", fmt.Errorf("%w: %d bytes, at most %d", errFrame, len(p.frame), wire.MaxFrame)
	}
	for {
		if err := a.put(p); err != nil {
			return "", err
		}
		select {
		case got := <-p.done:
			if !got.again {
				return got.id, got.err
			}
		case <-ctx.Done():
			a.settle(&agentwire.Ack{MessageID: p.id, Error: "given up"})
			return "", fmt.Errorf("waiting for the host's word: %w", context.Cause(ctx))
		}
		select {
		case <-time.After(a.timing.firstWait):
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for the host to take it: %w", context.Cause(ctx))
		}
	}
}

// put writes a frame, now or over the next connection.
func (a *Agent) put(p *pending) error {
	a.mu.Lock()
	if a.stopped {
		a.mu.Unlock()
		return ErrStopped
	}
	a.pending = append(a.pending, p)
	a.out.Put(p.frame)
	a.mu.Unlock()
	a.out.Flush()
	return nil
}

// settle takes the host's word on a frame; false = nobody waits for it.
func (a *Agent) settle(ack *agentwire.Ack) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, p := range a.pending {
		if p.id != ack.MessageID {
			continue
		}
		a.pending = append(a.pending[:i:i], a.pending[i+1:]...)
		if ack.OK {
			p.done <- answer{id: ack.ID}
		} else {
			p.done <- answer{err: &RejectedError{ack.Error}, again: ack.Retryable}
		}
		return true
	}
	return false
}

// ids gives frames ids that no other run of the program gives.
type ids struct {
	run string
	n   int
}

func newIDs() ids {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return ids{run: hex.EncodeToString(b)}
}

func (i *ids) next() string {
	i.n++
	return i.run + "-" + strconv.Itoa(i.n)
}

// memory holds the latest of many names.
type memory struct {
	most  int
	known map[string]struct{}
	order []string
}

func (m *memory) has(name string) bool {
	_, ok := m.known[name]
	return ok
}

func (m *memory) add(name string) {
	if m.has(name) {
		return
	}
	if m.known == nil {
		m.known = map[string]struct{}{}
	}
	if len(m.order) >= m.most {
		delete(m.known, m.order[0])
		m.order = m.order[1:]
	}
	m.known[name] = struct{}{}
	m.order = append(m.order, name)
}
