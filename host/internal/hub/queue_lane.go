package hub

import (
	"strconv"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// lane is the outbound order of one conversation while the channel's adapter
// acknowledges. The channel's mutex guards it.
type lane struct {
	delivery.Lane
	conv    *conversation // held until the lane is forgotten
	heard   time.Time     // the latest acknowledgement
	void    bool          // the adapter takes nothing until a frame says that it goes on
	reading int           // of what was taken, it is not appended yet
	timer   *time.Timer   // until the next try; nil = none
	ready   bool          // it is in queue.ready
}

// flight is a message that was written and is not acknowledged.
type flight struct {
	*lane
	id     ledger.MessageID
	parcel Parcel    // with all of its frames
	sent   time.Time // its latest frame
	again  bool      // that was sent once more
	handle string    // that the adapter gave with the first frame

	awake  func() bool // ends its rest; nil = it does not rest
	held   bool        // what it says instead is being committed
	notes  []byte      // of its plan, if the disk has none yet
	queued bool        // it rests, or is about to be sent behind that: on the disk it is queued
}

// frame is the first one that is not acknowledged.
func (f *flight) frame() int { return int(f.Flight(f.id).Frame) }

// tries is how often the message has failed.
func (f *flight) tries() int { return int(f.Flight(f.id).Tries) }

// acked reports whether the attachment acknowledges.
func (a *Attachment) acked() bool { return a != nil && a.view.Caps.Has(wire.CapAck) }

// window is how many messages of a conversation may be in flight at once.
func (q *queue) window() int {
	a := q.taker()
	if a == nil || q.aloft > maxAloft {
		return 1
	}
	return max(1, min(a.inFlight, a.view.Profile.InFlight))
}

// maxAloft is how many bytes of a channel are in flight, roughly, when each
// conversation has one message in flight and no more.
const maxAloft = 1 << 20

// laneOf finds or makes the lane of a conversation.
func (q *queue) laneOf(conv *conversation) *lane {
	l := q.lanes[conv.Key]
	if l == nil {
		conv.held++
		l = &lane{conv: conv}
		if q.lanes == nil { // here, as most adapters don't acknowledge
			q.lanes, q.flights, q.taking = map[string]*lane{}, map[ledger.MessageID]*flight{}, map[ledger.MessageID]*laneJob{}
		}
		q.lanes[conv.Key] = l
	}
	return l
}

// forget drops a lane that is empty, unless its adapter is to be told that it goes on.
func (q *queue) forget(l *lane) {
	if l.Empty() && !l.void && q.lanes[l.conv.Key] == l {
		delete(q.lanes, l.conv.Key)
		q.release(l.conv)
	}
}

// reserve keeps a place in the conversation's lane for a message that is about to be
// committed; false if the message must wait, such as for one that was taken and whose
// own commit has not begun.
func (q *queue) reserve(conv *conversation, o *outgoing) bool {
	if !q.loaded || q.requeuing > 0 {
		return false
	}
	l := q.laneOf(conv)
	if l.reading > 0 || !l.Reserve(q.window(), len(o.parcel.Frames) > 1 || o.draft != nil) {
		return false
	}
	o.lane, o.fleet = l, q.fleet
	q.begun++
	return true
}

// unreserve gives up the place of a message that was not committed.
func (q *queue) unreserve(o *outgoing) {
	if o.fleet == q.fleet {
		o.lane.Release()
		q.mayTake(o.lane)
		q.forget(o.lane)
	}
	q.ends(o.fleet)
}

// launch puts a committed message in flight that a place was reserved for.
func (q *queue) launch(o *outgoing) {
	defer q.ends(o.fleet)
	p := o.parcel
	l := o.lane
	switch {
	case q.lanes[l.conv.Key] != l || !q.taker().acked(): // whoever it was for is gone
	case q.requeuing > 0: // older ones are on their way back
		l.Release()
		defer q.forget(l)
	case l.Start(p.ID): // else older ones wait by now
		q.fly(&flight{lane: l, id: p.ID, queued: o.rests}, p)
		return
	}
	if o.rests { // it is counted already
		q.backlog--
	}
	q.settle(l.conv, p.ID, ledger.Queued, "")
}

// fly writes the first frame of a message in flight that is not acknowledged.
func (q *queue) fly(f *flight, p Parcel) {
	a, l := q.taker(), f.lane
	q.flights[p.ID] = f
	if !q.outbox.fit(&p, a) {
		q.finish(f, ledger.Failed, ledger.ReasonFrameTooLarge, nil)
		return
	}
	p.identify(a.view)
	f.parcel = p
	q.aloft += p.Size
	if m := l.Flight(f.id); int(m.Frame) >= len(p.Frames) {
		m.Frame = 0 // it is made of other frames by now
	}
	if l.void && len(p.Frames) > 0 {
		p.Frames[f.frame()].Resumed = true
		l.void = false
	}
	q.offerFrame(f)
}

// offerFrame writes the frame that is due, or lets it rest until it may be written.
func (q *queue) offerFrame(f *flight) {
	frame := f.frame()
	if frame >= len(f.parcel.Frames) { // there is nothing to show
		q.finish(f, ledger.Delivered, "", nil)
		return
	}
	var d *draft
	if frame == 0 { // the one that changes the draft
		d = q.outbox.drafts[f.id]
	}
	if d != nil && d.ended && d.sure != "" && len(f.parcel.Frames) == 1 && f.parcel.Frames[0].Text == d.sure { // it says so already
		q.finish(f, ledger.Delivered, "", []ledger.Life{{What: "left out", Detail: "the edit would change nothing"}})
		return
	}
	if wait := q.outbox.rests(d); wait > 0 {
		q.rest(f, wait)
		return
	}
	if f.queued {
		q.depart(f)
		return
	}
	one := f.parcel
	one.Tracked = true
	one.Frames = one.Frames[frame : frame+1]
	f.sent = time.Now()
	if !q.attached.port.Offer(one) {
		q.attached.refused = true // its end, which is near, takes everything back
		return
	}
	q.outbox.lastSent = f.sent
	if d != nil {
		q.outbox.wrote(d)
	}
}

// rest writes the frame that is due later. It flies alone until then: what is behind it
// stays there.
func (q *queue) rest(f *flight, wait time.Duration) {
	q.resting++
	f.awake = q.c.hub.After(wait, func() {
		ch := q.c.lock()
		if f.awake == nil { // it has landed
			ch.unlock()
			return
		}
		ch.queue.wake(f)
		ch.queue.offerFrame(f)
		port := ch.attached.port
		ch.unlock()
		port.Flush()
	})
}

// depart commits that a message is sent which is queued and flies, and writes it then.
func (q *queue) depart(f *flight) {
	q.change(change{conv: f.conv, of: ledger.Out, to: ledger.Settlement{
		ID: f.id, State: ledger.Sent, Tracked: true, Frame: f.frame(), Tries: f.tries(), Notes: f.notes,
	}, then: func(err error) {
		if q.flights[f.id] != f { // it was taken back
			return
		}
		if err != nil {
			q.finish(f, ledger.Failed, ledger.ReasonRejected, nil)
			return
		}
		q.backlog--
		f.queued = false
		q.stateChanged(f.conv, f.id, ledger.Sent, "")
		q.offerFrame(f)
		q.attached.port.Flush()
	}})
}

// wake ends the rest of a message, if it does.
func (q *queue) wake(f *flight) {
	if f.awake != nil {
		f.awake()
		f.awake = nil
		q.resting--
	}
}

// Acknowledge takes the adapter's word on a frame; false if it ignores it, since no
// message is in flight whose frame has the id. The port is flushed by the caller.
func (a *Attachment) Acknowledge(in *wire.Inbound) bool {
	c := a.channel
	ch := c.lock()
	defer ch.unlock()
	f, frame := ch.queue.flightOf(in.MessageID)
	if f == nil || ch.attached != a || !f.Acked(f.id, frame) {
		ch.count().Ignored++ // late, twice, or of what nobody sent
		return false
	}
	f.heard, f.again = time.Now(), false
	said := in.Later
	why := clip(said.Error)
	if !said.OK || f.frame() == len(f.parcel.Frames) { // its other frames are still to be taken
		ch.count().Said.hear(said.OK, f.heard, why)
	}
	switch {
	case said.OK && f.frame() < len(f.parcel.Frames):
		ch.queue.note(f, said)
		ch.queue.offerFrame(f)
	case said.OK:
		ch.queue.note(f, said)
		a.learn(ch.outbox.drafts[f.id], f.handle)
		ch.queue.finish(f, ledger.Delivered, "", noted(said))
	case said.Ambiguous:
		ch.queue.finish(f, ledger.Failed, ledger.ReasonUnknownOutcome, []ledger.Life{{What: "ambiguous", Detail: why}})
	case said.Retryable:
		f.Flight(f.id).Frame = uint16(frame) //nolint:gosec // G115: it has been one
		ch.queue.retry(f, why, time.Duration(said.RetryAfterMS)*time.Millisecond)
	case frame == 0 && ch.queue.sendInstead(f, why):
	default:
		ch.queue.finish(f, ledger.Failed, ledger.ReasonRejected, []ledger.Life{{What: "refused", Detail: why}})
	}
	return true
}

// flightOf finds the message in flight whose frame has the id; nil = none. That of
// a deletion or a reaction is of the message that it is about: the oldest is meant,
// as an adapter answers in the order in which they came.
func (q *queue) flightOf(ref string) (found *flight, frame int) {
	if id, frame, ok := parseFrameID(ref); ok && q.flights[id] != nil {
		return q.flights[id], frame
	}
	for id, f := range q.flights {
		due := f.frame()
		if (found == nil || id < found.id) && due < len(f.parcel.Frames) && f.parcel.Frames[due].MessageID == ref && isOfAnother(&f.parcel.Frames[due]) {
			found, frame = f, due
		}
	}
	return found, frame
}

// maxDetail bounds what is kept of an adapter's reason, in bytes.
const maxDetail = 500

func clip(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "") + "…"
}

// parseFrameID reads the id of a frame: that of its message, and behind a slash
// which of its frames it is, unless it is the first.
func parseFrameID(s string) (id ledger.MessageID, frame int, ok bool) {
	name, number, more := strings.Cut(s, "/")
	id, err := ledger.ParseMessageID(name)
	if err != nil {
		return 0, 0, false
	}
	if !more {
		return id, 0, true
	}
	n, err := strconv.Atoi(number)
	return id, n - 1, err == nil && n > 1
}

// note keeps the handle that came with the first frame, and how far the message
// has come.
func (q *queue) note(f *flight, said *wire.Later) {
	if f.handle == "" {
		f.handle = said.PreviewHandle
	}
	if frame := f.frame(); frame < len(f.parcel.Frames) {
		q.change(change{conv: f.conv, to: ledger.Settlement{
			ID: f.id, State: ledger.Sent, Tracked: true, Frame: frame, Tries: f.tries(), Handle: f.handle, Life: noted(said),
		}})
	}
}

// noted is what an adapter says of a frame that it took, if it could not show all of it.
func noted(said *wire.Later) []ledger.Life {
	if said.Note == "" {
		return nil
	}
	return []ledger.Life{{What: "not shown as it was", Detail: clip(said.Note)}}
}

// land takes a message out of those that are written and not acknowledged.
func (q *queue) land(f *flight) {
	q.wake(f)
	if f.queued {
		f.queued = false
		q.backlog--
	}
	delete(q.flights, f.id)
	q.aloft -= f.parcel.Size
}

// finish ends a message in flight, and takes the next.
func (q *queue) finish(f *flight, s ledger.State, why ledger.Reason, life []ledger.Life) {
	q.land(f)
	q.outbox.know(f.id, f.handle)
	f.Settle(f.id)
	if s == ledger.Delivered {
		at := f.heard
		if at.IsZero() { // the far end shows it already
			at = time.Now()
		}
		q.arrived(&f.parcel, at)
	}
	q.change(change{conv: f.conv, of: ledger.Out, to: ledger.Settlement{ID: f.id, State: s, Reason: why, Handle: f.handle, Life: life}})
	q.mayTake(f.lane)
	q.forget(f.lane)
	if len(q.ready) > 0 { // there may be room for another conversation's now
		q.drain()
	}
}

// retry lets a message in flight wait for its next try, or ends it. What left behind it
// the adapter does not take either. after is what the adapter wants to be waited; 0 = it
// did not say.
func (q *queue) retry(f *flight, why string, after time.Duration) {
	frame := f.frame()
	l := f.lane
	life := []ledger.Life{{What: "refused for now", Detail: why}}
	if after > 0 && l.Flight(f.id).Later {
		life = nil // it says so for as long as it likes: once is enough
	}
	back, again := l.Retry(f.id, time.Now(), after, q.policy.attempts())
	l.void = q.attached.inFlight > 1
	for _, id := range back {
		if id == f.id {
			q.waitAgain(f, frame, life)
		} else {
			q.takenBack(l, id)
		}
	}
	if !again {
		q.finish(f, ledger.Failed, ledger.ReasonRetriesExhausted, life)
		return
	}
	q.mayTake(l)
}

// waitAgain commits that a message waits which was in flight, and is in its lane
// already.
func (q *queue) waitAgain(f *flight, frame int, life []ledger.Life) {
	q.land(f)
	again := &outgoing{message: *f.parcel.Message, parcel: f.parcel}
	again.parcel.View = 0 // to be planned anew
	q.keep(f.id, again)
	q.backlog++
	tries := 0
	if m := f.Waits(f.id); m != nil {
		tries = int(m.Tries)
	}
	q.waitsStill(f.conv, ledger.Settlement{ID: f.id, State: ledger.Queued, Frame: frame, Tries: tries, Life: life})
}

// waitsStill commits that a message is queued which is in its lane already. If another
// adapter takes over meanwhile, that is waited for: the queue is read without it else.
func (q *queue) waitsStill(conv *conversation, t ledger.Settlement) {
	q.begun++
	fleet := q.fleet
	q.change(change{conv: conv, to: t, then: func(error) { q.ends(fleet) }})
}

// takenBack goes on with what a lane has taken back, since it goes behind another.
func (q *queue) takenBack(l *lane, id ledger.MessageID) {
	if f := q.flights[id]; f != nil {
		q.waitAgain(f, int(l.Waits(id).Frame), nil)
	}
	if j := q.taking[id]; j != nil { // its commit may go on, and counts for nothing
		delete(q.taking, id)
		if j.o != nil {
			q.keep(id, j.o)
		}
	}
}

// back lets messages wait again that were taken: they are not written.
func (q *queue) back(l *lane, id ledger.MessageID) {
	for _, id := range l.Back(id) {
		q.takenBack(l, id)
	}
}

// waits puts a queued message into its lane.
func (q *queue) waits(conv *conversation, m delivery.Message) {
	if !q.taker().acked() {
		q.drain()
		return
	}
	l := q.laneOf(conv)
	l.Wait(m)
	q.mayTake(l)
}

// ground takes back everything that is in flight: whoever it was sent to is
// gone. The lanes are made anew when somebody comes who acknowledges.
func (q *queue) ground() {
	for id, f := range q.flights {
		q.land(f)
		q.settleAs(f.conv, ledger.Settlement{
			ID: id, State: ledger.Queued, Frame: f.frame(), Tries: f.tries(), Life: []ledger.Life{{What: "session lost"}},
		})
	}
	for key, l := range q.lanes {
		if l.timer != nil {
			l.timer.Stop()
		}
		delete(q.lanes, key)
		q.release(l.conv)
	}
	// What is being committed as sent goes back once it is, and comes before all others.
	q.requeuing += q.begun
	q.requeued = q.requeued || q.begun > 0
	q.begun = 0
	q.fleet++
	clear(q.taking)
	q.unkeepAll()
	q.loaded, q.ready = false, nil
}
