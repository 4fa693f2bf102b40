package hub

import (
	"context"
	"errors"
	"fmt"
)

// Why a turn's context ended: its cause. None of them is an error of the turn.
var (
	// ErrStopped: the user wants no answer any more.
	ErrStopped = errors.New("stopped by the user")
	// ErrReplaced: the user said something new; see Interruptible.
	ErrReplaced = errors.New("replaced by a new message of the user")
	// ErrAgentGone: the agent was disabled or deleted. The turn waits, or goes to
	// whoever answers in its place.
	ErrAgentGone = fmt.Errorf("%w: it was disabled or deleted", ErrLeft)
	// ErrChannelGone: the channel was deleted.
	ErrChannelGone = errors.New("the channel was deleted")
)

// Interruptible is implemented by an agent that wants its turn ended when the
// user says something new, which is the next turn then.
type Interruptible interface {
	Interrupted() bool
}

// outcome is what a turn's error means, given why its context ended.
func outcome(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrStopped), errors.Is(cause, ErrReplaced), errors.Is(cause, ErrChannelGone):
		return nil // what was asked for
	case err != nil && errors.Is(cause, ErrAgentGone):
		return cause
	}
	return err
}

// interrupt ends the running turn for a new message if its agent wants that.
func (t *turns) interrupt(conv *conversation) {
	if conv.cancel == nil {
		return
	}
	agent, _ := t.c.hub.Agents.Agent(conv.asked)
	if i, ok := agent.(Interruptible); ok && i.Interrupted() {
		conv.cancel(ErrReplaced)
	}
}

// cancelTurns ends the running turns of an agent.
func (h *Hub) cancelTurns(agent string, why error) {
	for _, c := range h.all() {
		ch := c.lock()
		for _, conv := range ch.conversations {
			if conv.cancel != nil && conv.asked == agent {
				conv.cancel(why)
			}
		}
		ch.unlock()
	}
}

// abandon ends all turns of a channel that was deleted.
func (c *Channel) abandon() {
	ch := c.lock()
	defer ch.unlock()
	for _, conv := range ch.conversations {
		conv.waiting = nil
		if conv.cancel != nil {
			conv.cancel(ErrChannelGone)
		}
	}
	for conv := range ch.turns.inLine {
		ch.turns.step(conv)
	}
	ch.turns.absent, ch.turns.parked = nil, nil
}
