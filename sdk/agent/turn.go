package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
)

// Turn is one message of a user, to be answered.
type Turn struct {
	agentwire.Turn
	agent  *Agent
	ctx    context.Context //nolint:containedctx // it is the turn's: whoever answers gets it
	cancel context.CancelCauseFunc

	mu   sync.Mutex // guards over
	over bool       // Reply has ended it
}

// run calls the handler and ends the turn.
func (t *Turn) run() {
	defer t.cancel(nil)
	err := t.ctx.Err()
	if err == nil { // else nobody waits for it any more, since it waited itself
		err = t.handle()
	}
	a := t.agent
	a.mu.Lock()
	a.leave(t)
	// Whose context ended for the sake of this program, its next run gets again.
	if cancelled := errors.Is(context.Cause(t.ctx), ErrCancelled); t.ctx.Err() != nil && !cancelled {
		a.mu.Unlock()
		return
	}
	a.ended.add(t.TurnID)
	a.mu.Unlock()
	t.mu.Lock()
	over := t.over
	t.mu.Unlock()
	end := agentwire.FromAgent{Type: agentwire.TypeTurnEnd, TurnID: t.TurnID}
	if err != nil && t.ctx.Err() == nil {
		a.log.Error("turn failed", "channel", t.Channel, "turn", t.TurnID, "err", err)
		end.Error = fmt.Sprintf("%.400s", err.Error())
	}
	if !over && t.ctx.Err() == nil {
		a.write(end.Append(nil))
	}
}

// handle makes a panic an error of the turn.
func (t *Turn) handle() (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.agent.log.Error("handler panicked", "error", p, "stack", string(debug.Stack()))
			err = errors.New("internal error")
		}
	}()
	return t.agent.handler(t.ctx, t)
}

// Reply answers with text and ends the turn. It returns when the answer is on the
// host's disk, with its id.
func (t *Turn) Reply(ctx context.Context, text string) (id string, err error) {
	return t.say(ctx, Content{Text: text}, false)
}

// ReplyWith is Reply with more than text.
func (t *Turn) ReplyWith(ctx context.Context, c Content) (id string, err error) {
	return t.say(ctx, c, false)
}

// Send is ReplyWith, but that the turn goes on.
func (t *Turn) Send(ctx context.Context, c Content) (id string, err error) {
	return t.say(ctx, c, true)
}

func (t *Turn) say(ctx context.Context, c Content, more bool) (string, error) {
	f := c.frame()
	f.TurnID, f.More = t.TurnID, more
	id, err := t.agent.ask(ctx, f)
	if err == nil && f.Last() {
		t.mu.Lock()
		t.over = true
		t.mu.Unlock()
	}
	return id, err
}

// Stream shows the answer as far as it has come, all of it each time, where the
// far end can; the next Reply or Send ends it. What is not shown is no error.
func (t *Turn) Stream(text string) {
	f := agentwire.FromAgent{Type: agentwire.TypeStream, TurnID: t.TurnID, Text: &text}
	t.agent.write(f.Append(nil))
}

// Typing shows that work goes on, or no more.
func (t *Turn) Typing(on bool) {
	f := agentwire.FromAgent{Type: agentwire.TypeTyping, TurnID: t.TurnID, On: &on}
	t.agent.write(f.Append(nil))
}
