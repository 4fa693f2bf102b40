package hub

import (
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Bounds of what is kept in memory of messages that wait in lanes, in bytes: the others
// are read when their time has come.
const (
	maxKept         = 1 << 20  // of a channel
	maxKeptTogether = 32 << 20 // of all
)

// maxFlights bounds what of a channel is taken from lanes and in flight at once: far
// below what a session may have waiting.
const maxFlights = 256

// keep remembers a message that waits, if there is room for it.
func (q *queue) keep(id ledger.MessageID, o *outgoing) {
	size := o.parcel.Size
	if q.keptBytes+size > maxKept || q.c.hub.kept.Load()+int64(size) > maxKeptTogether {
		return
	}
	if len(o.message.Parts) > 0 {
		o.parcel.View = 0 // it may have links, which end some time after they were made
	}
	if q.kept == nil {
		q.kept = map[ledger.MessageID]*outgoing{}
	}
	if q.kept[id] == nil {
		q.kept[id] = o
		q.keptBytes += size
		q.c.hub.kept.Add(int64(size))
	}
}

// unkeep returns what keep remembered; nil = nothing.
func (q *queue) unkeep(id ledger.MessageID) *outgoing {
	o := q.kept[id]
	if o != nil {
		delete(q.kept, id)
		q.keptBytes -= o.parcel.Size
		q.c.hub.kept.Add(-int64(o.parcel.Size))
	}
	return o
}

func (q *queue) unkeepAll() {
	for id := range q.kept {
		q.unkeep(id)
	}
}

// lookAnew is called when the adapter may be sent other things than before: what is kept
// was planned for nobody then, and more may fly.
func (q *queue) lookAnew() {
	for _, o := range q.kept {
		o.parcel.View = 0
	}
	for _, l := range q.lanes {
		q.mayTake(l)
	}
}

// laneJob is a message that a lane gave to be sent, until that is committed. It counts
// while it is in queue.taking: else its lane took it back.
type laneJob struct {
	l    *lane
	a    *Attachment
	conv *conversation // held
	id   ledger.MessageID
	view wire.View // the attachment's
	o    *outgoing // nil = it is to be read

	fleet int // see queue, when its commit began
}

// maxRising bounds what is committed as sent at once, in bytes: with what a port that
// has room may hold already, it must be less than makes it close.
const maxRising = 2 << 20

// full reports whether no more may be taken from lanes for now.
func (q *queue) full() bool {
	return len(q.flights)-q.resting+len(q.taking) >= maxFlights || q.rising >= maxRising
}

// take takes a lane's first message, if it may fly now; nil = none.
func (q *queue) take(l *lane) *laneJob {
	m, ok := l.Take(time.Now(), q.window())
	if !ok {
		return nil
	}
	l.conv.held++
	a := q.taker()
	j := &laneJob{l: l, a: a, conv: l.conv, id: m.ID, view: a.view, o: q.unkeep(m.ID)}
	q.taking[m.ID] = j
	return j
}

// mayTake sends what of the lane may be sent, or sees to it that it is looked at again.
func (q *queue) mayTake(l *lane) {
	for {
		due, ok := l.Due(q.window())
		if !ok {
			return
		}
		if wait := time.Until(due); wait > 0 {
			q.lookAgain(l, wait)
			return
		}
		if q.takeKept(l) {
			continue
		}
		if !l.ready {
			l.ready = true
			q.ready = append(q.ready, l)
			q.drain()
		}
		return
	}
}

// takeKept sends the lane's first message if it is in memory; false if it is not, or may
// not be taken now. It must not overtake one that is being read.
func (q *queue) takeKept(l *lane) bool {
	id, _ := l.First()
	if q.kept[id] == nil || l.reading > 0 || !q.loaded || q.requeuing > 0 || q.full() || q.taker() == nil {
		return false
	}
	j := q.take(l)
	row := q.c.planned(j)
	q.begin(j, &row)
	return true
}

// planned is what becomes of a message that is in memory. It is planned again if that
// was for somebody else.
func (c *Channel) planned(j *laneJob) ledger.Row {
	if j.o.parcel.View == j.a.id {
		return ledger.Row{State: ledger.Sent, Notes: notesOf(j.o.degraded)}
	}
	row := c.prepare(j.o, &outlook{a: j.a, view: j.view}, j.o.parcel.Routing)
	j.o.parcel.ID = j.id
	return row
}

// lookAgain is mayTake, later.
func (q *queue) lookAgain(l *lane, after time.Duration) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(after, func() {
		defer q.c.lock().unlock()
		if q.lanes[l.conv.Key] == l {
			q.mayTake(l)
		}
	})
}

// begin begins to commit that a message is sent, which was taken and planned.
func (q *queue) begin(j *laneJob, row *ledger.Row) {
	if len(q.stuck[j.id]) > 0 { // the disk did not even take what it was before
		q.back(j.l, j.id)
		q.lookAgain(j.l, delivery.FirstPause)
		q.release(j.conv)
		return
	}
	if len(j.o.parcel.Frames) > 1 || isLastEdit(j.o.parcel.Message) {
		if back, ok := j.l.Many(j.id); !ok {
			for _, id := range back {
				q.takenBack(j.l, id)
			}
			q.keep(j.id, j.o)
			q.mayTake(j.l) // perhaps nothing flies now, so that nothing would end and look
			q.release(j.conv)
			return
		}
	}
	if row.State == ledger.Sent && q.outbox.rests(q.outbox.drafts[j.id]) > 0 { // it is queued until it may be written
		delete(q.taking, j.id)
		q.fly(&flight{lane: j.l, id: j.id, queued: true, notes: row.Notes}, j.o.parcel)
		q.release(j.conv)
		return
	}
	m := j.l.Flight(j.id)
	t := ledger.Settlement{
		ID: j.id, State: row.State, Reason: row.Reason, Notes: row.Notes, Tracked: row.State == ledger.Sent, Tries: int(m.Tries), Frame: int(m.Frame),
	}
	size := j.o.parcel.Size
	q.rising += size
	q.begun++
	j.fleet = q.fleet
	q.c.hub.Store.Append(&ledger.Unit{Conversation: j.conv.Conversation, Settle: []ledger.Settlement{t}}, func(r ledger.Result) {
		ch := q.c.lock()
		wasFull := ch.queue.rising >= maxRising
		ch.queue.rising -= size
		ch.queue.taken(j, t, r)
		ch.queue.ends(j.fleet)
		if wasFull && ch.queue.rising < maxRising && len(ch.queue.ready) > 0 {
			ch.queue.drain()
		}
		ch.unlock()
	})
}

// ends counts the end of a commit that begun counts, and that was begun with this fleet.
func (q *queue) ends(fleet int) {
	if fleet == q.fleet {
		q.begun--
		return
	}
	q.requeuing-- // see ground
	q.drain()
}

// taken goes on with a message whose commit is over.
func (q *queue) taken(j *laneJob, t ledger.Settlement, r ledger.Result) {
	defer q.release(j.conv)
	counts := q.taking[j.id] == j
	here := q.lanes[j.l.conv.Key] == j.l && q.taker() == j.a
	if counts {
		delete(q.taking, j.id)
	}
	if r.Err == nil {
		q.overtake(j.id)
		q.stalled = false
	}
	switch {
	case r.Err != nil:
		if counts && here {
			q.notTaken(j, r.Err)
		}
	case t.State != ledger.Sent:
		q.backlog--
		q.count().settled(ledger.Out, t.State, t.Reason)
		q.stateChanged(j.conv, j.id, t.State, t.Reason)
		if here {
			j.l.Settle(j.id)
		}
		q.drop(j.conv, j.id)
	case counts && here:
		q.backlog--
		q.stateChanged(j.conv, j.id, t.State, t.Reason)
		q.fly(&flight{lane: j.l, id: j.id}, j.o.parcel)
		r.Later(j.a.port)
	case !here:
		q.backlog--
		q.settleAs(j.conv, ledger.Settlement{ID: j.id, State: ledger.Queued, Frame: t.Frame, Tries: t.Tries})
	case j.l.Waits(j.id) != nil: // its lane took it back, and nobody has taken it since
		q.waitsStill(j.conv, ledger.Settlement{ID: j.id, State: ledger.Queued, Frame: t.Frame, Tries: t.Tries})
	}
}

// drop takes a message that is over from the lane where it waits, if it does: it may be
// read and taken for one adapter between its commit as queued and the word of that, which
// puts it into the lane that there is then, of another one.
func (q *queue) drop(conv *conversation, id ledger.MessageID) {
	if l := q.lanes[conv.Key]; l != nil {
		l.Drop(id)
		q.unkeep(id)
		q.mayTake(l)
		q.forget(l)
	}
}

// notTaken lets a message wait whose commit was refused: it is tried again soon.
func (q *queue) notTaken(j *laneJob, err error) {
	q.back(j.l, j.id)
	q.lookAgain(j.l, delivery.FirstPause)
	if !q.stalled && q.c.hub.ctx.Err() == nil {
		q.c.hub.Log.Error("queue not written: it is tried again each second", "channel", q.policy.Name, "error", err)
	}
	q.stalled = true
}
