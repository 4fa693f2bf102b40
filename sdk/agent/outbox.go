package agent

import (
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const (
	maxUnwritten = 1 << 20              // bytes that wait for a write to end: who says more waits
	maxWrites    = 8                    // that one caller makes for others
	maxDelay     = 1 * time.Millisecond // of a frame that nobody waits for
)

// outbox writes frames to the connection that there is. What comes while a write is
// under way goes out with the next one, all at once.
type outbox struct {
	mu      sync.Mutex // guards what follows
	room    sync.Cond  // some of it was written
	conn    transport.Conn
	frames  [][]byte
	bytes   int
	writing bool
	late    *time.Timer // calls flush
	armed   bool        // … before long
}

func newOutbox() *outbox {
	o := &outbox{}
	o.room.L = &o.mu
	o.late = time.AfterFunc(time.Hour, o.flush)
	o.late.Stop()
	return o
}

// open makes conn the connection to write to, and these the first frames that are.
func (o *outbox) open(conn transport.Conn, frames [][]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conn, o.frames, o.bytes = conn, frames, 0
}

// shut drops what was not written to conn.
func (o *outbox) shut(conn transport.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn == conn {
		o.conn, o.frames, o.bytes = nil, nil, 0
		o.arm(false, 0)
	}
}

// put adds a frame, if there is a connection: flush, or flushSoon, writes it.
func (o *outbox) put(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn != nil {
		o.frames = append(o.frames, frame)
		o.bytes += len(frame)
	}
}

// flushSoon has what waits written within maxDelay, together with what follows it.
func (o *outbox) flushSoon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.armed && len(o.frames) > 0 {
		o.arm(true, maxDelay)
	}
}

// arm sets the timer, or stops it. The mutex must be held.
func (o *outbox) arm(on bool, in time.Duration) {
	switch {
	case on:
		o.late.Reset(in)
	case o.armed:
		o.late.Stop()
	}
	o.armed = on
}

// flush writes what waits, unless another caller is at it, who takes it along.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.arm(false, 0)
	for o.writing && o.bytes > maxUnwritten {
		o.room.Wait()
	}
	if o.writing {
		return
	}
	o.writing = true
	for n := 0; len(o.frames) > 0; n++ {
		if n == maxWrites { // the caller has something else to do
			o.arm(true, 0)
			break
		}
		frames, conn := o.frames, o.conn
		o.frames, o.bytes = nil, 0
		o.mu.Unlock()
		if conn.Write(frames...) != nil {
			_ = conn.Close(wire.CloseNormal, "write failed") // its reader sees it; the next one takes what matters
		}
		o.mu.Lock()
		o.room.Broadcast()
	}
	o.writing = false
	o.room.Broadcast()
}
