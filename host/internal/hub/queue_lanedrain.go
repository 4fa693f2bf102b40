package hub

import (
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// maxReadBytes is where a batch of messages that are read from the queue ends.
const maxReadBytes = 1 << 20

// drainLanes sends what waits in the lanes, until nothing may be taken any more.
func (c *Channel) drainLanes(a *Attachment) error {
	if err := c.loadLanes(a); err != nil {
		return err
	}
	for {
		if err := c.roomForMore(); err != nil {
			return err
		}
		jobs, err := c.takeJobs(a)
		if err != nil || len(jobs) == 0 {
			return err
		}
		if err := c.beginAll(jobs); err != nil {
			return err
		}
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
			ch.queue.laneOf(convs[i]).Wait(messageOf(w.ID, w.Tries, w.Frame))
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

// messageOf is what a lane knows of a message that was stored with so many tries and
// acknowledged frames.
func messageOf(id ledger.MessageID, tries, frame int) delivery.Message {
	return delivery.Message{ID: id, Tries: uint32(max(0, tries)), Frame: uint16(max(0, frame))} //nolint:gosec // G115: at most as many as the limits of attempts and frames
}

// takeJobs takes what may be sent now.
func (c *Channel) takeJobs(a *Attachment) ([]*laneJob, error) {
	ch := c.lock()
	defer ch.unlock()
	q := &ch.queue
	if q.taker() != a || q.requeuing > 0 {
		return nil, errNobody
	}
	var jobs []*laneJob
	for len(q.ready) > 0 && !q.full() {
		l := q.ready[0]
		q.ready = q.ready[1:]
		l.ready = false
		if q.lanes[l.conv.Key] != l {
			continue
		}
		for j := q.take(l); j != nil; j = q.take(l) {
			l.reading++
			if jobs = append(jobs, j); q.full() {
				break
			}
		}
		if !q.full() {
			q.mayTake(l) // its time may come later
		} else if !l.ready { // who makes room looks at it
			l.ready = true
			q.ready = append(q.ready, l)
		}
	}
	return jobs, nil
}

// beginAll begins to send what was taken, as far as it can be read now; the rest
// waits again.
func (c *Channel) beginAll(jobs []*laneJob) error {
	read, looked, err := c.read(jobs)
	for i, j := range jobs {
		row := ledger.Row{State: ledger.Sent}
		switch e := read[j.id]; {
		case j.o != nil:
			row = c.planned(j)
		// One whose way back to the queue is being committed is sent in the database.
		case e != nil && (e.State == ledger.Queued || e.State == ledger.Sent):
			j.o, row = c.stored(e, &outlook{a: j.a, view: j.view})
		}
		ch := c.lock()
		ch.queue.goOn(j, &row, i < looked)
		ch.unlock()
	}
	return err
}

// read reads those of the messages that are not in memory, up to a bound of bytes: of
// the first so many as it says.
func (c *Channel) read(jobs []*laneJob) (read map[ledger.MessageID]*ledger.Entry, looked int, err error) {
	var ids []ledger.MessageID
	for _, j := range jobs {
		if j.o == nil {
			ids = append(ids, j.id)
		}
	}
	if len(ids) == 0 {
		return nil, len(jobs), nil
	}
	found, n, err := c.hub.Store.EntriesWithin(c.hub.ctx, ids, maxReadBytes)
	read = make(map[ledger.MessageID]*ledger.Entry, len(found))
	for i := range found {
		read[found[i].ID] = &found[i]
	}
	if n == len(ids) {
		return read, len(jobs), err
	}
	return read, slices.IndexFunc(jobs, func(j *laneJob) bool { return j.id == ids[n] }), err
}

// goOn begins to send a message that was taken and read, unless its lane took it back
// meanwhile.
func (q *queue) goOn(j *laneJob, row *ledger.Row, looked bool) {
	j.l.reading--
	switch {
	case q.taking[j.id] != j:
		q.release(j.conv)
	case j.o != nil:
		q.begin(j, row)
	case looked: // swept, or ended by somebody else
		delete(q.taking, j.id)
		j.l.Settle(j.id)
		q.mayTake(j.l)
		q.forget(j.l)
		q.release(j.conv)
	default:
		q.back(j.l, j.id)
		q.mayTake(j.l)
		q.release(j.conv)
	}
}
