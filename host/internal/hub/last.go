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
	c      *Channel
	conv   *conversation // held, as long as its turn is not over
	job    *turnJob
	o      *outgoing
	unit   ledger.Unit
	row    [1]ledger.Row
	stored func(ledger.MessageID, error)
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
	r.c.post(&lastAnswer{c: r.c, conv: r.conv, job: &r.job, o: o, stored: stored})
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
	l := c.outlook()
	p.row[0] = c.prepare(p.o, l.view, p.job.routing, p.conv, l.a)
	_ = c.decide(l, p.conv, p.o, &p.row[0]) // the row says what became of it
	p.row[0].ReplyTo = p.job.id
	if p.row[0].Offers {
		c.offers(p.conv, p.o)
	}
	p.unit = ledger.Unit{Conversation: p.conv.Conversation, Out: p.row[:], Set: c.choice(p.conv, p.o)}
	ch := c.lock()
	defer ch.unlock()
	ch.queue.countBacklog(p.unit.Out, 1)
	p.conv.posted++
	p.unit.After, p.conv.newest = p.conv.newest, &p.unit
	c.hub.Store.Append(&p.unit, p.done)
}

// done runs on the writer after the commit.
func (p *lastAnswer) done(r ledger.Result) {
	c := p.c
	ch := c.lock()
	if p.conv.newest == &p.unit {
		p.conv.newest = nil
	}
	if r.Err == nil {
		ch.dispatch(p.o, &p.row[0], r.At())
		if ch.attached != nil {
			r.Later(ch.attached.port)
		}
		p.over(ch, nil)
	} else {
		ch.undo(p.o, &p.row[0])
		if ledger.Failing(r.Err) && c.hub.ctx.Err() == nil {
			ch.turns.keepUnstored(p)
			ch.unlock()
			return
		}
		p.over(ch, r.Err)
	}
	ch.unlock()
	if r.Err == nil && c.hub.Events.wanted() {
		c.hub.created(c, p.conv, ledger.Row{}, p.unit.Out)
	}
	p.tell(p.row[0].ID, r.Err)
}

func (p *lastAnswer) tell(id ledger.MessageID, err error) {
	if p.stored != nil {
		p.stored(id, err)
	}
}

// over ends the turn.
func (p *lastAnswer) over(ch *locked, err error) {
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
		p.over(ch, err)
		ch.unlock()
		p.tell(sent.ID, err)
		ch = c.lock()
	}
	conv.mending = false
	ch.turns.runWaiting(conv)
}
