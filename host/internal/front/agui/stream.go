package agui

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
)

// Stream shows the run to its client, from RUN_STARTED to RUN_FINISHED or
// RUN_ERROR. write sends what it gets at once; its error ends the run. So does
// ctx.
func (r *Run) Stream(ctx context.Context, write func([]byte) error) (err error) {
	s := newSpeaker(write, r.front.Hub.Shown)
	defer func() {
		if p := recover(); p != nil { // a defect of ours costs one run
			r.front.Log.Error("run panicked", "error", p, "stack", string(debug.Stack()))
			err = s.end(&event{Type: runError, Message: errInternal.Message, Code: errInternal.Code})
		}
	}()
	s.say(&event{Type: runStarted, ThreadID: r.in.thread, RunID: r.in.run})
	var why *Failure
	if !r.turn.again && r.shows() {
		why, err = r.follow(ctx, s)
	} else {
		why, err = r.repeat(ctx, s)
	}
	switch {
	case err != nil:
		return err
	case why != nil:
		return s.end(&event{Type: runError, Message: why.Message, Code: why.Code})
	}
	return s.end(&event{Type: runFinished, ThreadID: r.in.thread, RunID: r.in.run})
}

// shows reports whether the turn is this run's to show.
func (r *Run) shows() bool {
	r.front.mu.Lock()
	defer r.front.mu.Unlock()
	return r.turn.run == r
}

// follow shows what comes until the turn is over. A turn that is over already is
// written at once, with its end.
func (r *Run) follow(ctx context.Context, s *speaker) (*Failure, error) {
	flush := func() error {
		select {
		case <-r.turn.over:
			return nil
		default:
			return s.flush()
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	why, err := r.wait(ctx, r.turn, s, func() error {
		for _, p := range r.take() {
			s.parcel(&p)
		}
		return flush()
	})
	if err != nil || why == errSlow { // what waits is not all there is
		return why, err
	}
	for _, p := range r.take() {
		s.parcel(&p)
	}
	return why, nil
}

// wait waits until the turn is over, and calls show when something came.
func (r *Run) wait(ctx context.Context, t *turn, s *speaker, show func() error) (*Failure, error) {
	late := time.NewTimer(r.front.RunTime)
	defer late.Stop()
	beat := time.NewTicker(r.front.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-r.wake:
			if err := show(); err != nil {
				return nil, err
			}
			beat.Reset(r.front.Heartbeat)
		case <-beat.C:
			if err := s.write([]byte(alive)); err != nil {
				return nil, err
			}
		case <-t.over:
			if why := r.fallen(); why != nil { // before: something is missing
				return why, nil
			}
			r.front.mu.Lock()
			defer r.front.mu.Unlock()
			return failureOf(t.why), nil
		case <-r.failed:
			return r.fallen(), nil
		case <-late.C:
			return errTime, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// maxRepeated bounds how far back the answers to a message are looked for.
const maxRepeated = 1000

// repeat shows the answers to a message that is not stored anew: once its turn is
// over, those that the client does not have.
func (r *Run) repeat(ctx context.Context, s *speaker) (*Failure, error) {
	f := r.front
	e, err := f.Store.ByPlatformID(ctx, f.key(), refOf(r.conversation, r.in.message.ID))
	if errors.Is(err, ledger.ErrNotFound) {
		return &Failure{"not_found", "the message was deleted since: give it another id to send it again"}, nil
	}
	if err != nil {
		return r.broken("message", err), nil
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	t := f.await(e.ID)
	defer f.forget(t)
	if e, err = f.Store.Message(ctx, e.ID); err != nil {
		return r.broken("message", err), nil
	}
	why := failureOf(e.Reason)
	if e.State == ledger.Received {
		if why, err = r.wait(ctx, t, s, func() error { return nil }); err != nil {
			return nil, err
		}
	}
	answers, err := r.answers(ctx, e)
	if err != nil {
		return r.broken("answers", err), nil
	}
	for i := len(answers) - 1; i >= 0; i-- {
		m := f.restore(answers[i])
		if !r.in.has[m.ID] {
			s.message(m)
		}
	}
	return why, nil
}

// answers are the answers to a message, newest first.
func (r *Run) answers(ctx context.Context, e ledger.Entry) ([]ledger.Entry, error) {
	page, err := r.front.Pages.Open(ctx, paging.Query{In: ledger.Scope{Channel: e.Channel, Conversation: &r.conversation}, N: maxRepeated})
	if err != nil {
		return nil, err
	}
	defer page.Close()
	var out []ledger.Entry
	err = page.Each(ctx, nil, func(m *ledger.Entry) error {
		if m.ID <= e.ID {
			return errOlder
		}
		if m.ReplyTo == e.ID && front.Shown(*m) {
			out = append(out, *m)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errOlder) {
		return nil, err
	}
	return out, nil
}

// errOlder ends the search for answers: what follows was said before the question.
var errOlder = errors.New("older than the question")

// broken logs an error of storage, and tells the client no more than that.
func (r *Run) broken(what string, err error) *Failure {
	r.front.Log.Error("run not repeated", "what", what, "error", err)
	return &Failure{"storage_unavailable", fmt.Sprintf("the %s could not be read: try again later", what)}
}
