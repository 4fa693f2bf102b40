package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// The agent answers so many turns at once, whatever a host does, and as many more wait for
// that. A turn counts until the host's word on its answer is there: a host that is
// slow to store answers gives new turns all the same.
const (
	maxRunning = 1024
	maxHeld    = 1024
)

var (
	errNoAck   = errors.New("host did not answer hello")
	errTooMany = fmt.Errorf("host gave %d turns before any was over", maxRunning+maxHeld)
)

// session is one connection from dial to its end; lived counts from hello_ack.
func (a *Agent) session(ctx, work context.Context) (lived time.Duration, err error) {
	conn, err := transport.Dial(ctx, a.address, a.header)
	if err != nil {
		return 0, err
	}
	var watch sync.WaitGroup
	defer watch.Wait()
	gone := make(chan struct{})
	defer close(gone)
	defer func() { // a Conn's owner must read until its end
		_ = conn.Close(wire.CloseNormal, "agent stopped")
		for err := error(nil); err == nil; {
			_, err = conn.Read()
		}
	}()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close(wire.CloseNormal, "agent stopped") })
	defer stop()
	if err := a.hello(conn); err != nil {
		return 0, err
	}
	began := time.Now()
	watch.Go(func() { a.watch(conn, gone) })
	defer a.out.Shut(conn)
	a.set(conn)
	a.log.Info("connected to the host")
	for {
		f, err := a.next(conn)
		if err != nil {
			return time.Since(began), err
		}
		if err := a.take(work, f); err != nil {
			return time.Since(began), err
		}
	}
}

// hello introduces the agent and waits for the host's word.
func (a *Agent) hello(conn transport.Conn) error {
	late := time.AfterFunc(a.timing.hello, func() { _ = conn.Close(wire.CloseNormal, "") })
	defer late.Stop()
	a.mu.Lock()
	hello := agentwire.FromAgent{Type: agentwire.TypeHello, Protocol: agentwire.Protocol, Resume: a.newest}
	a.mu.Unlock()
	if err := conn.Write(hello.Append(nil)); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	for {
		f, err := a.next(conn)
		switch {
		case errors.Is(err, transport.ErrClosed):
			return errNoAck
		case err != nil:
			return fmt.Errorf("hello: %w", err)
		case f.HelloAck == nil:
		case !f.HelloAck.OK:
			return &RefusedError{f.HelloAck.Error}
		default:
			if r := f.HelloAck.Resume; r != nil && r.Gap != "" {
				a.log.Info("the host can't say what happened meanwhile", "why", r.Gap)
			}
			return nil
		}
	}
}

// next reads the next frame that can be decoded.
func (a *Agent) next(conn transport.Conn) (*agentwire.FromHost, error) {
	for {
		frame, err := conn.Read()
		if err != nil {
			return nil, err
		}
		f, err := agentwire.DecodeFromHost(frame)
		if err == nil {
			return f, nil
		}
		a.log.Warn("host sent a frame that can't be read", "err", err)
	}
}

// watch ends a connection on which nothing was heard for too long.
func (a *Agent) watch(conn transport.Conn, gone <-chan struct{}) {
	tick := time.NewTicker(a.timing.silence / 5)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return
		case <-tick.C:
		}
		switch quiet := time.Since(conn.Heard()); {
		case quiet >= a.timing.silence:
			_ = conn.Close(wire.CloseNormal, "nothing heard")
			return
		case quiet >= a.timing.silence-a.timing.silence/4:
			_ = conn.Ping()
		}
	}
}

// set makes conn the connection to write to, and sends again what the host has not
// acknowledged.
func (a *Agent) set(conn transport.Conn) {
	a.mu.Lock()
	frames := make([][]byte, len(a.pending))
	for i, p := range a.pending {
		frames[i] = p.frame
	}
	a.out.Open(conn, frames)
	a.mu.Unlock()
	a.out.Flush()
}

// take acts on one frame of the host; an error ends the connection.
func (a *Agent) take(work context.Context, f *agentwire.FromHost) error {
	switch {
	case f.Turn != nil:
		return a.begin(work, f.Turn)
	case f.Cancel != nil:
		a.mu.Lock()
		t := a.running[f.Cancel.TurnID]
		a.mu.Unlock()
		if t != nil && f.Cancel.Reason != agentwire.CancelDraining { // that host hands it over again when it is back
			t.cancel(fmt.Errorf("%w: %s", ErrCancelled, f.Cancel.Reason))
		}
	case f.Ack != nil:
		a.settle(f.Ack)
	case f.Error != nil:
		if f.Error.Ref == "" || !a.settle(&agentwire.Ack{MessageID: f.Error.Ref, Error: f.Error.Error(), Retryable: f.Error.Retryable()}) {
			a.log.Warn("host refused a frame", "code", string(f.Error.Code), "message", f.Error.Message)
		}
	case f.Type == agentwire.TypePing:
		a.write((&agentwire.FromAgent{Type: agentwire.TypePong}).Append(nil))
	}
	return nil
}

// begin takes a turn: one that is being answered already goes on.
func (a *Agent) begin(work context.Context, w *agentwire.Turn) error {
	a.mu.Lock()
	over := a.ended.has(w.TurnID)
	var t *Turn
	if !over && a.running[w.TurnID] == nil {
		if len(a.held) == maxHeld { // it is not acknowledged, so that it comes again
			a.mu.Unlock()
			return errTooMany
		}
		t = &Turn{Turn: *w, agent: a}
		t.ctx, t.cancel = context.WithCancelCause(work)
		a.running[w.TurnID] = t
		if len(a.running)-len(a.held) > maxRunning {
			a.held, t = append(a.held, t), nil
		}
	}
	a.newest = max(a.newest, w.TurnID) // ids sort as they were given
	a.mu.Unlock()
	word := agentwire.FromAgent{Type: agentwire.TypeMessageAck, TurnID: w.TurnID}
	if over { // its end was lost with the connection
		word.Type = agentwire.TypeTurnEnd
	}
	a.out.Put(word.Append(nil))
	if t != nil {
		a.turns.Go(t.run)
	}
	a.out.FlushSoon() // an answer that is given at once goes with it
	return nil
}

// leave lets another turn run in the place of one that is over. The mutex must be held.
func (a *Agent) leave(t *Turn) {
	delete(a.running, t.TurnID)
	if len(a.held) > 0 {
		next := a.held[0]
		a.held = slices.Delete(a.held, 0, 1)
		a.turns.Go(next.run)
	}
}

// write writes a frame that is worth nothing over another connection.
func (a *Agent) write(frame []byte) {
	a.out.Put(frame)
	a.out.Flush()
}
