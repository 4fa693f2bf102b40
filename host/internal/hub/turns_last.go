package hub

import (
	"context"
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

var errOver = errors.New("the turn is over: its last answer was given")

// lastAnswer is the answer that ends a turn, on its way to the disk. Nobody
// waits for it: so answers of one conversation share commits, as questions do.
type lastAnswer struct {
	post   // its conversation is held as long as its turn is not over
	job    *turnJob
	stored func(ledger.MessageID, error)
	kept   bool // the disk did not take it yet
}

// Last implements Reply.
func (r *reply) Last(ctx context.Context, m message.Message, stored func(ledger.MessageID, error)) error {
	if _, over := r.answered(); over {
		return errOver
	}
	o, err := r.outgoing(ctx, m, r.agent)
	if err != nil {
		return err
	}
	if r.busy() { // what shows that ends with it
		id, err := r.sendKept(ctx, o)
		if err == nil && stored != nil {
			stored(id, nil)
		}
		return err
	}
	r.mu.Lock()
	r.last = true
	r.mu.Unlock()
	r.c.post(&lastAnswer{post: post{c: r.c, conv: r.conv, o: o}, job: &r.job, stored: stored})
	return nil
}

// busy reports that the user sees that an answer is being made.
func (r *reply) busy() bool {
	r.streaming.Lock()
	defer r.streaming.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stream != nil || r.said != "" || r.typing
}

// post begins the commit.
func (c *Channel) post(p *lastAnswer) {
	p.by = p
	l := c.outlook()
	p.unit.Set, _ = c.plan(&l, p.conv, p.o, p.job.routing, false, &p.row[0]) // the row says what became of it
	p.row[0].ReplyTo = p.job.id
	ch := c.lock()
	defer ch.unlock()
	p.conv.posted++
	if p.conv.mending || len(p.conv.unstored) > 0 { // its turn had begun when one before it was refused, which comes first
		ch.outbox.undo(p.o, &p.row[0])
		p.kept = true
		ch.turns.keepUnstored(p)
		return
	}
	p.unit.After, p.conv.newest = p.conv.newest, &p.unit
	p.append()
}

// committed implements poster.
func (p *lastAnswer) committed(ch *locked, err error) {
	if p.conv.newest == &p.unit {
		p.conv.newest = nil
	}
	if p.kept = ledger.Failing(err) && p.c.hub.ctx.Err() == nil; p.kept {
		ch.turns.keepUnstored(p)
		return
	}
	p.end(ch, err)
}

// over implements poster.
func (p *lastAnswer) over(err error) {
	if !p.kept {
		p.tell(p.row[0].ID, err)
	}
}

func (p *lastAnswer) tell(id ledger.MessageID, err error) {
	if p.stored != nil {
		p.stored(id, err)
	}
}

// end ends the turn.
func (p *lastAnswer) end(ch *locked, err error) {
	ch.turns.end(p.conv, p.job.id, err == nil && !p.job.repeated && !p.job.listed, err)
	p.conv.posted--
	p.conv.turns--
	ch.release(p.conv)
}

// keepUnstored keeps an answer that the disk did not take: nobody would ask the
// agent once more. Those behind it come in their order, and no turn begins until
// all are stored.
func (t *turns) keepUnstored(p *lastAnswer) {
	p.conv.unstored = append(p.conv.unstored, p)
	if !p.conv.mending {
		// Not while the host stops: the turn is handed over at the next start.
		p.conv.mending = t.c.hub.spawn(func() { t.c.storeUnstored(p.conv) })
	}
}

func (c *Channel) storeUnstored(conv *conversation) {
	ctx := c.hub.ctx
	ch := c.lock()
	defer ch.unlock()
	for len(conv.unstored) > 0 && ctx.Err() == nil {
		p := conv.unstored[0]
		conv.unstored = conv.unstored[1:]
		ch.unlock()
		sent, err := c.untilStored(ctx, conv.Key, func(conv *conversation) (Sent, error) {
			return c.send(ctx, conv, p.o, &p.job.routing, p.job.id, false)
		})
		ch = c.lock()
		p.end(ch, err)
		ch.unlock()
		p.tell(sent.ID, err)
		ch = c.lock()
	}
	conv.mending = false
	ch.turns.runWaiting(conv)
}
