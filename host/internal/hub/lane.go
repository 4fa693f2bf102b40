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

// laneOf finds or makes the lane of a conversation. The mutex must be held.
func (c *Channel) laneOf(conv *conversation) *lane {
	l := c.lanes[conv.Key]
	if l == nil {
		conv.held++
		l = &lane{conv: conv}
		if c.lanes == nil { // here, as most adapters don't acknowledge
			c.lanes, c.flights = map[string]*lane{}, map[ledger.MessageID]*lane{}
		}
		c.lanes[conv.Key] = l
	}
	return l
}

// forget drops a lane that is empty. The mutex must be held.
func (c *Channel) forget(l *lane) {
	if l.Empty() && c.lanes[l.conv.Key] == l {
		delete(c.lanes, l.conv.Key)
		c.release(l.conv)
	}
}

// reserve keeps the conversation's lane for a message that is about to be
// committed; false if the message must wait.
func (c *Channel) reserve(conv *conversation, o *outgoing) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.loaded {
		return false
	}
	l := c.laneOf(conv)
	if !l.Reserve() {
		return false
	}
	o.lane = l
	return true
}

// undo forgets what was meant to become of a row that was not committed. The
// mutex must be held.
func (c *Channel) undo(o *outgoing, row *ledger.Row) {
	switch {
	case row.State == ledger.Queued:
		c.backlog--
	case o.lane != nil:
		o.lane.Release()
		c.mayTake(o.lane)
		c.forget(o.lane)
	}
}

// launch puts a committed message in flight that the lane was reserved for. The
// mutex must be held.
func (c *Channel) launch(o *outgoing) {
	p := o.parcel
	if c.lanes[p.conv.Key] != o.lane || !c.taker().acked() { // whoever it was for is gone
		c.settle(p, ledger.Queued, "")
		return
	}
	if first, ok := o.lane.First(); ok && first < p.ID {
		// It was on its way to the queue, not committed yet, when the lane looked
		// empty to this one.
		o.lane.Release()
		c.settle(p, ledger.Queued, "")
		return
	}
	o.lane.Start(p.ID)
	c.fly(o.lane, p)
}

// fly writes the first frame of what the lane has in flight that is not
// acknowledged. The mutex must be held.
func (c *Channel) fly(l *lane, p Parcel) {
	a := c.taker()
	if p.planned != a {
		planned := c.plan(p.out, a.view, p.Routing)
		if p.Frames, p.planned = planned.Frames, a; planned.TooLarge {
			c.finish(l, ledger.Failed, ledger.ReasonFrameTooLarge, nil)
			return
		}
	}
	p.identify()
	l.parcel, l.handle = p, ""
	c.flights[p.ID] = l
	if l.first == p.ID && l.frame < len(p.Frames) { // else it is made of other frames by now
		l.Resume(l.frame)
	}
	c.offerFrame(l)
}

// offerFrame writes the frame that is due. The mutex must be held.
func (c *Channel) offerFrame(l *lane) {
	_, frame := l.Flight()
	if frame >= len(l.parcel.Frames) { // there is nothing to show
		c.finish(l, ledger.Delivered, "", nil)
		return
	}
	one := l.parcel
	one.tracked = true
	one.Frames = one.Frames[frame : frame+1]
	l.sent = time.Now()
	if !l.parcel.planned.port.Offer(one) {
		l.parcel.planned.refused = true // its end, which is near, takes everything back
		return
	}
	c.lastSent = l.sent
}

// Acknowledge takes the adapter's word on a frame.
func (a *Attachment) Acknowledge(in *wire.Inbound) {
	c := a.channel
	c.mu.Lock()
	l, id, frame := c.flightOf(in.MessageID)
	if l == nil || c.attached != a || !l.Acked(id, frame) {
		c.mu.Unlock() // late, or twice
		return
	}
	c.lastAck, l.again = time.Now(), false
	said := in.Later
	why := clip(said.Error)
	switch _, next := l.Flight(); {
	case said.OK && next < len(l.parcel.Frames):
		c.note(l, said.PreviewHandle)
		c.offerFrame(l)
	case said.OK:
		c.note(l, said.PreviewHandle)
		c.finish(l, ledger.Delivered, "", nil)
	case said.Ambiguous:
		c.finish(l, ledger.Failed, ledger.ReasonUnknownOutcome, []ledger.Life{{What: "ambiguous", Detail: why}})
	case said.Retryable:
		l.Resume(frame)
		c.retry(l, why)
	default:
		c.finish(l, ledger.Failed, ledger.ReasonRejected, []ledger.Life{{What: "refused", Detail: why}})
	}
	c.mu.Unlock()
	a.port.Flush()
}

// flightOf finds the message in flight whose frame has the id; nil = none. That of
// a deletion or a reaction is of the message that it is about. The mutex must be held.
func (c *Channel) flightOf(ref string) (l *lane, id ledger.MessageID, frame int) {
	if id, frame, ok := parseFrameID(ref); ok && c.flights[id] != nil {
		return c.flights[id], id, frame
	}
	for id, l := range c.flights {
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
// has come. The mutex must be held.
func (c *Channel) note(l *lane, handle string) {
	if l.handle == "" {
		l.handle = handle
	}
	if id, frame := l.Flight(); frame < len(l.parcel.Frames) {
		c.change(change{conv: l.conv, to: ledger.Settlement{ID: id, State: ledger.Sent, Tracked: true, Frame: frame, Tries: l.Tries(), Handle: l.handle}})
	}
}

// finish ends the message in flight, and takes the next. The mutex must be held.
func (c *Channel) finish(l *lane, s ledger.State, why ledger.Reason, life []ledger.Life) {
	id, _ := l.Flight()
	delete(c.flights, id)
	if d := c.drafts[id]; d != nil {
		d.know(l.handle)
	}
	l.Settle()
	if s == ledger.Delivered {
		c.arrived(&l.parcel, c.lastAck)
	}
	c.change(change{conv: l.conv, of: ledger.Out, to: ledger.Settlement{ID: id, State: s, Reason: why, Handle: l.handle, Life: life}})
	l.parcel = Parcel{}
	c.mayTake(l)
	c.forget(l)
	if len(c.ready) > 0 { // there may be room for another conversation's now
		c.drain()
	}
}

// mayTake looks whether the lane has a message to send. The mutex must be held.
func (c *Channel) mayTake(l *lane) {
	due, ok := l.Due()
	switch wait := time.Until(due); {
	case !ok:
	case wait > 0:
		c.lookAgain(l, wait)
	case !l.ready:
		l.ready = true
		c.ready = append(c.ready, l)
		c.drain()
	}
}

// lookAgain is mayTake, later. The mutex must be held.
func (c *Channel) lookAgain(l *lane, after time.Duration) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(after, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lanes[l.conv.Key] == l {
			c.mayTake(l)
		}
	})
}

// waits puts a queued message into its lane. The mutex must be held.
func (c *Channel) waits(conv *conversation, id ledger.MessageID) {
	if !c.taker().acked() {
		c.drain()
		return
	}
	l := c.laneOf(conv)
	l.Wait(id)
	c.mayTake(l)
}

// retry lets the message in flight wait for its next try, or ends it. The mutex
// must be held.
func (c *Channel) retry(l *lane, why string) {
	id, frame := l.Flight()
	_, again := l.Retry(time.Now(), c.policy.attempts())
	if !again {
		c.finish(l, ledger.Failed, ledger.ReasonRetriesExhausted, []ledger.Life{{What: "refused for now", Detail: why}})
		return
	}
	delete(c.flights, id)
	l.parcel, l.first, l.frame = Parcel{}, id, frame
	c.backlog++
	t := ledger.Settlement{ID: id, State: ledger.Queued, Frame: frame, Tries: l.Tries(), Life: []ledger.Life{{What: "refused for now", Detail: why}}}
	c.change(change{conv: l.conv, to: t})
	c.mayTake(l)
}

// ground takes back everything that is in flight: whoever it was sent to is
// gone. The lanes are made anew when somebody comes who acknowledges. The mutex
// must be held.
func (c *Channel) ground() {
	for id, l := range c.flights {
		delete(c.flights, id)
		_, frame := l.Flight()
		c.settleAs(l.parcel, ledger.Settlement{
			ID: id, State: ledger.Queued, Frame: frame, Tries: l.Tries(), Life: []ledger.Life{{What: "session lost"}},
		})
	}
	for key, l := range c.lanes {
		if l.timer != nil {
			l.timer.Stop()
		}
		delete(c.lanes, key)
		c.release(l.conv)
	}
	c.loaded, c.ready = false, nil
}
