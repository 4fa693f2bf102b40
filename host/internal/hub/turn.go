package hub

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// turnJob is a message that waits for its agent.
type turnJob struct {
	id       ledger.MessageID
	repeated bool
	routing  wire.Routing
	userID   string
	userName string
	message  message.Message

	since  time.Time // when it began to wait, by the steady clock
	brief  bool      // only the id is kept: see whole
	listed bool      // the disk knows that it waits for its agent
	told   bool      // the user was told
}

// recovered is the turn of a message that was open when the host stopped.
func (h *Hub) recovered(e ledger.OpenMessage) turnJob {
	job := repeat(e.Entry)
	begun := e.ID.Time()
	if e.SettledAt.After(begun) { // replayed since
		begun = e.SettledAt
	}
	job.listed, job.told, job.since = e.Listed, e.Told, time.Now().Add(-max(0, h.Now().Sub(begun)))
	return job
}

// repeat is the turn of a message that is handed over once more.
func repeat(e ledger.Entry) turnJob {
	return turnJob{
		id: e.ID, repeated: true, userID: e.Origin.UserID, userName: e.Origin.UserName,
		routing: wire.Routing{SessionKey: e.Origin.SessionKey, ConversationID: e.Conversation, ReplyCtx: e.Origin.ReplyCtx},
		message: restore(e),
	}
}

// startTurn puts a turn behind those of its conversation. It takes over one
// hold of conv.
func (t *turns) start(conv *conversation, job turnJob) {
	if job.since.IsZero() {
		job.since = time.Now()
	}
	conv.waiting = append(conv.waiting, job)
	if conv.absent != "" {
		t.list(conv, &conv.waiting[len(conv.waiting)-1])
		return
	}
	t.runWaiting(conv)
}

// runWaiting lets the conversation's turns run, if nothing stands against it.
func (t *turns) runWaiting(conv *conversation) {
	if conv.running || conv.mending || conv.absent != "" || len(conv.waiting) == 0 {
		return
	}
	// A turn that can't start any more is handed over at the next start.
	conv.running = t.c.hub.spawn(func() { t.c.runTurns(conv) })
}

// parkedTurn is a turn that waits for its channel's adapter to come back.
type parkedTurn struct {
	conv *conversation
	job  turnJob
}

// unpark starts the parked turns.
func (t *turns) unpark() {
	for _, p := range t.parked {
		t.start(p.conv, p.job)
	}
	t.parked = nil
}

// stop cancels the running turn, or those that wait for an agent that is away.
func (t *turns) stop(conv *conversation) {
	switch {
	case conv.cancel != nil:
		conv.cancel(ErrStopped)
	case conv.absent != "":
		t.drop(conv, ledger.Handled, "", func(*turnJob) bool { return true })
	case conv.turns > conv.posted:
		conv.stopNext = true // its commit is still under way
	}
}

// fewTurns are moved up when the first goes, so that those to come find room.
const fewTurns = 32

// runTurns runs a conversation's turns one after the other until none waits.
func (c *Channel) runTurns(conv *conversation) {
	for {
		ch := c.lock()
		if len(conv.waiting) == 0 || c.hub.ctx.Err() != nil {
			conv.waiting = nil
		}
		if conv.waiting == nil || conv.mending {
			conv.running = false
			ch.unlock()
			return
		}
		job := conv.waiting[0]
		if len(conv.waiting) <= fewTurns {
			conv.waiting = slices.Delete(conv.waiting, 0, 1)
		} else {
			conv.waiting = conv.waiting[1:]
		}
		ctx, cancel := context.WithCancelCause(c.hub.ctx)
		conv.cancel = cancel
		if conv.stopNext {
			conv.stopNext = false
			cancel(ErrStopped)
		}
		ch.unlock()

		over := c.runTurn(ctx, conv, job)

		cancel(nil)
		if over == parked {
			return
		}
		ch = c.lock()
		conv.cancel, conv.asked = nil, ""
		if over == done {
			conv.turns--
			ch.release(conv)
		}
		ch.unlock()
	}
}

// runTurn runs one turn, settles its message and says what becomes of it.
func (c *Channel) runTurn(ctx context.Context, conv *conversation, job turnJob) parking {
	returns := c.hub.absences.returns.Load()
	var r *reply
	err := c.whole(ctx, &job)
	if err == nil {
		r, err = c.turn(ctx, conv, &job)
	} else {
		err = outcome(ctx, err)
	}
	answered := false
	if r != nil {
		var left bool
		if answered, left = r.answered(); left {
			if err != nil {
				c.hub.Log.Error("agent failed behind its last answer", "agent", r.agent, "message", job.id, "error", err)
			}
			return posted
		}
	}
	if errors.Is(err, ErrAway) && r == nil { // gone before it was asked
		c.requeue(conv, job)
		return notAway
	}
	if errors.Is(err, ErrAway) && c.hub.ctx.Err() == nil {
		ch := c.lock()
		conv.cancel = nil // nothing runs that could be stopped
		ch.unlock()
		if over := c.park(conv, job, r.agent, returns); over != refused {
			return over
		}
	}
	if err != nil && c.hub.ctx.Err() == nil {
		agent := ""
		if r != nil {
			agent = r.agent
			r.apologize()
		}
		c.hub.Log.Error("turn failed", "channel", c.name(), "agent", agent, "message", job.id, "error", err)
	}
	ch := c.lock()
	defer ch.unlock()
	// One that is handed over once more may have been answered before, by an
	// apology: its own state must tell. So must that of one that waited.
	ch.turns.end(conv, job.id, answered && !job.repeated && !job.listed, err)
	return done
}

// turn asks the agent, and says what came of it. The reply is nil if it was not
// asked.
func (c *Channel) turn(ctx context.Context, conv *conversation, job *turnJob) (*reply, error) {
	select { // at once, as nearly always
	case c.hub.slots <- struct{}{}:
	default:
		select {
		case c.hub.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, nil
		}
	}
	defer func() { <-c.hub.slots }()
	ch := c.lock()
	name, channel := ch.agentName(conv), ch.policy.Name
	conv.asked = name
	counts := ch.turns.tallyOf(name)
	var caps = wire.CapText
	silent := false // whoever is there can't show that work goes on
	if ch.attached != nil {
		caps = ch.attached.view.Caps
		silent = !caps.Has(wire.CapTyping)
	}
	ch.unlock()
	t := Turn{
		ID: job.id, Repeated: job.repeated, Channel: channel, Conversation: conv.Key, UserID: job.userID, UserName: job.userName,
		Message: job.message, Caps: caps,
	}
	t.past = past{c, conv}
	t.Message.ID = job.id.String()
	t.Message.Parts = c.hub.Attachments.Signed(t.Message.Parts, 0)
	r := &reply{c: c, conv: conv, job: *job, agent: name, counts: counts, began: counts.begin()}
	if !silent {
		r.expectTyping(c.hub.TypingDelay)
	}
	err := c.handle(ctx, name, t, r)
	err = outcome(ctx, err)
	counts.end(ctx, r.began, err)
	r.breakStream(err)
	r.endTyping()
	sent, _ := r.answered()
	switch {
	case !errors.Is(err, ErrAway):
		c.hub.answers(name)
	case errors.Is(err, ErrLeft) || sent:
		job.repeated = true
	}
	return r, err
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
// without an answer is handed over again.
func (t *turns) end(conv *conversation, id ledger.MessageID, answered bool, err error) {
	s := ledger.Settlement{ID: id, State: ledger.Handled}
	switch {
	case err == nil && answered:
		t.c.hub.Store.Handled(id)
		t.stateChanged(conv, id, ledger.Handled, "")
		t.over(id, "")
		return
	case t.c.hub.ctx.Err() != nil:
		return
	case errors.Is(err, ErrAway):
		s.State, s.Reason = ledger.Failed, ledger.ReasonAgentAway
	case err != nil:
		s.State, s.Reason = ledger.Failed, ledger.ReasonUnknownOutcome
		s.Life = []ledger.Life{{What: "agent failed", Detail: inShort(err)}}
	}
	t.queue.change(change{conv: conv, of: ledger.In, to: s, then: func(error) { t.over(id, s.Reason) }})
}

// inShort is an error as the operator sees it: its first line, without the url
// that was asked, which may hold a secret.
func inShort(err error) string {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Sprintf("%.500s", strings.ToValidUTF8(line, "\uFFFD"))
}
