package bridge_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// held is an agent whose turns the test ends: it answers what the test says.
type held struct {
	turns   chan hub.Turn // started
	answers chan string   // "" = no answer
	ended   chan error    // the context's cause, if that was the end
}

func newHeld() *held {
	return &held{turns: make(chan hub.Turn, 1000), answers: make(chan string), ended: make(chan error, 1000)}
}

func (a *held) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	a.turns <- t
	select {
	case text := <-a.answers:
		if text == "" {
			return nil
		}
		_, err := r.Send(ctx, message.Text(text))
		return err
	case <-ctx.Done():
		a.ended <- context.Cause(ctx)
		return context.Cause(ctx)
	}
}

// slowEcho answers in a turn of its own, never in the question's commit.
type slowEcho struct{ turns chan hub.Turn }

func newSlowEcho() *slowEcho { return &slowEcho{make(chan hub.Turn, 1000)} }

func (a *slowEcho) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	a.turns <- t
	_, err := r.Send(ctx, message.Text("slow: "+t.Message.Text))
	return err
}

// panicking panics wherever it is called.
type panicking struct{}

func (a panicking) Handle(context.Context, hub.Turn, hub.Reply) error { panic("agent in Handle") }

// purePanic panics when asked for an answer in the question's commit.
type purePanic struct{ panicking }

func (purePanic) Answer(*hub.Turn) ([]message.Message, bool) { panic("agent in Answer") }

// failing ends its turns with an error.
type failing struct{ err error }

func (a failing) Handle(context.Context, hub.Turn, hub.Reply) error {
	return fmt.Errorf("failing agent: %w", a.err)
}

func agents(named map[string]hub.Agent) func(*setup) {
	return func(s *setup) {
		for name, a := range named {
			s.agents[name] = a
		}
	}
}

var (
	_ hub.Agent = (*held)(nil)
	_ hub.Agent = (*slowEcho)(nil)
	_ hub.Pure  = purePanic{}
)

// both is the roster of rows with agents that a test makes beside it.
type both struct {
	hub.Fixed
	rows *agent.Roster
}

func (b both) Agent(name string) (hub.Agent, bool) {
	if a, ok := b.Fixed[name]; ok {
		return a, true
	}
	return b.rows.Agent(name)
}

func (b both) Names() []string {
	all := append(b.Fixed.Names(), b.rows.Names()...)
	slices.Sort(all)
	return slices.Compact(all)
}
