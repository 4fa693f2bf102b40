package hub

import (
	"context"
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/store"
)

// ErrNotDead is the error of a replay of what neither failed nor expired.
var ErrNotDead = errors.New("the message neither failed nor expired on its way out")

// Replay sends a message again that failed or expired, under its id. Errors are
// ErrNotDead, ErrNotAttached, ErrQueueFull and those of storage.
func (h *Hub) Replay(ctx context.Context, row store.Channel, e store.Entry) error {
	// One at a time, and each to its commit: two of one message would count twice.
	h.replays.Lock()
	defer h.replays.Unlock()
	e, err := h.Store.Message(ctx, e.ID)
	if err != nil {
		return err
	}
	if e.Direction != store.Out || e.State != store.Failed && e.State != store.Expired {
		return ErrNotDead
	}
	c, err := h.channel(ctx, row)
	if err != nil {
		return err
	}
	conv, err := c.hold(ctx, e.Conversation)
	if err != nil {
		return err
	}
	c.mu.Lock()
	switch {
	case c.taker() == nil && !c.policy.Queue:
		err = ErrNotAttached
	case c.backlog >= c.policy.length():
		err = ErrQueueFull
	}
	if err != nil {
		c.release(conv)
		c.mu.Unlock()
		return err
	}
	done := make(chan error, 1)
	c.queue(change{
		conv: conv, to: store.Settlement{ID: e.ID, State: store.Queued, Life: []store.Life{{What: "replayed"}}},
		then: func(err error) { done <- err }, once: true,
	})
	c.release(conv)
	c.mu.Unlock()
	return <-done
}
