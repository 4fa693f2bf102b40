package transport

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// inputSize is how much is read from the system at once: many small frames.
const inputSize = 4096

var inputs = sync.Pool{New: func() any { b := make([]byte, inputSize); return &b }}

// socket notes when the peer was heard, gathers the frames of one Write, and
// reads many frames at once into a buffer that it holds only while there is
// something in it: while a connection is idle, it holds none.
type socket struct {
	net.Conn
	heard atomic.Int64

	// of Read alone
	raw    syscall.RawConn    // nil = nothing but Conn.Read is there
	accept func(uintptr) bool // s.readNow
	input  *[]byte            // of inputs; nil = none
	rest   []byte             // of input: what Read has not returned yet
	err    error              // of readNow

	mu     sync.Mutex
	corked *[]byte
}

func newSocket(c net.Conn) *socket {
	s := &socket{Conn: c}
	if sc, ok := c.(syscall.Conn); ok && canReadNow {
		s.accept = s.readNow
		s.raw, _ = sc.SyscallConn() // an error leaves it nil
	}
	return s
}

func (s *socket) Read(p []byte) (n int, err error) {
	if s.raw == nil {
		n, err = s.Conn.Read(p)
		if n > 0 {
			s.heard.Store(time.Now().UnixNano())
		}
		return n, err
	}
	if len(s.rest) == 0 {
		if err := s.fill(); err != nil {
			return 0, err
		}
		s.heard.Store(time.Now().UnixNano())
	}
	n = copy(p, s.rest)
	if s.rest = s.rest[n:]; len(s.rest) == 0 {
		inputs.Put(s.input)
		s.input = nil
	}
	return n, nil
}

// fill waits for input and takes what is there.
func (s *socket) fill() error {
	if err := s.raw.Read(s.accept); err != nil {
		return err
	}
	return s.err
}

func (s *socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	if s.corked == nil {
		s.mu.Unlock()
		return s.Conn.Write(p)
	}
	defer s.mu.Unlock()
	*s.corked = append(*s.corked, p...)
	if len(p) == 0 || p[0] != finalClose || len(p) > maxControl {
		return len(p), nil
	}
	// A close frame of another goroutine can't wait: the connection may end.
	_, err := s.Conn.Write(*s.corked)
	*s.corked = (*s.corked)[:0]
	return len(p), err
}

// SetWriteDeadline puts our limit in place of gorilla's "none", which comes
// with every frame; while frames are gathered, uncork sets it once for all.
func (s *socket) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		s.mu.Lock()
		corked := s.corked != nil
		s.mu.Unlock()
		if corked {
			return nil
		}
		t = time.Now().Add(WriteTimeout)
	}
	return s.Conn.SetWriteDeadline(t)
}

func (s *socket) cork() {
	s.mu.Lock()
	s.corked = readBuffers.Get().(*[]byte)
	*s.corked = (*s.corked)[:0]
	s.mu.Unlock()
}

func (s *socket) uncork() error {
	s.mu.Lock()
	b := s.corked
	s.corked = nil
	s.mu.Unlock()
	if len(*b) == 0 {
		return nil
	}
	// Here, since a pong in between may have set a shorter one.
	_ = s.Conn.SetWriteDeadline(time.Now().Add(WriteTimeout))
	_, err := s.Conn.Write(*b)
	if cap(*b) <= 64<<10 {
		readBuffers.Put(b)
	}
	return err
}
