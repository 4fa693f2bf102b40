package hub

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// streamInterval is the least time between two frames of a stream, unless the
// far end asks for more: each carries all of the text.
const streamInterval = 50 * time.Millisecond

// stream is an answer that is shown while it is made. Its row is committed
// before its first frame leaves, and filled in at its end. Where there are no
// streams, but edits, it is a draft.
type stream struct {
	c       *Channel
	id      ledger.MessageID
	turn    int64
	replyTo ledger.MessageID
	routing wire.Routing
	draft   *draft // nil = the far end shows streams

	mu  sync.Mutex
	now showing // had by lock alone
}

// showing is how far a stream has come. Only stream.lock gives it.
type showing struct {
	*stream

	text string      // as far as it has come
	n    int64       // frames of it
	at   time.Time   // of the last frame
	stop func() bool // ends the wait for the next frame; nil = none is due
	over bool
}

// lock waits for the stream's mutex. unlock must follow soon. It may be held while a
// channel is locked, and not the other way round.
func (s *stream) lock() *showing {
	s.mu.Lock()
	s.now.stream = s
	return &s.now
}

func (s *showing) unlock() { s.mu.Unlock() }

// beginStream commits the row of an answer that is about to be streamed; nil if
// nobody is there who shows it while it is made, or older messages wait.
func (c *Channel) beginStream(ctx context.Context, conv *conversation, job turnJob, agent, text string) (*stream, error) {
	conv, err := c.hold(ctx, conv.Key)
	if err != nil {
		return nil, err
	}
	ch := c.lock()
	a := ch.taker()
	if a != nil && !a.view.Caps.Has(wire.CapStream) && a.view.Caps.Has(wire.CapUpdateMessage|wire.CapAck) && !a.handleless {
		ch.unlock() // its lane tells whether older messages wait
		return c.beginDraft(ctx, conv, job, agent, text)
	}
	if a == nil || ch.queue.backlog > 0 || !a.view.Caps.Has(wire.CapStream) {
		ch.release(conv)
		ch.unlock()
		return nil, nil
	}
	ch.unlock()
	w := c.newWaited(conv, &outgoing{agent: agent})
	w.row[0] = ledger.Row{
		Direction: ledger.Out, State: ledger.Sent, Status: ledger.StatusStreaming, ReplyTo: job.id, Meta: marshal(streamed(nil)),
		Origin: packed.AppendOrigin(nil, ledger.Origin{SessionKey: job.routing.SessionKey, ReplyCtx: string(job.routing.ReplyCtx), Agent: agent}),
	}
	sent, err := w.commit(ctx)
	if err != nil {
		return nil, err
	}
	return &stream{c: c, id: sent.ID, turn: w.row[0].Turn, routing: job.routing, replyTo: job.id}, nil
}

// streamed is the metadata of a message that was shown while it was made.
func streamed(m message.Meta) message.Meta {
	out := message.Meta{message.MetaStreamed: json.RawMessage("true")}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// show offers what there is of the text; lossy, and not too often.
func (s *stream) show(text string) {
	now := s.lock()
	defer now.unlock()
	now.text = text
	if now.over || now.stop != nil {
		return // it goes with what is due
	}
	if wait := s.interval() - s.c.hub.Steady().Sub(now.at); wait > 0 {
		now.stop = s.c.hub.After(wait, s.due)
		return
	}
	now.offer()
}

func (s *stream) due() {
	now := s.lock()
	defer now.unlock()
	now.stop = nil
	if !now.over {
		now.offer()
	}
}

func (s *stream) shown() string {
	now := s.lock()
	defer now.unlock()
	return now.text
}

// interval is how long the far end wants between two frames.
func (s *stream) interval() time.Duration {
	ch := s.c.lock()
	defer ch.unlock()
	if a := ch.attached; s.draft == nil && (a == nil || a.view.Profile.EditIntervalMS == 0) {
		return streamInterval
	}
	return ch.outbox.editInterval()
}

// offer writes the frame.
func (s *showing) offer() {
	s.at = s.c.hub.Steady()
	s.written()
	if s.draft != nil {
		s.offerDraft()
		return
	}
	ch := s.c.lock()
	a := ch.taker()
	if a == nil || !a.view.Caps.Has(wire.CapStream) || s.routing.Overhead() > wire.MaxFrame/2 {
		ch.unlock()
		return
	}
	id := s.id.String()
	frame := render.Stream(a.view, id, s.text, wire.MaxFrame-s.routing.Overhead())
	s.n++
	frame.Draft = s.n
	a.port.Offer(Parcel{Key: id, Routing: s.routing, Frames: []wire.Frame{frame}})
	ch.unlock()
	a.port.Flush()
}

// close stops the frames.
func (s *stream) close() {
	now := s.lock()
	defer now.unlock()
	now.over = true
	if now.stop != nil {
		now.stop()
	}
}

// end commits what the message says after all, and sends it as the end of the
// stream. It uses up one hold of conv.
func (s *stream) end(ctx context.Context, conv *conversation, o *outgoing, status message.Status) (Sent, error) {
	s.close()
	c := s.c
	if s.draft != nil {
		return s.endDraft(ctx, conv, o, status)
	}
	o.message.Meta = streamed(o.message.Meta)
	w, l := c.newWaited(conv, o), c.outlook()
	row := &w.row[0]
	w.unit.Set, _ = c.plan(&l, conv, o, s.routing, false, row) // the row says what became of it
	row.ID, row.Turn, row.Status, row.ReplyTo = s.id, s.turn, ledger.Status(status), s.replyTo
	o.parcel.Late = time.Since(s.id.Time()) // its id is as old as its first frame
	w.ends = true
	w.unit.Settle = []ledger.Settlement{{ID: s.id, State: row.State, Reason: row.Reason, Notes: row.Notes, Tracked: row.Tracked, Content: &ledger.Content{
		Status: ledger.Status(status), Text: row.Text, Parts: row.Parts, Meta: row.Meta, Offers: row.Offers,
	}}}
	return w.commit(ctx)
}
