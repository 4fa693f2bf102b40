package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// reply is the Reply of one turn.
type reply struct {
	c     *Channel
	conv  *conversation
	job   turnJob
	agent string

	counts *AgentTally // of a turn that was handed over; nil of a notice
	began  time.Time   // then

	streaming sync.Mutex // one call of Stream or Send at a time; guards stream, said and streamed
	stream    *stream    // that is open; nil = none
	said      string     // what Stream was told that nobody was shown
	streamed  bool       // Stream was called

	mu     sync.Mutex // guards what follows
	sent   bool
	last   bool // the last answer is on its way, and will end the turn
	typing bool
	over   bool
	timer  *time.Timer
}

var _ Reply = (*reply)(nil)

// Send implements Reply.
func (r *reply) Send(ctx context.Context, m message.Message) (ledger.MessageID, error) {
	if _, over := r.answered(); over {
		return 0, errOver
	}
	o, err := r.outgoing(ctx, m, r.agent)
	if err != nil {
		return 0, err
	}
	return r.sendKept(ctx, o)
}

// outgoing makes the message ready to be sent.
func (r *reply) outgoing(ctx context.Context, m message.Message, agent string) (*outgoing, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	o := &outgoing{message: m, agent: agent}
	o.message.Meta = stamped(m.Meta, r.job.message.Meta, r.job.id.Time())
	if err := r.c.hub.keep(ctx, r.c.owner, &o.message); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	o.chosen = r.c.transfers(&o.message)
	return o, nil
}

func (r *reply) sendKept(ctx context.Context, o *outgoing) (ledger.MessageID, error) {
	r.streaming.Lock()
	defer r.streaming.Unlock()
	s, ends := r.stream, !o.apart && render.ActOf(&o.message).Kind == render.ActNone
	if !ends {
		s = nil
	}
	sent, err := r.untilStored(ctx, func(conv *conversation) (Sent, error) {
		if s != nil {
			return s.end(ctx, conv, o, message.StatusCompleted)
		}
		return r.c.send(ctx, conv, o, &r.job.routing, r.job.id, false)
	})
	if s != nil {
		r.stream = nil
	}
	if ends {
		r.said = ""
	}
	if err == nil {
		r.mu.Lock()
		r.sent = true
		r.mu.Unlock()
	}
	return sent.ID, err
}

// untilStored commits an answer. While the disk takes nothing it tries again:
// nobody would ask the agent once more, and what it said would be lost. commit
// uses up one hold of its conversation.
func (r *reply) untilStored(ctx context.Context, commit func(*conversation) (Sent, error)) (Sent, error) {
	return r.c.untilStored(ctx, r.conv.Key, commit)
}

func (c *Channel) untilStored(ctx context.Context, key string, commit func(*conversation) (Sent, error)) (Sent, error) {
	return retry(ctx, func() (Sent, error) {
		conv, err := c.hold(ctx, key)
		if err != nil {
			return Sent{}, err
		}
		return commit(conv)
	})
}

// retry does it until the disk does not fail, or ctx ends.
func retry[T any](ctx context.Context, do func() (T, error)) (T, error) {
	return backoff.Retry(ctx, func() (T, error) {
		v, err := do()
		return v, lasting(err)
	}, backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: 100 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 5 * time.Second,
	}), backoff.WithMaxElapsedTime(0))
}

// lasting marks the errors that trying again does not help.
func lasting(err error) error {
	if err == nil || ledger.Failing(err) {
		return err
	}
	return backoff.Permanent(err)
}

// answered reports whether anything was sent, and whether the last answer is on
// its way, whose commit ends the turn.
func (r *reply) answered() (sent, posted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent, r.last
}

// apologize tells the user that no answer comes.
func (r *reply) apologize(why error) {
	if errors.Is(why, ErrLate) {
		r.tell("Sorry, the agent did not answer in time. Please try again.")
		return
	}
	r.tell("Sorry, no answer could be made. Please try again.")
}

// Stream implements Reply. A far end that shows no streams gets the final
// message alone.
func (r *reply) Stream(text string) {
	r.streaming.Lock()
	defer r.streaming.Unlock()
	if !r.streamed && r.counts != nil {
		r.streamed = true
		r.counts.first.Took(r.began)
	}
	if r.stream == nil {
		s, err := r.c.beginStream(r.c.hub.ctx, r.conv, r.job, r.agent, text)
		if err != nil {
			r.c.hub.Log.Warn("answer not shown while it is made", "message", r.job.id, "error", forLog(err))
		}
		if r.stream = s; s == nil {
			r.said = text
			return
		}
	}
	r.stream.show(text)
}

// breakStream ends a stream that the agent left open: with an error if it
// failed, else with what it said until then. Where the far end shows no streams
// that is sent now.
func (r *reply) breakStream(err error) {
	r.streaming.Lock()
	defer r.streaming.Unlock()
	s := r.stream
	if s == nil && r.said == "" {
		return
	}
	r.stream = nil
	if r.c.hub.ctx.Err() != nil { // the next start ends it
		if s != nil {
			s.close()
		}
		return
	}
	status := message.StatusCompleted
	if err != nil {
		status = message.StatusError
	}
	ctx := r.c.hub.ctx
	sent, herr := r.untilStored(ctx, func(conv *conversation) (Sent, error) {
		if s == nil { // to a far end that shows no streams
			o := r.broken(r.said)
			o.message.Status = status
			return r.c.send(ctx, conv, o, &r.job.routing, r.job.id, false)
		}
		return s.end(ctx, conv, r.broken(s.shown()), status)
	})
	if herr != nil {
		r.c.hub.Log.Error("broken answer not ended", "message", sent.ID, "question", r.job.id, "error", herr)
	}
}

// broken is what there is of an answer whose end never came.
func (r *reply) broken(text string) *outgoing {
	o := &outgoing{message: message.Text(text), agent: r.agent}
	o.message.Meta = stamped(nil, r.job.message.Meta, r.job.id.Time())
	return o
}

// Typing implements Reply.
func (r *reply) Typing(on bool) {
	r.show(on, false)
}

func (r *reply) expectTyping(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(after, func() { r.Typing(true) })
}

func (r *reply) endTyping() {
	r.show(false, true)
}

// show offers a typing frame if that changes anything. After one that is the last,
// nothing does.
func (r *reply) show(on, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if r.over = last; last && r.timer != nil {
		r.timer.Stop()
	}
	if r.typing != on {
		r.typing = on
		r.c.typing(r.job.routing, on)
	}
}
