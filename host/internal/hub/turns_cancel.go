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
	// ErrRerouted: another agent answers in the conversation, and the one that has the
	// turn has gone, though it may come back. The turn goes to the other.
	ErrRerouted = fmt.Errorf("%w: another agent answers now", ErrLeft)
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
	case err != nil && (errors.Is(cause, ErrAgentGone) || errors.Is(cause, ErrRerouted)):
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

// Connected is implemented by an agent that is not away at once when it goes.
type Connected interface {
	// Connected reports whether it is there. It does not block.
	Connected() bool
}

// reclaim ends the running turn of a conversation that another agent answers by now, if
// the one that has it has gone: the other gets it, before those behind it.
func (t *turns) reclaim(conv *conversation) {
	if conv.cancel == nil || conv.asked == t.agentName(conv) {
		return
	}
	agent, _ := t.c.hub.Agents.Agent(conv.asked)
	if a, says := agent.(Connected); says && !a.Connected() {
		conv.cancel(ErrRerouted)
	}
}

// reclaimAll is reclaim of all conversations.
func (c *Channel) reclaimAll() {
	ch := c.lock()
	defer ch.unlock()
	for _, conv := range ch.conversations {
		ch.turns.reclaim(conv)
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
