package hub

import (
	"errors"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
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
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range jobs {
		j.l.Back()
		if c.lanes[j.l.conv.Key] == j.l {
			c.mayTake(j.l)
		}
		c.release(j.conv)
	}
}

// loadLanes fills the lanes from the database, once for each adapter that
// acknowledges.
func (c *Channel) loadLanes(a *Attachment) error {
	c.mu.Lock()
	loaded := c.loaded
	c.mu.Unlock()
	if loaded {
		return nil
	}
	all, err := c.hub.Store.Waiting(c.hub.ctx, c.chain.Channel)
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
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := err == nil && c.taker() == a && c.requeuing == 0
	for i, w := range all {
		if mine {
			l := c.laneOf(convs[i])
			l.Wait(w.ID)
			if first, _ := l.First(); first == w.ID {
				l.Failed(w.Tries)
				l.first, l.frame = w.ID, w.Frame
			}
		}
		c.release(convs[i])
	}
	switch {
	case err != nil:
		return err
	case !mine:
		return errNobody
	}
	c.loaded = true
	for _, l := range c.lanes {
		c.mayTake(l)
	}
	return nil
}

// takeJobs puts what may be sent now in flight.
func (c *Channel) takeJobs(a *Attachment) ([]laneJob, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taker() != a || c.requeuing > 0 {
		return nil, errNobody
	}
	var jobs []laneJob
	for len(c.ready) > 0 && len(c.flights)+len(jobs) < maxFlights {
		l := c.ready[0]
		c.ready = c.ready[1:]
		l.ready = false
		if id, ok := l.Take(time.Now()); ok && c.lanes[l.conv.Key] == l {
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
		c.mu.Lock()
		if errors.Is(err, ledger.ErrNotFound) || err == nil { // swept, or ended by somebody else
			j.l.Settle()
			err = nil
		} else {
			j.l.Back()
		}
		c.mayTake(j.l)
		c.forget(j.l)
		c.release(j.conv)
		c.mu.Unlock()
		done <- err
		return 0
	}
	o := &outgoing{message: restore(e), agent: e.Origin.Agent}
	routing := wire.Routing{SessionKey: e.Origin.SessionKey, ConversationID: e.Conversation, ReplyCtx: e.Origin.ReplyCtx}
	row := c.prepare(o, j.view, routing, j.conv, j.a)
	o.parcel.ID = j.id
	t := ledger.Settlement{ID: j.id, State: row.State, Reason: row.Reason, Notes: row.Notes, Tracked: row.State == ledger.Sent}
	c.mu.Lock()
	if len(c.stuck[j.id]) > 0 { // or it could not be
		j.l.Back()
		c.lookAgain(j.l, delivery.FirstPause)
		c.release(j.conv)
		c.mu.Unlock()
		done <- nil
		return
	}
	t.Tries = j.l.Tries()
	if j.l.first == j.id {
		t.Frame = j.l.frame
	}
	c.mu.Unlock()
	c.hub.Store.Append(&sqlite.Unit{Conversation: j.conv.Conversation, Settle: []ledger.Settlement{t}, Done: func(r sqlite.Result) {
		c.mu.Lock()
		c.taken(j, o, t, r)
		c.mu.Unlock()
		done <- r.Err
	}})
	return len(e.Text) + len(e.Parts) + len(e.Origin.ReplyCtx)
}

// taken goes on with a message whose move is committed. The mutex must be held.
func (c *Channel) taken(j laneJob, o *outgoing, t ledger.Settlement, r sqlite.Result) {
	defer c.release(j.conv)
	current := c.lanes[j.l.conv.Key] == j.l && c.taker() == j.a
	if r.Err == nil {
		c.overtake(j.id)
	}
	switch {
	case r.Err != nil:
		j.l.Back()
		if current {
			c.lookAgain(j.l, delivery.FirstPause)
		}
	case t.State != ledger.Sent:
		c.backlog--
		c.count().settled(ledger.Out, t.State, t.Reason)
		c.hub.stateChanged(c, j.l.conv, j.id, t.State, t.Reason)
		j.l.Settle()
		c.mayTake(j.l)
		c.forget(j.l)
	case !current:
		c.backlog--
		c.settleAs(o.parcel, ledger.Settlement{ID: j.id, State: ledger.Queued, Frame: t.Frame, Tries: t.Tries})
	default:
		c.backlog--
		c.hub.stateChanged(c, j.l.conv, j.id, t.State, t.Reason)
		c.fly(j.l, o.parcel)
		r.Later(j.a.port)
	}
}
