package hub

import (
	"context"
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Errors of a replay of what is no dead letter: what neither failed nor expired,
// and what a user said who may not speak, of whom a stranger could make as many.
var (
	ErrNotDead = errors.New("the message neither failed nor expired")
	ErrRefused = errors.New("its author may not speak in the channel (allow_users), and what such users say is no dead letter and can't be replayed")
)

// Replay sends a message again that failed or expired, under its id; one that
// the agent did not handle goes to the agent again. Errors are ErrNotDead,
// ErrRefused, ErrNotAttached, ErrQueueFull and those of storage.
func (h *Hub) Replay(ctx context.Context, row ledger.Channel, e ledger.Entry) error {
	// One at a time, and each to its commit: two of one message would count twice.
	h.replays.Lock()
	defer h.replays.Unlock()
	e, err := h.Store.Message(ctx, e.ID)
	if err != nil {
		return err
	}
	switch {
	case e.State != ledger.Failed && e.State != ledger.Expired:
		return ErrNotDead
	case e.Direction == ledger.In && e.Reason == ledger.ReasonRejected:
		return ErrRefused
	}
	c, err := h.channel(ctx, row)
	if err != nil {
		return err
	}
	conv, err := c.hold(ctx, e.Conversation)
	if err != nil {
		return err
	}
	if e.Direction == ledger.In {
		return c.handOver(ctx, conv, e)
	}
	ch := c.lock()
	switch {
	case ch.taker() == nil && !ch.policy.Queue:
		err = ErrNotAttached
	case ch.queue.backlog >= ch.policy.length():
		err = fullAt(ch.policy.length())
	}
	if err != nil {
		ch.release(conv)
		ch.unlock()
		return err
	}
	done := make(chan error, 1)
	ch.queue.putBack(change{
		conv: conv, to: ledger.Settlement{ID: e.ID, State: ledger.Queued, Life: []ledger.Life{{What: ledger.LifeReplayed}}},
		then: func(err error) { done <- err }, once: true,
	})
	ch.release(conv)
	ch.unlock()
	return <-done
}

// handOver gives a message to the agent again. It takes over one hold of conv.
func (c *Channel) handOver(ctx context.Context, conv *conversation, e ledger.Entry) error {
	if err := c.hub.Store.Reopen(ctx, e.ID); err != nil {
		c.release(conv)
		return err
	}
	ch := c.lock()
	defer ch.unlock()
	ch.stateChanged(conv, e.ID, ledger.Received, "")
	conv.turns++
	job := repeat(e)
	job.listed = true
	ch.turns.start(conv, job)
	return nil
}
