package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/host/internal/sendqueue"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Bounds of one connection of an agent.
const (
	maxLinkFrames = 1024                                 // that wait to be written
	maxLinkBytes  = 2 * agentwire.Window * wire.MaxFrame // of them: an agent that comes back gets all open turns at once
	maxErrands    = 64                                   // frames without a turn that wait
)

// link is one connection of an agent. Its reader runs serve; a writer and one
// goroutine for what belongs to no turn end with it.
type link struct {
	host  *Sockets
	conn  *recorder
	from  SocketOrigin
	queue *sendqueue.Queue

	errands chan *agentwire.FromAgent
	gone    chan struct{} // closed when the reader has ended
	busy    atomic.Bool   // the reader waits for the host, and reads nothing
	pinged  time.Time     // of pulse alone

	// guarded by Sockets.mu until admit is over; then they don't change
	desk    *Desk
	key     int64
	expires time.Time // zero = never; Sockets.mu
}

func newLink(s *Sockets, c transport.Conn, from SocketOrigin) *link {
	return &link{
		host: s, conn: &recorder{Conn: c}, from: from, queue: sendqueue.New(maxLinkFrames, maxLinkBytes),
		errands: make(chan *agentwire.FromAgent, maxErrands), gone: make(chan struct{}), pinged: time.Now(),
	}
}

// serve runs the connection to its end.
func (l *link) serve() {
	var rest sync.WaitGroup
	rest.Go(func() { _ = l.queue.Serve(l.conn, l.gone) }) // if it fails Read does, and says why
	err := l.guard(l.greet)
	entered := err == nil
	if entered {
		rest.Go(func() { _ = l.guard(l.runErrands) })
		err = l.guard(l.read)
		l.desk.leave(l)
	}
	l.noteEnd(entered, err)
	if code, why := l.queue.Closed(); code != 0 {
		err = fmt.Errorf("closed with %d: %s", code, why)
	}
	close(l.gone)
	rest.Wait()
	drainConn(l.conn)
	if l.desk != nil {
		l.host.Log.Info("agent gone", "agent", l.desk.row.Name, "remote", l.from.Remote, "reason", err)
	}
}

// guard makes a defect of ours cost one connection only.
func (l *link) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.host.Log.Error("agent's connection panicked", "error", p, "stack", string(debug.Stack()))
			err = errors.New("internal error")
			l.shut(wire.CloseOverload, err.Error())
		}
	}()
	return f()
}

// greet reads hello and lets the agent in, or refuses it.
func (l *link) greet() error {
	late := time.AfterFunc(l.host.HelloTimeout, func() { l.shut(wire.CloseRefused, errLate.Error()) })
	defer late.Stop()
	frame, err := l.conn.Read()
	if err != nil {
		return err
	}
	hello, werr := agentwire.DecodeFromAgent(frame)
	if werr != nil || hello.Type != agentwire.TypeHello {
		if werr != nil {
			return l.refuse(agentwire.RefusedFirstFrame, werr.Message)
		}
		return l.refuse(agentwire.RefusedFirstFrame, "")
	}
	key := l.from.Key
	if key == "" {
		key = hello.Key
	}
	if l.from.Key = ""; key == "" {
		return l.refuse(agentwire.RefusedMissingKey, "")
	}
	if l.host.Failures.Allow(l.from.Remote, netguard.AgentKeys) > 0 {
		return l.refuse(agentwire.RefusedInvalidKey, "not looked at: too many wrong ones came from there")
	}
	ctx, cancel := context.WithTimeout(l.host.ctx, l.host.HelloTimeout)
	defer cancel()
	desk, err := l.host.admit(ctx, l, key)
	switch {
	case errors.Is(err, auth.ErrInvalid):
		l.host.Failures.Failed(l.from.Remote, netguard.AgentKeys, key)
		l.noteKey(err)
		return l.turnAway(agentwire.RefusedInvalidKey)
	case err != nil:
		l.host.Log.Error("agent's key not checked", "remote", l.from.Remote, "error", err)
		l.shut(wire.CloseOverload, "storage unavailable")
		return err
	case hello.Agent != "" && hello.Agent != desk.row.Name:
		return l.refuse(agentwire.RefusedInvalidKey, "the key is another agent's than hello names")
	case !late.Stop():
		return errLate
	}
	l.keepFrames(hello)
	if !desk.enter(l, hello) {
		return errRefused
	}
	l.host.Note(l.met(ledger.Attached))
	l.host.Log.Info("agent connected", "agent", desk.row.Name, "remote", l.from.Remote)
	return nil
}

// refuse turns an agent away; detail is for the history of connections alone.
func (l *link) refuse(why, detail string) error {
	c := l.met(ledger.Turned)
	if c.Code, c.Why = int(wire.CloseRefused), why; detail != "" {
		c.Why += ": " + detail
	}
	l.host.Note(c)
	return l.turnAway(why)
}

// turnAway is refuse for what is noted already.
func (l *link) turnAway(why string) error {
	l.host.Log.Info("agent refused", "remote", l.from.Remote, "reason", why)
	l.send(&agentwire.FromHost{Type: agentwire.TypeHelloAck, HelloAck: &agentwire.HelloAck{Error: why}})
	l.shut(wire.CloseRefused, why)
	return errRefused
}

// read takes frames until the connection ends.
func (l *link) read() error {
	pace := newPace(l.desk.config.MaxFrames)
	for {
		l.busy.Store(false)
		frame, err := l.conn.Read()
		if err != nil {
			return err
		}
		l.busy.Store(true)
		came := time.Now()
		f, werr := agentwire.DecodeFromAgent(frame)
		if limited := pace.refuses(f); limited != nil {
			werr = limited
		} else if werr != nil {
			pace.refused()
		}
		l.record(frame, werr)
		if werr != nil {
			l.error(werr)
			continue
		}
		l.take(f)
		pace.took(came)
	}
}

// take acts on one frame.
func (l *link) take(f *agentwire.FromAgent) {
	switch f.Type {
	case agentwire.TypeHello:
		l.error(&wire.Error{Code: wire.CodeAlreadyRegistered, Message: "type: found hello, which only the first frame may be"})
	case agentwire.TypePing:
		l.send(&agentwire.FromHost{Type: agentwire.TypePong})
	case agentwire.TypePong: // any frame is a sign of life
	case agentwire.TypeMessageAck:
		l.desk.acked(f.TurnID)
	default:
		l.desk.take(l, f)
	}
}

// runErrands sends what belongs to no turn, one after the other.
func (l *link) runErrands() error {
	for {
		select {
		case f := <-l.errands:
			l.desk.errand(l.host.ctx, f)
		case <-l.gone:
			return nil
		}
	}
}

// error answers a frame that is not taken.
func (l *link) error(e *wire.Error) {
	l.send(&agentwire.FromHost{Type: agentwire.TypeError, Error: e})
}

// send queues a frame. An agent that does not read is closed.
func (l *link) send(f *agentwire.FromHost) { l.sendBytes(f.Append(nil)) }

func (l *link) sendBytes(frame []byte) {
	if !l.queue.Put(frame) {
		l.cut(wire.CloseTooSlow, "too slow: frames wait for longer than they may")
	}
}

// shut closes the connection once what waits is written, or at once if its key has
// ended: an agent that reads slowly could else stay for as long as it likes. The first
// reason counts.
func (l *link) shut(code wire.CloseCode, why string) {
	if code == wire.CloseRevoked {
		l.cut(code, why)
		return
	}
	l.queue.Close(code, why)
}

// cut closes the connection, and with it a write that hangs; what waits is dropped.
func (l *link) cut(code wire.CloseCode, why string) {
	if l.queue.Abort(code, why) {
		l.host.wg.Go(func() { _ = l.conn.Close(code, why) })
	}
}

// pulse pings when it is time, and drops who was silent for too long or whose key
// has expired.
func (l *link) pulse(now time.Time) {
	l.host.mu.Lock()
	known, expires := l.desk != nil, l.expires
	l.host.mu.Unlock()
	switch {
	case !expires.IsZero() && !now.Before(expires):
		l.shut(wire.CloseRevoked, "key expired")
	case !known: // hello has a time of its own
	case !l.busy.Load() && now.Sub(l.conn.Heard()) >= l.host.SilenceTimeout: // while we don't read, the silence is ours
		l.shut(wire.CloseRefused, "silent for too long")
	case now.Sub(l.pinged) >= l.host.PingInterval:
		l.pinged = now
		l.queue.Ping()
	}
}
