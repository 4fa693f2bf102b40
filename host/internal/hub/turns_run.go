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
	late   int       // attempts that were not answered in time
	index  int64     // of it in its conversation
}

// recovered is the turn of a message that was open when the host stopped.
func (h *Hub) recovered(ctx context.Context, e ledger.OpenMessage) (turnJob, error) {
	job := repeat(e.Entry)
	begun := e.ID.Time()
	if e.SettledAt.After(begun) { // replayed since
		begun = e.SettledAt
	}
	job.listed, job.told, job.since = e.Listed, e.Told, time.Now().Add(-max(0, h.Now().Sub(begun)))
	if !e.Listed {
		return job, nil
	}
	var err error
	job.late, err = h.lateness(ctx, e.ID)
	return job, err
}

// repeat is the turn of a message that is handed over once more.
func repeat(e ledger.Entry) turnJob {
	return turnJob{
		id: e.ID, index: e.Turn, repeated: true, userID: e.Origin.UserID, userName: e.Origin.UserName,
		routing: wire.Routing{SessionKey: e.Origin.SessionKey, ConversationID: e.Conversation, ReplyCtx: wire.Raw(e.Origin.ReplyCtx)},
		message: restore(e),
	}
}

// startTurn puts a turn behind those of its conversation. It takes over one
// hold of conv.
func (t *turns) start(conv *conversation, job turnJob) {
	if conv.stopComing > 0 {
		conv.stopComing--
		t.ended(conv, job.id, ledger.Handled, "")
		return
	}
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

// runWaiting lets the conversation's turns run, if nothing stands against it and
// their agent has a place.
func (t *turns) runWaiting(conv *conversation) {
	if conv.running || conv.mending || conv.absent != "" || conv.line != nil || len(conv.waiting) == 0 {
		return
	}
	agent := t.tallyOf(t.agentName(conv))
	if s := agent.take(t.c.hub.maxTurns(agent.name), t.c, conv); s != nil {
		t.stand(conv, s)
		return
	}
	// A turn that can't start any more is handed over at the next start.
	conv.running = t.c.hub.spawn(func() { t.c.runTurns(conv, agent) })
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

// stop cancels the running turn, or those that wait for an agent that is away or
// has no place.
func (t *turns) stop(conv *conversation) {
	switch {
	case conv.cancel != nil:
		conv.cancel(ErrStopped)
	case conv.absent != "", conv.line != nil:
		conv.stopComing = conv.turns - conv.posted - len(conv.waiting)
		t.drop(conv, ledger.Handled, "", func(*turnJob) bool { return true })
	case conv.parking:
		conv.stopComing = conv.turns - conv.posted - len(conv.waiting) - 1
		t.drop(conv, ledger.Handled, "", func(*turnJob) bool { return true })
		conv.stopNext = true // and the one in hand
	case conv.turns > conv.posted:
		conv.stopNext = true // its commit is still under way
	}
}

// fewTurns are moved up when the first goes, so that those to come find room.
const fewTurns = 32

// runTurns runs a conversation's turns on a place of the agent that they are for, and
// then those of whoever stands in line for the place.
func (c *Channel) runTurns(conv *conversation, agent *AgentTally) {
	c.hub.runFrom(c.runOwn(conv, agent))
}

// runOwn runs a conversation's turns one after the other until none waits, or others
// come first. It returns who has the place then; nil = nobody.
func (c *Channel) runOwn(conv *conversation, agent *AgentTally) *standing {
	for ran := false; ; ran = true {
		ch := c.lock()
		job, first, ok := ch.turns.take(conv, agent, ran)
		if !ok {
			ch.unlock()
			if first == nil {
				first = c.hub.leave(agent)
			}
			return first
		}
		ctx, cancel := context.WithCancelCause(c.hub.ctx)
		conv.cancel, conv.asked = cancel, agent.name
		if conv.stopNext {
			conv.stopNext = false
			cancel(ErrStopped)
		}
		ch.unlock()

		over := c.runTurn(ctx, &reply{c: c, conv: conv, job: job, agent: agent.name, counts: agent})

		cancel(nil)
		if over == parked {
			return c.hub.leave(agent)
		}
		ch = c.lock()
		conv.cancel, conv.asked, conv.parking = nil, "", false
		if over == done {
			conv.turns--
			conv.stopNext = conv.stopNext && conv.turns > conv.posted // not one to come
			ch.release(conv)
		}
		ch.unlock()
	}
}

// take takes the conversation's next turn, to be run on a place of the agent. If
// there is none, ok is false, and the caller runs no more of them: the place is
// that of who stood first in line, or to be left.
func (t *turns) take(conv *conversation, agent *AgentTally, ran bool) (job turnJob, first *standing, ok bool) {
	if len(conv.waiting) == 0 || t.c.hub.ctx.Err() != nil {
		conv.waiting = nil
	}
	if conv.waiting == nil || conv.mending || t.agentName(conv) != agent.name {
		conv.running = false
		t.runWaiting(conv) // on a place of another agent
		return job, nil, false
	}
	if ran { // others come first
		if last, first := agent.yield(t.c, conv); first != nil {
			conv.running = false
			t.stand(conv, last)
			return job, first, false
		}
	}
	job = conv.waiting[0]
	if len(conv.waiting) <= fewTurns {
		conv.waiting = slices.Delete(conv.waiting, 0, 1)
	} else {
		conv.waiting = conv.waiting[1:]
	}
	return job, nil, true
}

// runTurn runs one turn, settles its message and says what becomes of it.
func (c *Channel) runTurn(ctx context.Context, r *reply) parking {
	conv, job := r.conv, &r.job
	returns := c.hub.absences.returns.Load()
	asked := false
	err := c.whole(ctx, job)
	if err == nil {
		asked = true
		err = c.turn(ctx, r)
	} else {
		err = outcome(ctx, err)
	}
	answered, left := r.answered()
	if left {
		if err != nil {
			c.hub.Log.Error("agent failed behind its last answer", "agent", r.agent, "message", job.id, "error", forLog(err))
		}
		return posted
	}
	if errors.Is(err, ErrAway) && !asked { // gone before it was asked
		c.requeue(conv, *job)
		return notAway
	}
	if errors.Is(err, ErrAway) && c.hub.ctx.Err() == nil {
		ch := c.lock()
		conv.cancel, conv.parking = nil, true // nothing runs that could be stopped
		ch.unlock()
		if over := c.park(conv, *job, r.agent, returns); over != refused {
			return over
		}
	}
	if err != nil && c.hub.ctx.Err() == nil {
		r.apologize(err)
		c.hub.Log.Error("turn failed", "channel", c.name(), "agent", r.agent, "message", job.id, "error", forLog(err))
	}
	ch := c.lock()
	defer ch.unlock()
	// One that is handed over once more may have been answered before, by an
	// apology: its own state must tell. So must that of one that waited.
	ch.turns.end(conv, job.id, answered && !job.repeated && !job.listed, err)
	return done
}

// turn asks the agent, and says what came of it.
func (c *Channel) turn(ctx context.Context, r *reply) error {
	job := &r.job
	ch := c.lock()
	channel := ch.policy.Name
	var caps = wire.CapText
	silent := false // whoever is there can't show that work goes on
	if ch.attached != nil {
		caps = ch.attached.view.Caps
		silent = !caps.Has(wire.CapTyping)
	}
	ch.unlock()
	t := Turn{
		ID: job.id, Index: job.index, Repeated: job.repeated, Late: job.late, Channel: channel, Conversation: r.conv.Key, UserID: job.userID, UserName: job.userName,
		Message: job.message, Caps: caps, past: past{c, r.conv, r},
	}
	t.Message.ID = job.id.String()
	t.Message.Parts = c.hub.Attachments.Signed(t.Message.Parts, 0)
	r.began = r.counts.begin()
	if !silent {
		r.expectTyping(c.hub.TypingDelay)
	}
	err := c.handle(ctx, r.agent, t, r)
	err = outcome(ctx, err)
	r.counts.end(ctx, r.began, err)
	r.breakStream(err)
	r.endTyping()
	sent, posted := r.answered()
	switch {
	case !errors.Is(err, ErrAway):
		c.hub.answers(r.agent)
	case posted: // its commit ends the turn
	case errors.Is(err, ErrLeft) || sent:
		job.repeated = true
	}
	return err
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
	case err != nil:
		s.State, s.Reason = ledger.Failed, reasonOf(err)
		if s.Reason != ledger.ReasonAgentAway {
			s.Life = []ledger.Life{{What: "agent failed", Detail: inShort(err)}}
		}
	}
	t.queue.change(change{conv: conv, of: ledger.In, to: s, then: func(error) { t.over(id, s.Reason) }})
}

// reasonOf says why a turn failed.
func reasonOf(err error) ledger.Reason {
	switch {
	case errors.Is(err, ErrAway):
		return ledger.ReasonAgentAway
	case errors.Is(err, ErrLate):
		return ledger.ReasonAgentTimeout
	case errors.Is(err, ErrTurnRefused):
		return ledger.ReasonAgentRefused
	}
	return ledger.ReasonAgentFailed
}

// maxWords bounds what is kept of an agent's words on its failure, in bytes.
const maxWords = 2<<10 + 200

// inShort is an error as the operator sees it: its first line, without the url
// that was asked, which may hold a secret.
func inShort(err error) string {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Sprintf("%.*s", maxWords, strings.ToValidUTF8(line, "\uFFFD"))
}
