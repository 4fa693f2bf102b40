// Package socketio serves Socket.IO 4 (its protocol 5 over Engine.IO 4), by
// WebSocket and by HTTP polling, with JSON alone. It is framing on top of
// sdk/transport; everything is bounded, and what a client sends costs no more
// than its own connection.
package socketio

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Path is where a Socket.IO client looks for its server, unless told otherwise.
const Path = "/socket.io/"

// MaxPayload bounds a packet, and a body of several, from a client.
const MaxPayload = wire.MaxFrame

// Bounds of one connection, and of all.
const (
	maxQueue      = 1024    // packets that wait to be written
	maxQueueBytes = 8 << 20 // of them
	maxSockets    = 4       // namespaces that one connection may open

	DefaultMaxConns      = 4096
	DefaultMaxPerAddress = 256
	DefaultRate          = 50  // packets a second; what is more waits, and is not read
	DefaultBurst         = 200 // at once
)

// Timings that clients expect of a server.
const (
	DefaultPingInterval   = 25 * time.Second
	DefaultPingTimeout    = 20 * time.Second
	DefaultConnectTimeout = 10 * time.Second // that a connection may be without a namespace
	upgradeTimeout        = 10 * time.Second
	pollReleased          = 100 * time.Millisecond // how long a poll waits while the client changes to a WebSocket
)

// Namespace is who takes the sockets of one namespace.
type Namespace interface {
	// Open is called for each socket that asks for the namespace. auth is what it
	// sent along, an object, or nil. What is emitted to the socket comes after
	// the answer that it is connected. nil: it is disconnected.
	Open(s *Socket, auth json.RawMessage) Handler
}

// Handler takes what comes over one socket: one call at a time.
type Handler interface {
	// Event takes an event. If the client wants an acknowledgement it gets
	// {ok:true}, or {ok:false, error} with the error's text.
	Event(name string, args []json.RawMessage) error
	// Closed is called once, when nothing comes any more.
	Closed()
}

// Options of a server. Zero values are the defaults.
type Options struct {
	Namespaces     map[string]Namespace
	Origin         func(*http.Request) bool // that a browser may connect from; nil = its own alone
	NoQuery        bool                     // what a client puts into the query of its url is not looked at
	MaxConns       int
	MaxPerAddress  int
	Rate, Burst    int
	PingInterval   time.Duration
	PingTimeout    time.Duration
	ConnectTimeout time.Duration
	Log            *slog.Logger
}

// Server serves Path. Serve must run for connections to be pinged, and Close be
// called at the end.
type Server struct {
	Options
	wg sync.WaitGroup

	mu        sync.Mutex // guards what follows
	conns     map[string]*conn
	addresses map[string]int // how many connections each has
	unswept   []*conn        // that ended while the server closes
	closed    bool
}

var _ http.Handler = (*Server)(nil)

// New makes a server.
func New(o Options) *Server {
	o.MaxConns = cmp.Or(o.MaxConns, DefaultMaxConns)
	o.MaxPerAddress = cmp.Or(o.MaxPerAddress, DefaultMaxPerAddress)
	o.Rate, o.Burst = cmp.Or(o.Rate, DefaultRate), cmp.Or(o.Burst, DefaultBurst)
	o.PingInterval = cmp.Or(o.PingInterval, DefaultPingInterval)
	o.PingTimeout = cmp.Or(o.PingTimeout, DefaultPingTimeout)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, DefaultConnectTimeout)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Origin == nil {
		o.Origin = SameOrigin
	}
	return &Server{Options: o, conns: map[string]*conn{}, addresses: map[string]int{}}
}

// SameOrigin reports a request that no browser made, or one of the page's own
// host.
func SameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin == "" || origin == "http://"+r.Host || origin == "https://"+r.Host
}

// Answers of Engine.IO to what it does not serve.
const (
	codeTransport = 0
	codeSession   = 1
	codeMethod    = 2
	codeRequest   = 3
	codeForbidden = 4
	codeVersion   = 5
)

// refuse answers a request that is not served.
func refuse(w http.ResponseWriter, status, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(message(code, why)) // the client is told or gone
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	overWebSocket := q.Get("transport") == "websocket"
	switch {
	case !s.Origin(r):
		refuse(w, http.StatusForbidden, codeForbidden, "the page's origin is not allowed")
	case q.Get("EIO") != "4":
		refuse(w, http.StatusBadRequest, codeVersion, "Unsupported protocol version")
	case !overWebSocket && q.Get("transport") != "polling":
		refuse(w, http.StatusBadRequest, codeTransport, "Transport unknown")
	case q.Get("sid") != "":
		s.mu.Lock()
		c := s.conns[q.Get("sid")]
		s.mu.Unlock()
		switch {
		case c == nil:
			refuse(w, http.StatusBadRequest, codeSession, "Session ID unknown")
		case overWebSocket:
			c.upgrade(w, r)
		case r.Method == http.MethodGet:
			c.poll(w, r)
		case r.Method == http.MethodPost:
			c.post(w, r)
		default:
			refuse(w, http.StatusBadRequest, codeMethod, "Bad method")
		}
	case r.Method != http.MethodGet:
		refuse(w, http.StatusBadRequest, codeMethod, "Bad handshake method")
	default:
		s.open(w, r, overWebSocket)
	}
}

// open begins a session.
func (s *Server) open(w http.ResponseWriter, r *http.Request, overWebSocket bool) {
	c, status := s.admit(r)
	if c == nil {
		w.Header().Set("Retry-After", "5")
		refuse(w, status, codeForbidden, "too many connections: try again later")
		return
	}
	if overWebSocket {
		c.serveWebSocket(w, r)
		return
	}
	c.enqueue(opening(c.id, []string{"websocket"}, &s.Options))
	c.poll(w, r)
}

// admit makes a connection, if there is room for it.
func (s *Server) admit(r *http.Request) (c *conn, status int) {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || len(s.conns) >= s.MaxConns:
		return nil, http.StatusServiceUnavailable
	case s.addresses[address] >= s.MaxPerAddress:
		return nil, http.StatusTooManyRequests
	}
	c = newConn(s, rand.Text(), address, r)
	s.conns[c.id] = c
	s.addresses[address]++
	return c, 0
}

// forget takes a connection that has ended out of the books, and has its sockets
// told: not here, since their handlers may be who ended it.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[c.id] != c {
		return
	}
	delete(s.conns, c.id)
	if s.addresses[c.address]--; s.addresses[c.address] == 0 {
		delete(s.addresses, c.address)
	}
	if s.closed {
		s.unswept = append(s.unswept, c)
		return
	}
	s.wg.Go(c.sweep)
}

// spawn runs fn in a goroutine that Close waits for; false when closing.
func (s *Server) spawn(fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Go(fn)
	return true
}

func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*conn, 0, len(s.conns))
	for _, c := range s.conns {
		all = append(all, c)
	}
	return all
}

// Len is how many connections there are.
func (s *Server) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Serve pings the connections and ends those that are silent, until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	tick := time.NewTicker(min(time.Second, s.PingInterval/4, s.PingTimeout/4, s.ConnectTimeout/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			now := time.Now()
			for _, c := range s.all() {
				c.pulse(now)
			}
		}
	}
}

// Close ends all connections and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, c := range s.all() {
		c.end("the host is stopping")
	}
	s.wg.Wait()
	s.mu.Lock()
	left := s.unswept
	s.unswept = nil
	s.mu.Unlock()
	for _, c := range left {
		c.sweep()
	}
}
