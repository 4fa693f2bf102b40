package hosttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Held is an agent whose turns the test ends: it answers what the test says.
type Held struct {
	Turns   chan hub.Turn // started
	Answers chan string   // "" = no answer
	Ended   chan error    // the context's cause, if that was the end
}

// NewHeld makes one with room for 1,000 turns.
func NewHeld() *Held {
	return &Held{Turns: make(chan hub.Turn, 1000), Answers: make(chan string), Ended: make(chan error, 1000)}
}

// Answer lets the turn that waits answer this.
func (a *Held) Answer(t testing.TB, text string) {
	t.Helper()
	await.Give(t, "a turn waits for the answer "+text, a.Answers, text)
}

// Handle waits for an answer, or the end.
func (a *Held) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	a.Turns <- t
	select {
	case text := <-a.Answers:
		if text == "" {
			return nil
		}
		_, err := r.Send(ctx, message.Text(text))
		return err
	case <-ctx.Done():
		a.Ended <- context.Cause(ctx)
		return context.Cause(ctx)
	}
}

// SlowEcho answers "slow: " and what it was told, in a turn of its own, never in the
// question's commit.
type SlowEcho struct{ Turns chan hub.Turn }

// NewSlowEcho makes one with room for 1,000 turns.
func NewSlowEcho() *SlowEcho { return &SlowEcho{make(chan hub.Turn, 1000)} }

// Handle answers.
func (a *SlowEcho) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	a.Turns <- t
	_, err := r.Send(ctx, message.Text("slow: "+t.Message.Text))
	return err
}

// Failing ends its turns with an error.
type Failing struct{ Err error }

// Handle fails.
func (a Failing) Handle(context.Context, hub.Turn, hub.Reply) error {
	return fmt.Errorf("failing agent: %w", a.Err)
}

// AgentFunc is an agent that is one function.
type AgentFunc func(context.Context, hub.Turn, hub.Reply) error

// Handle calls it.
func (f AgentFunc) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error { return f(ctx, t, r) }

var (
	_ hub.Agent = (*Held)(nil)
	_ hub.Agent = (*SlowEcho)(nil)
	_ hub.Agent = Failing{}
	_ hub.Agent = AgentFunc(nil)
)
