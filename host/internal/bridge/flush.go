package bridge

import (
	"errors"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// maxControl bounds the answers to an adapter that sends but does not read.
const maxControl = 4 * MaxParcels

// frameOverhead is what a frame takes that says nothing, roughly: while it waits, and
// as it is written.
const frameOverhead = 240 + 80

// Offer implements hub.Port.
func (n *Session) Offer(p hub.Parcel) bool {
	size := len(p.Frames) * (frameOverhead + len(p.Routing.SessionKey) + len(p.Routing.ConversationID) + len(p.Routing.ReplyCtx))
	for i := range p.Frames {
		size += len(p.Frames[i].Text) + len(p.Frames[i].Parts) + len(p.Frames[i].UI)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.retired || n.code != 0 {
		return false
	}
	if p.Lossy() {
		n.offerLossy(p)
		return true
	}
	if n.over(MaxParcels, MaxOutBytes, size) && n.behind(n.over(hardParcels, hardBytes, size)) {
		n.close(wire.CloseTooSlow, "too slow: messages wait for longer than they may")
		return false
	}
	n.durable++
	n.bytes += size
	n.queue = append(n.queue, item{parcel: p, size: size})
	return true
}

// over reports that one parcel more, of this size, would be over the bounds.
func (n *Session) over(parcels, bytes, size int) bool {
	return n.durable >= parcels || n.bytes+size > bytes && n.durable > 0
}

// behind reports that an adapter for which more waits than may is to blame: the
// flusher has not come back for it for slowAfter, or it is beyond any excuse. One
// commit may hold more than the bound for an adapter that reads all the time.
// The mutex must be held.
func (n *Session) behind(beyond bool) bool {
	now := time.Now()
	if n.overSince.IsZero() {
		n.overSince = now
	}
	return beyond || now.Sub(n.overSince) >= slowAfter
}

// noWait is a channel on which nobody waits.
var noWait = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Room implements hub.Port.
func (n *Session) Room() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.retired || n.code != 0 || n.durable < MaxParcels/2 && n.bytes < MaxOutBytes/2 {
		return noWait
	}
	if n.room == nil {
		n.room = make(chan struct{})
	}
	return n.room
}

// hasRoom wakes who waits for Room. The mutex must be held.
func (n *Session) hasRoom() {
	if n.room != nil {
		close(n.room)
		n.room = nil
	}
}

// offerLossy keeps the newest of what is the state of the same thing, and none
// when the adapter is behind.
func (n *Session) offerLossy(p hub.Parcel) {
	for i := range n.queue {
		q := &n.queue[i]
		if q.parcel.Lossy() && len(q.parcel.Frames) > 0 && q.parcel.Key == p.Key {
			q.parcel.Frames = nil
		}
	}
	if len(n.queue) < maxLossy {
		n.queue = append(n.queue, item{parcel: p})
	}
}

// answer writes a frame that answers the adapter itself.
func (n *Session) answer(frame []byte) {
	n.leave(frame)
	n.Flush()
}

// leave queues a frame that answers the adapter itself, for the next Flush.
func (n *Session) leave(frame []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.code != 0 {
		return
	}
	if waiting := len(n.queue); waiting >= maxControl && n.behind(waiting >= 4*maxControl) {
		n.close(wire.CloseTooSlow, "too slow: answers wait for longer than they may")
		return
	}
	n.queue = append(n.queue, item{frame: frame})
}

// Flush implements ledger.Flusher.
func (n *Session) Flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) > 0 {
		n.start()
	}
}

// FlushHere implements ledger.Leader. It writes once: while others go on to add
// something, that is the flusher's, so that the reader gets back to its socket.
func (n *Session) FlushHere() {
	n.mu.Lock()
	if len(n.queue) == 0 || n.flushing || n.dead {
		n.mu.Unlock()
		return
	}
	n.flushing = true
	n.flushed = make(chan struct{})
	done := n.flushed
	n.mu.Unlock()
	if n.flushOnce() {
		go n.flush(done)
	} else {
		close(done)
	}
}

// Lively implements ledger.Leader.
func (n *Session) Lively() bool { return n.lively }

// Overdue implements hub.Port.
func (n *Session) Overdue() { n.shut(wire.CloseTooSlow, "no acknowledgement in time") }

// Retire implements hub.Port.
func (n *Session) Retire() []hub.Parcel {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.retired = true
	n.hasRoom()
	var left []hub.Parcel
	kept := n.queue[:0]
	for _, q := range n.queue {
		if !q.parcel.Lossy() {
			left = append(left, q.parcel)
		} else if q.frame != nil {
			kept = append(kept, q)
		}
	}
	n.queue = kept
	return left
}

// shut closes the connection once what waits is written, or at once if its token
// has ended: an adapter that reads slowly could else stay for as long as it likes.
// The first reason counts.
func (n *Session) shut(code wire.CloseCode, why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.close(code, why)
}

// close implements shut. The mutex must be held.
func (n *Session) close(code wire.CloseCode, why string) {
	if n.code != 0 {
		return
	}
	n.code, n.why = code, why
	n.hasRoom()
	if n.revoked() && n.flushing && !n.dead {
		n.cut = make(chan struct{})
		go func() { // Session.end waits for it
			defer close(n.cut)
			_ = n.conn.Close(code, why) // which ends a write that hangs
		}()
		return
	}
	n.start()
}

// revoked reports that nothing is written any more. The mutex must be held.
func (n *Session) revoked() bool { return n.code == wire.CloseRevoked }

// start runs the flusher if none runs. The mutex must be held.
func (n *Session) start() {
	if n.flushing || n.dead {
		return
	}
	n.flushing = true
	n.flushed = make(chan struct{})
	go n.flush(n.flushed) // Session.end waits for it
}

// maxWrite is where one socket write ends though more waits: large frames must
// not add up in memory.
const maxWrite = 1 << 20

var encodeBuffers = sync.Pool{New: func() any { return new([]byte) }}

// flush writes until nothing waits.
func (n *Session) flush(done chan struct{}) {
	defer close(done)
	for n.flushOnce() {
	}
}

// flushOnce writes what waits, all in one socket write, and reports whether
// there is more; else the flusher has ended.
func (n *Session) flushOnce() bool {
	n.mu.Lock()
	items := n.queue
	if len(items) == 0 || n.revoked() {
		n.flushing = false
		code, why := n.code, n.why
		n.dead = n.dead || code != 0 // nothing comes after the close frame
		n.mu.Unlock()
		if code != 0 {
			_ = n.conn.Close(code, why)
		}
		return false
	}
	n.queue, n.spare = n.spare[:0], nil
	n.durable, n.bytes, n.overSince = 0, 0, time.Time{}
	n.hasRoom()
	n.mu.Unlock()

	buf := encodeBuffers.Get().(*[]byte)
	unknown, err := n.write(items, buf)
	if cap(*buf) <= maxWrite {
		encodeBuffers.Put(buf)
	}
	if err != nil {
		n.broken(unknown, err)
		return false
	}
	clear(items)
	n.mu.Lock()
	defer n.mu.Unlock()
	if cap(items) <= MaxParcels {
		n.spare = items
	}
	if len(n.queue) == 0 && n.code == 0 {
		n.flushing = false
		return false
	}
	return true
}

// write encodes the items and writes them at once, or in slices of maxWrite if
// they are large. On failure it returns the items of which it is unknown
// whether they arrived.
func (n *Session) write(items []item, buf *[]byte) (unknown []item, err error) {
	b := (*buf)[:0]
	ends := make([]int, 0, 2*len(items))
	ping, from := false, 0
	for i := range items {
		q := &items[i]
		ping = ping || q.ping
		if len(q.parcel.Frames) > 0 {
			n.ring() // what a user will ask for must be kept, also of an adapter that has said nothing yet
		}
		if q.frame != nil {
			b = append(b, q.frame...)
			ends = append(ends, len(b))
		}
		for j := range q.parcel.Frames {
			b = q.parcel.Frames[j].Append(b, q.parcel.Routing)
			ends = append(ends, len(b))
			if len(b) >= maxWrite {
				if err := n.send(b, ends); err != nil {
					return items[from:], err
				}
				b, ends, from = b[:0], ends[:0], i
			}
		}
	}
	*buf = b
	if err = n.send(b, ends); err == nil && ping {
		err = n.conn.Ping()
	}
	return items[from:], err
}

// send writes the frames that b holds one after the other, up to each end.
func (n *Session) send(b []byte, ends []int) error {
	if len(ends) == 0 {
		return nil
	}
	frames := make([][]byte, len(ends))
	from := 0
	for i, end := range ends {
		frames[i] = b[from:end]
		from = end
	}
	at := time.Now() // the adapter's answer may be read before Write returns
	err := n.conn.Write(frames...)
	if err == nil {
		n.out.Add(uint64(len(ends)))
	}
	n.recordSent(at, frames, err)
	return err
}

// broken ends a session whose write failed: of what was being written it is
// unknown whether it arrived. It may run before the session knows its inbox, so end
// says so.
func (n *Session) broken(items []item, err error) {
	why := "write failed"
	if errors.Is(err, transport.ErrSlow) {
		why = transport.ErrSlow.Error()
	}
	n.mu.Lock()
	for _, q := range items {
		if !q.parcel.Lossy() {
			n.lost = append(n.lost, q.parcel)
		}
	}
	n.dead, n.retired, n.flushing = true, true, false // what waits still, Detach takes
	n.hasRoom()
	if n.code == 0 {
		n.code, n.why = wire.CloseTooSlow, why
	}
	n.mu.Unlock()
	_ = n.conn.Close(wire.CloseTooSlow, why)
}
