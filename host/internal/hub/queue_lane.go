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
	conv   *conversation    // held until the lane is forgotten
	parcel Parcel           // in flight, with all of its frames
	sent   time.Time        // its latest frame
	again  bool             // that was sent once more
	first  ledger.MessageID // the message that goes on at …
	frame  int              // … this frame, since the others were acknowledged
	handle string           // that the adapter gave with the first frame
	timer  *time.Timer      // until the next try; nil = none
	ready  bool             // it is in Channel.ready
}

// acked reports whether the attachment acknowledges.
func (a *Attachment) acked() bool { return a != nil && a.view.Caps.Has(wire.CapAck) }

// laneOf finds or makes the lane of a conversation.
func (q *queue) laneOf(conv *conversation) *lane {
	l := q.lanes[conv.Key]
	if l == nil {
		conv.held++
		l = &lane{conv: conv}
		if q.lanes == nil { // here, as most adapters don't acknowledge
			q.lanes, q.flights = map[string]*lane{}, map[ledger.MessageID]*lane{}
		}
		q.lanes[conv.Key] = l
	}
	return l
}

// forget drops a lane that is empty.
func (q *queue) forget(l *lane) {
	if l.Empty() && q.lanes[l.conv.Key] == l {
		delete(q.lanes, l.conv.Key)
		q.release(l.conv)
	}
}

// reserve keeps the conversation's lane for a message that is about to be
// committed; false if the message must wait.
func (q *queue) reserve(conv *conversation, o *outgoing) bool {
	if !q.loaded {
		return false
	}
	l := q.laneOf(conv)
	if !l.Reserve() {
		return false
	}
	o.lane = l
	return true
}

// launch puts a committed message in flight that the lane was reserved for.
func (q *queue) launch(o *outgoing) {
	p := o.parcel
	l := o.lane
	if q.lanes[l.conv.Key] != l || !q.taker().acked() { // whoever it was for is gone
		q.settle(l.conv, p.ID, ledger.Queued, "")
		return
	}
	if first, ok := l.First(); ok && first < p.ID {
		// It was on its way to the queue, not committed yet, when the lane looked
		// empty to this one.
		l.Release()
		q.settle(l.conv, p.ID, ledger.Queued, "")
		return
	}
	l.Start(p.ID)
	q.fly(l, p)
}

// fly writes the first frame of what the lane has in flight that is not
// acknowledged.
func (q *queue) fly(l *lane, p Parcel) {
	a := q.taker()
	if !q.outbox.fit(&p, a) {
		q.finish(l, ledger.Failed, ledger.ReasonFrameTooLarge, nil)
		return
	}
	p.identify(a.view)
	l.parcel, l.handle = p, ""
	q.flights[p.ID] = l
	if l.first == p.ID && l.frame < len(p.Frames) { // else it is made of other frames by now
		l.Resume(l.frame)
	}
	q.offerFrame(l)
}

// offerFrame writes the frame that is due.
func (q *queue) offerFrame(l *lane) {
	_, frame := l.Flight()
	if frame >= len(l.parcel.Frames) { // there is nothing to show
		q.finish(l, ledger.Delivered, "", nil)
		return
	}
	one := l.parcel
	one.Tracked = true
	one.Frames = one.Frames[frame : frame+1]
	l.sent = time.Now()
	if !q.attached.port.Offer(one) {
		q.attached.refused = true // its end, which is near, takes everything back
		return
	}
	q.outbox.lastSent = l.sent
}

// Acknowledge takes the adapter's word on a frame; false if it ignores it, since no
// message is in flight whose frame has the id. The port is flushed by the caller.
func (a *Attachment) Acknowledge(in *wire.Inbound) bool {
	c := a.channel
	ch := c.lock()
	l, id, frame := ch.queue.flightOf(in.MessageID)
	if l == nil || ch.attached != a || !l.Acked(id, frame) {
		ch.count().Ignored++ // late, twice, or of what nobody sent
		ch.unlock()
		return false
	}
	ch.lastAck, l.again = time.Now(), false
	said := in.Later
	why := clip(said.Error)
	switch _, next := l.Flight(); {
	case said.OK && next < len(l.parcel.Frames):
		ch.queue.note(l, said.PreviewHandle)
		ch.queue.offerFrame(l)
	case said.OK:
		ch.queue.note(l, said.PreviewHandle)
		ch.queue.finish(l, ledger.Delivered, "", nil)
	case said.Ambiguous:
		ch.queue.finish(l, ledger.Failed, ledger.ReasonUnknownOutcome, []ledger.Life{{What: "ambiguous", Detail: why}})
	case said.Retryable:
		l.Resume(frame)
		ch.queue.retry(l, why)
	default:
		ch.queue.finish(l, ledger.Failed, ledger.ReasonRejected, []ledger.Life{{What: "refused", Detail: why}})
	}
	ch.unlock()
	return true
}

// flightOf finds the message in flight whose frame has the id; nil = none. That of
// a deletion or a reaction is of the message that it is about.
func (q *queue) flightOf(ref string) (l *lane, id ledger.MessageID, frame int) {
	if id, frame, ok := parseFrameID(ref); ok && q.flights[id] != nil {
		return q.flights[id], id, frame
	}
	for id, l := range q.flights {
		_, due := l.Flight()
		if due < len(l.parcel.Frames) && l.parcel.Frames[due].MessageID == ref && isOfAnother(&l.parcel.Frames[due]) {
			return l, id, due
		}
	}
	return nil, 0, 0
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
func (q *queue) note(l *lane, handle string) {
	if l.handle == "" {
		l.handle = handle
	}
	if id, frame := l.Flight(); frame < len(l.parcel.Frames) {
		q.change(change{conv: l.conv, to: ledger.Settlement{ID: id, State: ledger.Sent, Tracked: true, Frame: frame, Tries: l.Tries(), Handle: l.handle}})
	}
}

// finish ends the message in flight, and takes the next.
func (q *queue) finish(l *lane, s ledger.State, why ledger.Reason, life []ledger.Life) {
	id, _ := l.Flight()
	delete(q.flights, id)
	q.outbox.know(id, l.handle)
	l.Settle()
	if s == ledger.Delivered {
		q.arrived(&l.parcel, q.lastAck)
	}
	q.change(change{conv: l.conv, of: ledger.Out, to: ledger.Settlement{ID: id, State: s, Reason: why, Handle: l.handle, Life: life}})
	l.parcel = Parcel{}
	q.mayTake(l)
	q.forget(l)
	if len(q.ready) > 0 { // there may be room for another conversation's now
		q.drain()
	}
}

// mayTake looks whether the lane has a message to send.
func (q *queue) mayTake(l *lane) {
	due, ok := l.Due()
	switch wait := time.Until(due); {
	case !ok:
	case wait > 0:
		q.lookAgain(l, wait)
	case !l.ready:
		l.ready = true
		q.ready = append(q.ready, l)
		q.drain()
	}
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

// waits puts a queued message into its lane.
func (q *queue) waits(conv *conversation, id ledger.MessageID) {
	if !q.taker().acked() {
		q.drain()
		return
	}
	l := q.laneOf(conv)
	l.Wait(id)
	q.mayTake(l)
}

// retry lets the message in flight wait for its next try, or ends it.
func (q *queue) retry(l *lane, why string) {
	id, frame := l.Flight()
	_, again := l.Retry(time.Now(), q.policy.attempts())
	if !again {
		q.finish(l, ledger.Failed, ledger.ReasonRetriesExhausted, []ledger.Life{{What: "refused for now", Detail: why}})
		return
	}
	delete(q.flights, id)
	l.parcel, l.first, l.frame = Parcel{}, id, frame
	q.backlog++
	t := ledger.Settlement{ID: id, State: ledger.Queued, Frame: frame, Tries: l.Tries(), Life: []ledger.Life{{What: "refused for now", Detail: why}}}
	q.change(change{conv: l.conv, to: t})
	q.mayTake(l)
}

// ground takes back everything that is in flight: whoever it was sent to is
// gone. The lanes are made anew when somebody comes who acknowledges.
func (q *queue) ground() {
	for id, l := range q.flights {
		delete(q.flights, id)
		_, frame := l.Flight()
		q.settleAs(l.conv, ledger.Settlement{
			ID: id, State: ledger.Queued, Frame: frame, Tries: l.Tries(), Life: []ledger.Life{{What: "session lost"}},
		})
	}
	for key, l := range q.lanes {
		if l.timer != nil {
			l.timer.Stop()
		}
		delete(q.lanes, key)
		q.release(l.conv)
	}
	q.loaded, q.ready = false, nil
}
