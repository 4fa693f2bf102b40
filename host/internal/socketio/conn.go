package socketio

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pontoon-bridge/pontoon/host/internal/sendqueue"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// conn is one session of Engine.IO: a client's connection, whatever carries it.
type conn struct {
	s       *Server
	id      string
	address string     // that it is counted by
	query   url.Values // of its first request
	remote  string
	packets *rate.Limiter
	ctx     context.Context // ends with the connection …
	cancel  context.CancelFunc
	begun   time.Time

	in      sync.Mutex         // held while a packet is taken; guards sockets and swept
	sockets map[string]*Socket // by namespace
	swept   bool               // its sockets were told that it has ended

	queue    *sendqueue.Queue // closed = the session ends once what waits is written
	switched chan struct{}    // closed when the session is a WebSocket

	mu       sync.Mutex     // guards what follows
	pace     Pace           // of a socket of it; nil = packets are counted
	ws       transport.Conn // nil = polling
	polled   bool           // a GET is being answered
	posted   bool           // a POST is being read
	probing  bool           // the client is changing to a WebSocket
	ended    bool
	dropped  time.Time // when drop was called first; zero = it was not
	bare     time.Time // since when it has no sockets; zero = it has
	heard    time.Time
	pinged   time.Time
	awaiting bool // an answer to the ping
}

func newConn(s *Server, id, address string, r *http.Request) *conn {
	now := time.Now()
	c := &conn{
		s: s, id: id, address: address, remote: r.RemoteAddr, packets: rate.NewLimiter(rate.Limit(s.Rate), s.Burst), begun: now,
		sockets: map[string]*Socket{}, queue: sendqueue.New(maxQueue, maxQueueBytes), switched: make(chan struct{}), bare: now, heard: now, pinged: now,
	}
	if !s.NoQuery {
		c.query = r.URL.Query()
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// enqueue puts a packet behind those that wait. A client that does not read is
// ended.
func (c *conn) enqueue(packet []byte) {
	if !c.queue.Put(packet) {
		c.end("too slow: packets wait for longer than they may")
	}
}

// end ends the connection. It does not wait, and may be called by anybody.
func (c *conn) end(why string) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended = true
	c.mu.Unlock()
	c.queue.Abort(wire.CloseDraining, why) // whoever writes closes the WebSocket
	c.cancel()
	c.s.Log.Debug("socket.io connection ended", "remote", c.remote, "reason", why)
	c.s.forget(c)
}

// drop ends the connection once what waits is written, or soon.
func (c *conn) drop(why string) {
	c.mu.Lock()
	if c.dropped.IsZero() {
		c.dropped = time.Now()
	}
	c.mu.Unlock()
	c.queue.Close(wire.CloseDraining, why)
}

// endDropped ends a connection that drop was called for, and that has written all.
func (c *conn) endDropped() {
	if code, why := c.queue.Closed(); code != 0 && c.queue.Empty() {
		c.end(why)
	}
}

// sweep tells the sockets that nothing comes any more.
func (c *conn) sweep() {
	c.in.Lock()
	defer c.in.Unlock()
	c.swept = true
	for _, s := range c.sockets {
		c.leave(s)
	}
}

// leave takes a socket out. in must be held.
func (c *conn) leave(s *Socket) {
	if c.sockets[s.namespace] != s {
		return
	}
	delete(c.sockets, s.namespace)
	c.mu.Lock()
	if s.pace != nil && c.pace == s.pace {
		c.pace = nil
	}
	if len(c.sockets) == 0 {
		c.bare = time.Now()
	}
	c.mu.Unlock()
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	if s.handler != nil {
		_ = c.guard(func() error { s.handler.Closed(); return nil })
	}
}

// guard makes a defect cost this connection only.
func (c *conn) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.s.Log.Error("socket.io handler panicked", "remote", c.remote, "error", p, "stack", string(debug.Stack()))
			c.end("internal error")
			err = errors.New("internal error")
		}
	}()
	return f()
}

var errEnded = errors.New("the connection has ended")

// take acts on one packet of Engine.IO. An error ends the connection.
func (c *conn) take(b []byte) error {
	c.mu.Lock()
	pace := c.pace
	c.mu.Unlock()
	now := time.Now()
	if pace != nil {
		defer c.took(pace, now)
	} else if err := c.packets.Wait(c.ctx); err != nil {
		return errEnded
	}
	c.mu.Lock()
	c.heard, c.awaiting = time.Now(), false
	c.mu.Unlock()
	if len(b) == 0 {
		return errors.New("found an empty packet")
	}
	switch b[0] {
	case eioPong, eioNoop:
		return nil
	case eioClose:
		return errors.New("closed by the client")
	case eioMessage:
	default:
		return fmt.Errorf("found a packet of type %.4q, expected 1, 3 or 4", b[:1])
	}
	p, err := parsePacket(string(b[1:]))
	if err != nil {
		return err
	}
	c.in.Lock()
	defer c.in.Unlock()
	if c.swept {
		return errEnded
	}
	return c.guard(func() error { return c.act(p) })
}

// took tells the pace of a packet. in must not be held.
func (c *conn) took(p Pace, since time.Time) {
	c.in.Lock()
	defer c.in.Unlock()
	p.Took(since)
}

// act acts on one packet of Socket.IO. in must be held.
func (c *conn) act(p packet) error {
	s := c.sockets[p.namespace]
	if s != nil && s.isGone() { // Close has not come to taking it out yet, and the client may be back already
		c.leave(s)
		s = nil
	}
	switch {
	case p.kind == kindConnect && s == nil:
		return c.connect(p)
	case s == nil && p.kind == kindDisconnect:
		return nil // both ends said so at once
	case s == nil:
		c.s.Log.Debug("packet for a namespace that is not open", "remote", c.remote)
		return nil // likewise: it crossed our own disconnect
	case p.kind == kindConnect:
		return errors.New("found a second CONNECT to one namespace")
	case p.kind == kindDisconnect:
		c.leave(s)
		return nil
	case p.kind == kindAck:
		return nil // nothing here asks for one
	}
	name, args, err := p.event()
	if err != nil {
		return err
	}
	err = s.handler.Event(name, args)
	if p.id != "" {
		s.acknowledge(p.id, err)
	}
	return nil
}

// connect opens a namespace. in must be held.
func (c *conn) connect(p packet) error {
	ns := c.s.Namespaces[p.namespace]
	if ns == nil || len(c.sockets) >= maxSockets {
		no := packet{kind: kindConnectError, namespace: p.namespace, data: message(-1, "Invalid namespace")}
		c.enqueue(no.append(nil))
		return nil
	}
	if len(p.data) > 0 && p.data[0] != '{' {
		return errors.New("found no object in CONNECT")
	}
	s := newSocket(c, p.namespace)
	yes := packet{kind: kindConnect, namespace: p.namespace, data: s.hello()}
	c.enqueue(yes.append(nil))
	c.sockets[p.namespace] = s
	c.mu.Lock()
	c.bare = time.Time{}
	c.mu.Unlock()
	if s.handler = ns.Open(s, p.data); s.handler == nil {
		s.bye()
	}
	if s.isGone() { // closed by whoever opened it
		c.leave(s)
	}
	return nil
}

// pulse pings when it is time, and ends who is silent or opens nothing.
func (c *conn) pulse(now time.Time) {
	c.mu.Lock()
	late := !c.dropped.IsZero() && now.Sub(c.dropped) >= time.Second
	silent := c.awaiting && now.Sub(c.pinged) >= c.s.PingTimeout
	bare := !c.bare.IsZero() && now.Sub(c.bare) >= c.s.ConnectTimeout
	ping := !c.awaiting && now.Sub(c.pinged) >= c.s.PingInterval
	if ping && !silent && !bare {
		c.pinged, c.awaiting = now, true
	}
	c.mu.Unlock()
	switch {
	case late:
		c.end("dropped")
	case silent:
		c.end("ping timeout")
	case bare:
		c.end("no namespace was opened in time")
	case ping:
		c.enqueue([]byte{eioPing})
	}
}
