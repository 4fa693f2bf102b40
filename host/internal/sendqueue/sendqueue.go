// Package sendqueue holds what waits to be written to one connection: bounded,
// in order, and written in one go.
package sendqueue

import (
	"sync"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Queue holds the frames of one connection that wait to be written. Many may add
// to it at once, and none of them ever waits; one goroutine writes: by Serve, or
// with Ready and Some where frames travel by other means than a transport.Conn.
type Queue struct {
	maxFrames, maxBytes int

	ready chan struct{} // holds one: there is something to do for who writes

	mu     sync.Mutex // guards what follows
	frames [][]byte
	bytes  int
	ping   bool
	code   wire.CloseCode // to close with once the frames are written; 0 = none
	why    string
}

// New makes a queue of at most so many frames, and so many bytes of them.
func New(maxFrames, maxBytes int) *Queue {
	return &Queue{maxFrames: maxFrames, maxBytes: maxBytes, ready: make(chan struct{}, 1)}
}

// Put adds a frame, which must not change afterwards. It reports false if there
// is no room: the peer does not read, and the caller should Abort. After Close
// and Abort a frame is dropped, and the answer is true.
func (q *Queue) Put(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.code != 0 {
		return true
	}
	if len(q.frames) >= q.maxFrames || q.bytes+len(frame) > q.maxBytes {
		return false
	}
	q.frames = append(q.frames, frame)
	q.bytes += len(frame)
	q.Wake()
	return true
}

// Ping has Serve ask the peer for a sign of life, behind what waits.
func (q *Queue) Ping() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ping = true
	q.Wake()
}

// Close takes no more frames. Serve closes the connection with the code and the
// reason once what waits is written. It reports whether the queue was open: the
// first reason counts.
func (q *Queue) Close(code wire.CloseCode, why string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.close(code, why)
}

// Abort is Close that also drops what waits, even of a queue that is closed
// already. A Write that hangs it does not end: closing the connection does.
func (q *Queue) Abort(code wire.CloseCode, why string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.frames, q.bytes = nil, 0
	return q.close(code, why)
}

func (q *Queue) close(code wire.CloseCode, why string) bool {
	first := q.code == 0
	if first {
		q.code, q.why = code, why
	}
	q.Wake()
	return first
}

// Closed is what the queue was closed with; 0 = it is open.
func (q *Queue) Closed() (code wire.CloseCode, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.code, q.why
}

// Empty reports whether nothing waits to be written.
func (q *Queue) Empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.frames) == 0
}

// Ready yields once there may be something to write, or the queue was closed.
func (q *Queue) Ready() <-chan struct{} { return q.ready }

// Wake makes Ready yield.
func (q *Queue) Wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// Some takes as many frames as fit into a number of bytes, with so many bytes
// between each two; at least one, if there is one.
func (q *Queue) Some(most, between int) [][]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.frames) && (n == 0 || size+between+len(q.frames[n]) <= most) {
		if n > 0 {
			size += between
		}
		size += len(q.frames[n])
		q.bytes -= len(q.frames[n])
		n++
	}
	taken := q.frames[:n:n]
	if q.frames = q.frames[n:]; len(q.frames) == 0 {
		q.frames = nil
	}
	return taken
}

// Serve writes what waits, all in one Write, until the queue is closed, a Write
// fails, or gone is closed because whoever reads the connection has ended. Unless
// the reader ended first it has closed the connection when it returns. The error
// is that of Write.
func (q *Queue) Serve(conn transport.Conn, gone <-chan struct{}) error {
	for {
		select {
		case <-q.ready:
		case <-gone:
		}
		q.mu.Lock()
		frames, ping, code, why := q.frames, q.ping, q.code, q.why
		q.frames, q.bytes, q.ping = nil, 0, false
		q.mu.Unlock()
		if len(frames) > 0 {
			if err := conn.Write(frames...); err != nil {
				q.Abort(wire.CloseTooSlow, "write failed")
				_ = conn.Close(wire.CloseTooSlow, transport.ErrSlow.Error())
				return err
			}
		}
		if ping {
			_ = conn.Ping() // if it fails the connection ends anyway
		}
		if code != 0 {
			_ = conn.Close(code, why)
			return nil
		}
		select {
		case <-gone:
			// A close may have come since the look above, and who reads waits for it.
			if code, why := q.Closed(); code != 0 {
				_ = conn.Close(code, why)
			}
			return nil
		default:
		}
	}
}
