// Package outbox writes the frames of many callers to one connection: what comes while
// a write is under way goes out with the next one, all at once.
package outbox

import (
	"context"
	"errors"
	"runtime"
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

var (
	// ErrNoRoom: ctx ended before the frame's turn came. It is not written.
	ErrNoRoom = errors.New("waiting for room on the connection")
	// ErrShut: there is no connection, or it went before the frame was written whole.
	ErrShut = errors.New("connection is gone")
)

// Outbox writes frames to the connection that there is.
type Outbox struct {
	mu      sync.Mutex // guards what follows
	conn    transport.Conn
	batch   *batch // what waits
	writing bool
	turned  chan struct{} // closed when there may be room, or no connection; nil = nobody waits
	late    *time.Timer   // calls Flush
	armed   bool          // … before long
}

// batch is what is written at once.
type batch struct {
	frames [][]byte
	bytes  int
	done   chan struct{} // closed at its end, with err; nil = nobody waits for it
	err    error
}

func (b *batch) end(err error) {
	if b.err = err; b.done != nil {
		close(b.done)
	}
}

// New makes one that has no connection.
func New() *Outbox {
	o := &Outbox{batch: &batch{}}
	o.late = time.AfterFunc(time.Hour, o.Flush)
	o.late.Stop()
	return o
}

// Open makes conn the connection to write to, and these the first frames that are.
func (o *Outbox) Open(conn transport.Conn, frames [][]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop()
	o.conn = conn
	for _, frame := range frames {
		o.add(frame)
	}
}

// Shut drops what was not written to conn.
func (o *Outbox) Shut(conn transport.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn == conn {
		o.conn = nil
		o.drop()
		o.arm(false, 0)
	}
}

// Put adds a frame, if there is a connection: Flush, or FlushSoon, writes it.
func (o *Outbox) Put(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn != nil {
		o.add(frame)
	}
}

// Post adds a frame once there is room for it, and has it written: by this caller, or
// by who is writing. Its error is ErrNoRoom or ErrShut, and nil says no more than that
// the frame was not dropped yet.
func (o *Outbox) Post(ctx context.Context, frame []byte) error {
	_, err := o.post(ctx, frame, false)
	return err
}

// Write is Post that waits until the frame is written. A write has its own limit: ctx
// bounds what comes before it.
func (o *Outbox) Write(ctx context.Context, frame []byte) error {
	b, err := o.post(ctx, frame, true)
	if err != nil {
		return err
	}
	<-b.done
	return b.err
}

func (o *Outbox) post(ctx context.Context, frame []byte, waits bool) (*batch, error) {
	o.mu.Lock()
	for o.conn != nil && o.batch.bytes > maxUnwritten {
		if !o.await(ctx) {
			o.mu.Unlock()
			return nil, ErrNoRoom
		}
	}
	if o.conn == nil {
		o.mu.Unlock()
		return nil, ErrShut
	}
	o.add(frame)
	b := o.batch
	if waits && b.done == nil {
		b.done = make(chan struct{})
	}
	o.writeAll()
	o.mu.Unlock()
	return b, nil
}

// FlushSoon has what waits written within maxDelay, together with what follows it.
func (o *Outbox) FlushSoon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.armed && len(o.batch.frames) > 0 {
		o.arm(true, maxDelay)
	}
}

// Flush writes what waits, unless another caller is at it, who takes it along.
func (o *Outbox) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.arm(false, 0) // also if another writes: the timer that calls has gone off
	for o.writing && o.batch.bytes > maxUnwritten {
		o.await(context.Background())
	}
	o.writeAll()
}

// writeAll is Flush that does not wait for who writes. The mutex is held, but while it
// writes.
func (o *Outbox) writeAll() {
	if o.writing || len(o.batch.frames) == 0 {
		return
	}
	o.arm(false, 0)
	o.writing = true
	o.mu.Unlock()
	runtime.Gosched() // who is about to say something says it now, and needs no write of its own
	o.mu.Lock()
	for n := 0; len(o.batch.frames) > 0; n++ {
		if n == maxWrites { // the caller has something else to do
			o.arm(true, 0)
			break
		}
		o.writeOut()
	}
	o.writing = false
	o.turn()
}

// writeOut writes what waits at once.
func (o *Outbox) writeOut() {
	b, conn := o.batch, o.conn
	o.batch = &batch{}
	o.mu.Unlock()
	err := conn.Write(b.frames...)
	if err != nil {
		_ = conn.Close(wire.CloseNormal, "write failed") // its reader sees it; the next one takes what matters
		err = ErrShut
	}
	o.mu.Lock()
	if err != nil && o.conn == conn {
		o.conn = nil
		o.drop()
	}
	b.end(err)
	o.turn()
}

func (o *Outbox) add(frame []byte) {
	o.batch.frames = append(o.batch.frames, frame)
	o.batch.bytes += len(frame)
}

// drop gives up what was not written.
func (o *Outbox) drop() {
	o.batch.end(ErrShut)
	o.batch = &batch{}
	o.turn()
}

// await waits for a turn, without the mutex; false = ctx ended first.
func (o *Outbox) await(ctx context.Context) bool {
	if o.turned == nil {
		o.turned = make(chan struct{})
	}
	turned := o.turned
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-turned:
		return true
	case <-ctx.Done():
		return false
	}
}

// turn wakes who waits.
func (o *Outbox) turn() {
	if o.turned != nil {
		close(o.turned)
		o.turned = nil
	}
}

// arm sets the timer, or stops it.
func (o *Outbox) arm(on bool, in time.Duration) {
	switch {
	case on:
		o.late.Reset(in)
	case o.armed:
		o.late.Stop()
	}
	o.armed = on
}
