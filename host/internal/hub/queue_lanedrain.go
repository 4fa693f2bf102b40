package hub

import (
	"errors"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// maxFlights bounds what of a channel is in flight at once: far below what a
// session may have waiting.
const maxFlights = 256

// maxJobBytes is where a batch of jobs ends, roughly: with what a port with room
// may hold already, less than makes it close.
const maxJobBytes = 2 << 20

// laneJob is a message that a lane gave to be sent.
type laneJob struct {
	l    *lane
	a    *Attachment
	conv *conversation // held
	id   ledger.MessageID
	view wire.View
}

// drainLanes sends what waits in the lanes, until nothing may be taken any more.
func (c *Channel) drainLanes(a *Attachment) error {
	if err := c.loadLanes(a); err != nil {
		return err
	}
	for {
		jobs, err := c.takeJobs(a)
		if err != nil || len(jobs) == 0 {
			return err
		}
		done := make(chan error, len(jobs))
		begun, bytes := 0, 0
		for begun < len(jobs) && bytes < maxJobBytes {
			bytes += c.takeFromLane(jobs[begun], done)
			begun++
		}
		c.giveBack(jobs[begun:])
		for range begun {
			err = errors.Join(err, <-done)
		}
		if err == nil {
			err = c.roomForMore()
		}
		if err != nil {
			return err
		}
	}
}

// giveBack lets messages wait again that were taken too early.
func (c *Channel) giveBack(jobs []laneJob) {
	ch := c.lock()
	defer ch.unlock()
	for _, j := range jobs {
		j.l.Back()
		if ch.queue.lanes[j.l.conv.Key] == j.l {
			ch.queue.mayTake(j.l)
		}
		ch.release(j.conv)
	}
}

// loadLanes fills the lanes from the database, once for each adapter that
// acknowledges.
func (c *Channel) loadLanes(a *Attachment) error {
	ch := c.lock()
	loaded := ch.queue.loaded
	ch.unlock()
	if loaded {
		return nil
	}
	all, err := c.hub.Store.Waiting(c.hub.ctx, c.tail.Channel)
	if err != nil {
		return err
	}
	convs := make([]*conversation, len(all))
	for i, w := range all {
		if convs[i], err = c.hold(c.hub.ctx, w.Conversation); err != nil {
			all, convs = all[:i], convs[:i]
			break
		}
	}
	ch = c.lock()
	defer ch.unlock()
	mine := err == nil && ch.taker() == a && ch.queue.requeuing == 0
	for i, w := range all {
		if mine {
			l := ch.queue.laneOf(convs[i])
			l.Wait(w.ID)
			if first, _ := l.First(); first == w.ID {
				l.Failed(w.Tries)
				l.first, l.frame = w.ID, w.Frame
			}
		}
		ch.release(convs[i])
	}
	switch {
	case err != nil:
		return err
	case !mine:
		return errNobody
	}
	ch.queue.loaded = true
	for _, l := range ch.queue.lanes {
		ch.queue.mayTake(l)
	}
	return nil
}

// takeJobs puts what may be sent now in flight.
func (c *Channel) takeJobs(a *Attachment) ([]laneJob, error) {
	ch := c.lock()
	defer ch.unlock()
	if ch.taker() != a || ch.queue.requeuing > 0 {
		return nil, errNobody
	}
	var jobs []laneJob
	for len(ch.queue.ready) > 0 && len(ch.queue.flights)+len(jobs) < maxFlights {
		l := ch.queue.ready[0]
		ch.queue.ready = ch.queue.ready[1:]
		l.ready = false
		if id, ok := l.Take(time.Now()); ok && ch.queue.lanes[l.conv.Key] == l {
			l.conv.held++
			jobs = append(jobs, laneJob{l, a, l.conv, id, a.view})
		}
	}
	return jobs, nil
}

// takeFromLane begins to move a message to sent; done gets its outcome. It
// returns how large the message is, roughly.
func (c *Channel) takeFromLane(j laneJob, done chan<- error) (bytes int) {
	e, err := c.hub.Store.Message(c.hub.ctx, j.id)
	// One whose way back to the queue is being committed is sent in the database.
	if err != nil || e.State != ledger.Queued && e.State != ledger.Sent {
		ch := c.lock()
		if errors.Is(err, ledger.ErrNotFound) || err == nil { // swept, or ended by somebody else
			j.l.Settle()
			err = nil
		} else {
			j.l.Back()
		}
		ch.queue.mayTake(j.l)
		ch.queue.forget(j.l)
		ch.release(j.conv)
		ch.unlock()
		done <- err
		return 0
	}
	o, row := c.stored(&e, &outlook{a: j.a, view: j.view})
	t := ledger.Settlement{ID: j.id, State: row.State, Reason: row.Reason, Notes: row.Notes, Tracked: row.State == ledger.Sent}
	ch := c.lock()
	if len(ch.queue.stuck[j.id]) > 0 { // or it could not be
		j.l.Back()
		ch.queue.lookAgain(j.l, delivery.FirstPause)
		ch.release(j.conv)
		ch.unlock()
		done <- nil
		return
	}
	t.Tries = j.l.Tries()
	if j.l.first == j.id {
		t.Frame = j.l.frame
	}
	ch.unlock()
	c.hub.Store.Append(&ledger.Unit{Conversation: j.conv.Conversation, Settle: []ledger.Settlement{t}}, func(r ledger.Result) {
		ch := c.lock()
		ch.queue.taken(j, o, t, r)
		ch.unlock()
		done <- r.Err
	})
	return len(e.Text) + len(e.Parts) + len(e.Origin.ReplyCtx)
}

// taken goes on with a message whose move is committed.
func (q *queue) taken(j laneJob, o *outgoing, t ledger.Settlement, r ledger.Result) {
	defer q.release(j.conv)
	current := q.lanes[j.l.conv.Key] == j.l && q.taker() == j.a
	if r.Err == nil {
		q.overtake(j.id)
	}
	switch {
	case r.Err != nil:
		j.l.Back()
		if current {
			q.lookAgain(j.l, delivery.FirstPause)
		}
	case t.State != ledger.Sent:
		q.backlog--
		q.count().settled(ledger.Out, t.State, t.Reason)
		q.stateChanged(j.l.conv, j.id, t.State, t.Reason)
		j.l.Settle()
		q.mayTake(j.l)
		q.forget(j.l)
	case !current:
		q.backlog--
		q.settleAs(j.conv, ledger.Settlement{ID: j.id, State: ledger.Queued, Frame: t.Frame, Tries: t.Tries})
	default:
		q.backlog--
		q.stateChanged(j.l.conv, j.id, t.State, t.Reason)
		q.fly(j.l, o.parcel)
		r.Later(j.a.port)
	}
}
