package netguard

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Who is slower than this is cut off. Time counts only while we wait for the
// client: a stream of events that has nothing to say costs nothing.
const (
	patience = 20 * time.Second // that a client may keep us waiting in a row, and that it has on top of the rate
	minRate  = 8 << 10          // bytes a second
	chunk    = 64 << 10         // that is given to the system at once
)

// errSlow ends a client that takes, or sends, less than minRate.
var errSlow = errors.New("the client is too slow")

// pace says how long a client may still keep us waiting.
type pace struct {
	patience time.Duration
	waited   time.Duration
	bytes    int64 // that came or went
}

// next is how long the client may take for n bytes more; 0 or less: too slow.
func (p *pace) next(n int) time.Duration {
	return min(p.patience+rateTime(int64(n)), p.patience+rateTime(p.bytes+int64(n))-p.waited)
}

func (p *pace) note(n int, took time.Duration) {
	p.bytes += int64(n)
	p.waited += took
}

func rateTime(bytes int64) time.Duration {
	return time.Duration(bytes/minRate)*time.Second + time.Duration(bytes%minRate)*time.Second/minRate // a stream may have had any
}

// conn is a connection as it was accepted. While net/http has it, it bounds how
// long an answer is written; what was hijacked looks after itself. The methods of
// TCPConn that are not below are its own: transport reads from the system
// directly.
type conn struct {
	*net.TCPConn
	g        *Guard
	verdict  verdict
	hijacked atomic.Bool

	mu       sync.Mutex // guards what follows
	pace     pace
	deadline time.Time // for writing, that a handler has set
	closed   bool
	leave    []func() // when it is closed
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (n int, err error) {
	if c.hijacked.Load() {
		return c.TCPConn.Write(b)
	}
	for len(b) > 0 && err == nil {
		var m int
		m, err = c.inTime(min(chunk, len(b)), func(most int) (int64, error) {
			m, err := c.TCPConn.Write(b[:most])
			return int64(m), err
		})
		b, n = b[m:], n+m
	}
	return n, err
}

// ReadFrom implements io.ReaderFrom: a file goes out without passing through us.
func (c *conn) ReadFrom(r io.Reader) (n int64, err error) {
	if c.hijacked.Load() {
		return c.TCPConn.ReadFrom(r)
	}
	for {
		part := &io.LimitedReader{R: r, N: chunk}
		if whole, ok := r.(*io.LimitedReader); ok { // the system takes one around a file, not two
			part = &io.LimitedReader{R: whole.R, N: min(chunk, whole.N)}
		}
		most := part.N
		m, err := c.inTime(int(most), func(int) (int64, error) { return c.TCPConn.ReadFrom(part) })
		if whole, ok := r.(*io.LimitedReader); ok {
			whole.N -= int64(m)
		}
		n += int64(m)
		if err != nil || int64(m) < most || most == 0 {
			return n, err
		}
	}
}

// inTime writes up to n bytes within the time that the client has for them.
func (c *conn) inTime(n int, write func(int) (int64, error)) (int, error) {
	began := time.Now()
	if err := c.begin(began, n); err != nil {
		return 0, err
	}
	m, err := write(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace.note(int(m), time.Since(began))
	return int(m), err
}

// begin sets by when n bytes must be written: a deadline that a handler sets meanwhile
// takes effect, too.
func (c *conn) begin(now time.Time, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.pace.next(n)
	if left <= 0 {
		return errors.Join(errSlow, os.ErrDeadlineExceeded)
	}
	until := now.Add(left)
	if !c.deadline.IsZero() && c.deadline.Before(until) {
		until = c.deadline
	}
	return c.TCPConn.SetWriteDeadline(until)
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if !c.hijacked.Load() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.deadline = t
	}
	return c.TCPConn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.TCPConn.Close()
	c.mu.Lock()
	leave := c.leave
	c.leave, c.closed = nil, true
	c.mu.Unlock()
	for _, f := range leave {
		f()
	}
	return err
}

// atClose has f called when the connection is closed, or now if it is.
func (c *conn) atClose(f func()) {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.leave = append(c.leave, f)
	}
	c.mu.Unlock()
	if closed {
		f()
	}
}

// again is called when another request begins.
func (c *conn) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace, c.deadline = pace{patience: c.g.patience}, time.Time{}
}

// connOf finds ours below TLS; nil = there is none.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*conn)
	return own
}

// listener accepts connections within the bounds.
type listener struct {
	net.Listener
	g *Guard
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return nil, errors.Join(errors.New("accept: found no TCP connection"), c.Close())
		}
		a := Host(tcp.RemoteAddr().String())
		v := l.g.conns.enter(a, !a.IsLoopback() && !l.g.Proxies.Trusts(a))
		if v == cut {
			l.g.tellFull(a)
			_ = tcp.SetLinger(0) // nothing of it is to stay with us
			_ = tcp.Close()
			continue
		}
		return &conn{TCPConn: tcp, g: l.g, verdict: v, pace: pace{patience: l.g.patience}, leave: []func(){func() { l.g.conns.leave(a) }}}, nil
	}
}
