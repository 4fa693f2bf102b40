package hub

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/pontoon-bridge/pontoon/host/internal/store"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// ErrAway is returned by an agent that can't be reached.
var ErrAway = errors.New("the agent is away")

var errStopped = errors.New("stopped by the user")

// turnJob is a message that waits for its agent.
type turnJob struct {
	id       store.MessageID
	repeated bool
	routing  wire.Routing
	userID   string
	userName string
	message  message.Message
}

// repeat is the turn of a message that is handed over once more.
func repeat(e store.Entry) turnJob {
	return turnJob{
		id: e.ID, repeated: true, userID: e.Origin.UserID, userName: e.Origin.UserName,
		routing: wire.Routing{SessionKey: e.Origin.SessionKey, ConversationID: e.Conversation, ReplyCtx: e.Origin.ReplyCtx},
		message: restore(e),
	}
}

// startTurn puts a turn behind those of its conversation. It takes over one
// hold of conv. The mutex must be held.
func (c *Channel) startTurn(conv *conversation, job turnJob) {
	conv.waiting = append(conv.waiting, job)
	c.runWaiting(conv)
}

// runWaiting lets the conversation's turns run, if nothing stands against it.
// The mutex must be held.
func (c *Channel) runWaiting(conv *conversation) {
	if conv.running || conv.mending || len(conv.waiting) == 0 {
		return
	}
	// A turn that can't start any more is handed over at the next start.
	conv.running = c.hub.spawn(func() { c.runTurns(conv) })
}

// parkedTurn is a turn that waits for its channel's adapter to come back.
type parkedTurn struct {
	conv *conversation
	job  turnJob
}

// unpark starts the parked turns. The mutex must be held.
func (c *Channel) unpark() {
	for _, p := range c.parked {
		c.startTurn(p.conv, p.job)
	}
	c.parked = nil
}

// stop cancels the running turn. The mutex must be held.
func (conv *conversation) stop() {
	if conv.cancel != nil {
		conv.cancel(errStopped)
	} else if conv.turns > conv.posted {
		conv.stopNext = true // its commit is still under way
	}
}

// runTurns runs a conversation's turns one after the other until none waits.
func (c *Channel) runTurns(conv *conversation) {
	for {
		c.mu.Lock()
		if len(conv.waiting) == 0 || c.hub.ctx.Err() != nil {
			conv.waiting = nil
		}
		if conv.waiting == nil || conv.mending {
			conv.running = false
			c.mu.Unlock()
			return
		}
		job := conv.waiting[0]
		conv.waiting = conv.waiting[1:]
		ctx, cancel := context.WithCancelCause(c.hub.ctx)
		conv.cancel = cancel
		if conv.stopNext {
			conv.stopNext = false
			cancel(errStopped)
		}
		c.mu.Unlock()

		posted := c.turn(ctx, conv, job)

		c.mu.Lock()
		conv.cancel = nil
		if !posted {
			conv.turns--
			c.release(conv)
		}
		c.mu.Unlock()
		cancel(nil)
	}
}

// turn runs one turn to its end and settles its message; true = that is left to
// the commit of its last answer.
func (c *Channel) turn(ctx context.Context, conv *conversation, job turnJob) (posted bool) {
	select { // at once, as nearly always
	case c.hub.slots <- struct{}{}:
	default:
		select {
		case c.hub.slots <- struct{}{}:
		case <-ctx.Done():
			c.mu.Lock()
			defer c.mu.Unlock()
			c.endTurn(conv, job.id, false, nil)
			return false
		}
	}
	defer func() { <-c.hub.slots }()
	c.mu.Lock()
	name, channel := c.agentName(conv), c.policy.Name
	var caps = wire.CapText
	silent := false // whoever is there can't show that work goes on
	if c.attached != nil {
		caps = c.attached.view.Caps
		silent = !caps.Has(wire.CapTyping)
	}
	c.mu.Unlock()
	t := Turn{
		ID: job.id, Repeated: job.repeated, Channel: channel, Conversation: conv.Key, UserID: job.userID, UserName: job.userName,
		Message: job.message, Caps: caps,
	}
	t.Message.ID = job.id.String()
	t.Message.Parts = c.hub.Attachments.Signed(t.Message.Parts, 0)
	r := &reply{c: c, conv: conv, job: job, agent: name}
	if !silent {
		r.expectTyping(c.hub.TypingDelay)
	}
	err := c.handle(ctx, name, t, r)
	if errors.Is(context.Cause(ctx), errStopped) {
		err = nil // what was asked for
	}
	r.breakStream(err)
	if err != nil && c.hub.ctx.Err() == nil {
		c.hub.Log.Error("turn failed", "channel", channel, "agent", name, "message", job.id, "error", err)
		r.apologize(err)
	}
	r.endTyping()
	answered, posted := r.answered()
	if posted {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// One that is handed over once more may have been answered before, by an
	// apology: its own state must tell.
	c.endTurn(conv, job.id, answered && !job.repeated, err)
	return false
}

// handle calls the agent; a panic is an error of the turn.
func (c *Channel) handle(ctx context.Context, name string, t Turn, r *reply) (err error) {
	if name == AgentNone {
		return nil
	}
	agent, ok := c.hub.Agents.Agent(name)
	if !ok {
		return fmt.Errorf("%w: no agent is named %q", ErrAway, name)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("agent panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if pure, ok := agent.(Pure); ok {
		answers, ok := pure.Answer(&t)
		for i := 0; ok && i < len(answers) && err == nil; i++ {
			_, err = r.Send(ctx, answers[i])
		}
		if ok {
			return err
		}
	}
	return agent.Handle(ctx, t, r)
}

// endTurn settles the message. While the host stops, nothing is settled: a turn
// without an answer is handed over again. The mutex must be held.
func (c *Channel) endTurn(conv *conversation, id store.MessageID, answered bool, err error) {
	s := store.Settlement{ID: id, State: store.Handled}
	switch {
	case err == nil && answered:
		c.hub.Store.Handled(id)
		c.over(id, "")
		return
	case c.hub.ctx.Err() != nil:
		return
	case errors.Is(err, ErrAway):
		s.State, s.Reason = store.Failed, store.ReasonAgentAway
	case err != nil:
		s.State, s.Reason = store.Failed, store.ReasonUnknownOutcome
	}
	c.change(change{conv: conv, to: s, then: func(error) { c.over(id, s.Reason) }})
}
