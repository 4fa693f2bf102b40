package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/framelog"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// SocketKind is the kind of agents that dial in.
const SocketKind = "websocket"

// SocketGrace is how long an agent that has turns may be gone before they are
// given up.
const SocketGrace = 30 * time.Second

// maxSockets bounds the connections of agents, known or not.
const maxSockets = 4096

// Outbox is where agents send what belongs to no turn.
type Outbox interface {
	Send(ctx context.Context, row ledger.Channel, out hub.Outgoing) (hub.Sent, error)
	Typing(ctx context.Context, row ledger.Channel, conversation string, on bool) error
	AgentOf(ctx context.Context, row ledger.Channel, conversation string) (string, error)
}

// Attendance is told when an agent comes and goes, see hub.Presence, and knows who is to
// answer an open message.
type Attendance interface {
	AgentBack(name string)
	AgentGone(name string)
	Answerer(ctx context.Context, e ledger.Entry) (string, error)
}

// Doorman checks agents' keys.
type Doorman interface {
	// AdmitAgent returns what a key opens; an error of auth.ErrInvalid's kind if
	// that is nothing.
	AdmitAgent(ctx context.Context, key string) (auth.AgentGrant, error)
}

// SocketOptions are what sockets work with; zero timings are the protocol's.
type SocketOptions struct {
	Store Ledger
	Door  Doorman
	Out   Outbox
	Hub   Attendance
	Log   *slog.Logger
	Note  func(ledger.Connection) // adds to the history of connections; nil = nobody keeps it

	Failures *netguard.Failures // counts wrong keys; nil = nobody does
	Frames   *framelog.Book     // keeps the last frames of each agent, by its row's key; nil = none are kept

	HelloTimeout   time.Duration
	PingInterval   time.Duration
	SilenceTimeout time.Duration
	Grace          time.Duration // 0 = SocketGrace
}

// Sockets owns the connections of agents that dial in, and waits for them.
type Sockets struct {
	SocketOptions
	ctx    context.Context // ends what agents send on their own
	cancel func()
	wg     sync.WaitGroup

	mu     sync.Mutex // guards what follows
	desks  map[int64]*Desk
	links  map[*link]struct{}
	closed bool
}

// NewSockets makes the sockets of a host. Close must be called.
func NewSockets(o SocketOptions) *Sockets {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.HelloTimeout, agentwire.HelloTimeout)
	set(&o.PingInterval, wire.PingInterval)
	set(&o.SilenceTimeout, wire.SilenceTimeout)
	set(&o.Grace, SocketGrace)
	if o.Note == nil {
		o.Note = func(ledger.Connection) {}
	}
	s := &Sockets{SocketOptions: o, desks: map[int64]*Desk{}, links: map[*link]struct{}{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Kind is the kind of agents that dial in.
func (s *Sockets) Kind() Kind {
	return Kind{
		About: "Dials the host: " + agentwire.Path + " with a key of its own", Keys: true,
		Fields: socketFields,
		Check:  func(config json.RawMessage) error { _, err := readSocket(config); return err },
		Make: func(row ledger.Agent) (hub.Agent, error) {
			c, err := readSocket(row.Config)
			if err != nil {
				return nil, err
			}
			return s.open(row, c), nil
		},
	}
}

// open makes the desk of a row, at which its agent's connection is served.
func (s *Sockets) open(row ledger.Agent, c SocketConfig) *Desk {
	d := newDesk(s, row, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.desks[row.Key] = d
	return d
}

func (s *Sockets) desk(key int64) *Desk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.desks[key]
}

// shutDesk forgets a desk unless it has a successor, and ends its connections.
func (s *Sockets) shutDesk(d *Desk) {
	s.mu.Lock()
	if s.desks[d.row.Key] == d {
		delete(s.desks, d.row.Key)
	}
	s.mu.Unlock()
	s.each(func(l *link) bool { return l.desk == d }, func(l *link) { l.shut(wire.CloseRevoked, "agent disabled or changed") })
}

// each calls do for the links that match, without the mutex.
func (s *Sockets) each(match func(*link) bool, do func(*link)) {
	s.mu.Lock()
	var found []*link
	for l := range s.links {
		if match(l) {
			found = append(found, l)
		}
	}
	s.mu.Unlock()
	for _, l := range found {
		do(l)
	}
}

// Full reports whether another connection must wait: it is answered before its
// upgrade.
func (s *Sockets) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || len(s.links) >= maxSockets
}

// Len is how many connections there are, let in or not.
func (s *Sockets) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.links)
}

// SocketOrigin is where a connection came from.
type SocketOrigin struct {
	Key    string // from the upgrade request; "" = it comes with hello
	Remote string
}

const draining = "the host is stopping"

// Start serves the connection in goroutines of its own until it ends.
func (s *Sockets) Start(c transport.Conn, from SocketOrigin) {
	l := newLink(s, c, from)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = c.Close(wire.CloseDraining, draining)
		drainConn(c)
		return
	}
	defer s.mu.Unlock()
	s.links[l] = struct{}{}
	s.wg.Go(func() {
		l.serve()
		s.mu.Lock()
		delete(s.links, l)
		s.mu.Unlock()
	})
}

// drainConn reads until the connection is freed.
func drainConn(c transport.Conn) {
	for {
		if _, err := c.Read(); err != nil {
			return
		}
	}
}

// Serve is the pulse: it pings, and drops who is silent or has an expired key,
// until ctx ends. It never blocks on a connection.
func (s *Sockets) Serve(ctx context.Context) error {
	tick := time.NewTicker(max(time.Millisecond, min(s.PingInterval, s.SilenceTimeout-s.PingInterval, time.Second)))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := time.Now()
		s.each(func(*link) bool { return true }, func(l *link) { l.pulse(now) })
	}
}

// Close tells every agent that the host stops, and waits for their connections.
func (s *Sockets) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.each(func(*link) bool { return true }, func(l *link) { l.shut(wire.CloseDraining, draining) })
	s.wg.Wait()
}

// admit checks a key and notes it at the link, so that a revocation finds it.
func (s *Sockets) admit(ctx context.Context, l *link, key string) (*Desk, error) {
	for range 2 { // once more when it is noted: a revocation in between found nobody
		grant, err := s.Door.AdmitAgent(ctx, key)
		if err != nil {
			return nil, err
		}
		d := s.desk(grant.Agent.Key)
		if d == nil { // disabled meanwhile, or of another kind
			return nil, auth.ErrInvalid
		}
		s.mu.Lock()
		l.desk, l.key, l.expires = d, grant.Key, grant.ExpiresAt
		s.mu.Unlock()
	}
	return l.desk, nil
}

var (
	errLate    = errors.New("no hello in time")
	errRefused = errors.New("refused")
)
