package agent

import (
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/framelog"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// recorder is a connection whose written frames are kept, once it is known whose it is.
type recorder struct {
	transport.Conn
	ring atomic.Pointer[framelog.Ring] // nil = none are kept
}

// Write implements transport.Conn.
func (r *recorder) Write(frames ...[]byte) error {
	at := time.Now() // the agent's answer may be read before Write returns
	err := r.Conn.Write(frames...)
	verdict := framelog.Written
	if err != nil {
		verdict = framelog.Broken
	}
	ring := r.ring.Load()
	for _, f := range frames {
		ring.Record(at, framelog.Out, f, verdict, "", false)
	}
	return err
}

// record keeps a received frame, with what was said to it.
func (l *link) record(frame []byte, err *wire.Error) {
	verdict, code := framelog.Accepted, wire.Code("")
	if err != nil {
		verdict, code = framelog.Refused, err.Code
	}
	l.conn.ring.Load().Record(l.conn.Heard(), framelog.In, frame, verdict, code, false)
}

// keepFrames begins to keep what the agent and the host say to each other. Its hello has
// a key, which is left out.
func (l *link) keepFrames(hello *agentwire.FromAgent) {
	l.conn.ring.Store(l.host.Frames.Ring(l.desk.row.Key))
	shown := *hello
	shown.Key = ""
	l.record(shown.Append(nil), nil)
}

// FramesOf is what is kept of an agent's frames; nil = none are kept.
func (s *Sockets) FramesOf(agent int64) *framelog.Ring {
	if s == nil {
		return nil
	}
	return s.Frames.Ring(agent)
}

// ForgetFrames drops what is kept of an agent that was deleted.
func (s *Sockets) ForgetFrames(agent int64) {
	if s != nil {
		s.Frames.Forget(agent)
	}
}
