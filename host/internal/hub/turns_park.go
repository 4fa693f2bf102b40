package hub

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// What users are told of an agent that is away.
const (
	noticeAway = "The agent is not there just now; your message waits."
	noticeLate = "The agent did not come back in time, so your message was not answered. Please send it again."
)

// parking is what became of a turn; the first three, of one whose agent is away.
type parking int

const (
	parked  parking = iota // it waits
	refused                // too many wait: it is over
	notAway                // the agent came back meanwhile: it is the first again
	posted                 // the commit of its last answer ends it
	done                   // it is over, or the next start hands it over
)

// park makes a turn wait for its agent, and those behind it: on the disk, and in
// memory by their ids alone. The user is told once. returns was read before the
// agent was asked. The conversation's goroutine calls it, and ends if it waits.
func (c *Channel) park(conv *conversation, job turnJob, agent string, returns uint64) parking {
	ch := c.lock()
	another := ch.agentName(conv) != agent // answers by now
	full := len(ch.turns.absent) >= ch.policy.length()
	tell := conv.told != agent && !conv.settings.Muted
	told := job.told || conv.told == agent
	text := noticeAway
	if a := ch.attached; a != nil && a.Away != "" {
		text = a.Away
	}
	ch.unlock()
	switch {
	case another || !c.hub.gone(agent, returns):
		c.requeue(conv, job)
		return notAway
	case full:
		return refused
	}
	if tell && !job.told {
		r := &reply{c: c, conv: conv, job: job}
		if err := r.notice(text, waits(job.id, agent, true)); err != nil {
			if c.hub.ctx.Err() != nil || errors.Is(err, ledger.ErrRemoved) {
				return done
			}
			c.hub.Log.Error("notice not sent", "message", job.id, "error", err)
		}
		told, job.listed, job.told = true, true, true
	}
	ch = c.lock()
	defer ch.unlock()
	conv.parking = false
	if told {
		conv.told = agent
	}
	if conv.stopNext { // by the user, who had the notice
		conv.stopNext = false
		ch.turns.end(conv, job.id, false, nil)
		return done
	}
	conv.waiting = append([]turnJob{job}, conv.waiting...)
	if c.hub.absences.returns.Load() != returns || ch.agentName(conv) != agent {
		return notAway
	}
	conv.absent, conv.running = agent, false
	for i := range conv.waiting {
		ch.turns.list(conv, &conv.waiting[i])
	}
	if ch.turns.absent == nil {
		ch.turns.absent = map[*conversation]struct{}{}
	}
	ch.turns.absent[conv] = struct{}{}
	return parked
}

// requeue puts a turn back in its place, the first.
func (c *Channel) requeue(conv *conversation, job turnJob) {
	ch := c.lock()
	defer ch.unlock()
	conv.waiting = append([]turnJob{job}, conv.waiting...)
}

// list makes a turn of a conversation that waits one that the disk knows as such,
// and keeps no more of it than its id.
func (t *turns) list(conv *conversation, job *turnJob) {
	job.message, job.brief = message.Message{}, true
	if job.listed {
		return
	}
	job.listed = true
	t.queue.change(change{conv: conv, to: waits(job.id, conv.absent, conv.told == conv.absent)})
}

// waits is the settlement of a message that waits for its agent.
func waits(id ledger.MessageID, agent string, told bool) ledger.Settlement {
	return ledger.Settlement{ID: id, State: ledger.Received, Tracked: true, Told: told, Life: []ledger.Life{{What: "waits", Detail: "agent " + agent + " is away"}}}
}

// whole reads the message of a turn again of which only the id was kept.
func (c *Channel) whole(ctx context.Context, job *turnJob) error {
	if !job.brief {
		return nil
	}
	e, err := retry(ctx, func() (ledger.Entry, error) { return c.hub.Store.Message(ctx, job.id) })
	if err != nil {
		return err
	}
	read := repeat(e)
	job.message, job.routing, job.userID, job.userName, job.brief = read.message, read.routing, read.userID, read.userName, false
	return nil
}

// wake hands over the turns of the conversations that pick picks, of most at most;
// it returns how many there were.
func (t *turns) wake(most int, pick func(*conversation) bool) (n int) {
	for conv := range t.absent {
		if n == most {
			break
		}
		if pick(conv) {
			delete(t.absent, conv)
			conv.absent = ""
			t.runWaiting(conv)
			n++
		}
	}
	return n
}

// reroute hands over what waits for an agent that is not its conversation's any
// more.
func (c *Channel) reroute() {
	ch := c.lock()
	defer ch.unlock()
	ch.turns.restand()
	ch.turns.wake(math.MaxInt, func(conv *conversation) bool { return ch.agentName(conv) != conv.absent })
}

// drop ends turns that wait for their agent: those that pick picks.
func (t *turns) drop(conv *conversation, as ledger.State, why ledger.Reason, pick func(*turnJob) bool) (last turnJob, n int) {
	left := conv.waiting[:0]
	for _, job := range conv.waiting {
		if !pick(&job) {
			left = append(left, job)
			continue
		}
		t.ended(conv, job.id, as, why)
		last = job
		n++
	}
	clear(conv.waiting[len(left):])
	if conv.waiting = left; len(left) == 0 {
		delete(t.absent, conv)
		t.step(conv)
		conv.absent = ""
	}
	return last, n
}

// ended ends a turn that was not begun.
func (t *turns) ended(conv *conversation, id ledger.MessageID, as ledger.State, why ledger.Reason) {
	t.queue.change(change{conv: conv, of: ledger.In, to: ledger.Settlement{ID: id, State: as, Reason: why}, then: func(error) { t.over(id, why) }})
	conv.turns--
	t.release(conv)
}

// giveUp fails the turns that have waited for longer than they may, and tells
// their users.
func (c *Channel) giveUp(now time.Time) {
	ch := c.lock()
	ttl := ch.policy.ttl(c.hub.TTL)
	if len(ch.turns.absent) == 0 || now.Sub(ch.turns.gaveUp) < min(expireEvery, ttl/4) {
		ch.unlock()
		return
	}
	ch.turns.gaveUp = now
	var late []*reply
	for conv := range ch.turns.absent {
		if last, n := ch.turns.drop(conv, ledger.Failed, ledger.ReasonAgentAway, func(job *turnJob) bool { return now.Sub(job.since) >= ttl }); n > 0 {
			late = append(late, &reply{c: c, conv: conv, job: last})
		}
	}
	name := ch.policy.Name
	ch.unlock()
	if len(late) == 0 {
		return
	}
	c.hub.Log.Warn("messages failed: their agent did not come back", "channel", name, "conversations", len(late))
	c.hub.spawn(func() {
		for _, r := range late {
			if err := c.whole(c.hub.ctx, &r.job); err == nil { // for the way to its conversation
				r.tell(noticeLate)
			}
		}
	})
}

// tell sends a notice of the host, unless notices are muted.
func (r *reply) tell(text string) {
	ch := r.c.lock()
	muted := r.conv.settings.Muted
	ch.unlock()
	if muted {
		return
	}
	if err := r.notice(text); err != nil {
		r.c.hub.Log.Error("notice not sent", "message", r.job.id, "error", err)
	}
}

// notice commits a notice of the host together with a settlement.
func (r *reply) notice(text string, with ...ledger.Settlement) error {
	m := message.Text(text)
	m.Meta = stamped(message.Meta{message.MetaNotice: json.RawMessage("true")}, r.job.message.Meta, r.job.id.Time())
	_, err := r.untilStored(r.c.hub.ctx, func(conv *conversation) (Sent, error) {
		return r.c.send(r.c.hub.ctx, conv, &outgoing{message: m}, &r.job.routing, r.job.id, false, with...)
	})
	return err
}
