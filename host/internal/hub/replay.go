package hub

import (
	"context"
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/store"
)

// ErrNotDead is the error of a replay of what neither failed nor expired.
var ErrNotDead = errors.New("the message neither failed nor expired")

// Replay sends a message again that failed or expired, under its id; one that
// the agent did not handle goes to the agent again. Errors are ErrNotDead,
// ErrNotAttached, ErrQueueFull and those of storage.
func (h *Hub) Replay(ctx context.Context, row store.Channel, e store.Entry) error {
	// One at a time, and each to its commit: two of one message would count twice.
	h.replays.Lock()
	defer h.replays.Unlock()
	e, err := h.Store.Message(ctx, e.ID)
	if err != nil {
		return err
	}
	if e.State != store.Failed && e.State != store.Expired || e.Direction == store.In && e.Reason == store.ReasonRejected {
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
	if e.Direction == store.In {
		return c.handOver(ctx, conv, e)
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
		conv: conv, to: store.Settlement{ID: e.ID, State: store.Queued, Life: []store.Life{{What: store.LifeReplayed}}},
		then: func(err error) { done <- err }, once: true,
	})
	c.release(conv)
	c.mu.Unlock()
	return <-done
}

// handOver gives a message to the agent again. It takes over one hold of conv.
func (c *Channel) handOver(ctx context.Context, conv *conversation, e store.Entry) error {
	if err := c.hub.Store.Reopen(ctx, e.ID); err != nil {
		c.mu.Lock()
		c.release(conv)
		c.mu.Unlock()
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hub.stateChanged(c, conv, e.ID, store.Received, "")
	conv.turns++
	job := repeat(e)
	job.listed = true
	c.startTurn(conv, job)
	return nil
}
