package transport

import (
	"bufio"
	"encoding/binary"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/internal/steady"
)

// A close frame as RFC 6455 has it on the wire: the final bit and the opcode,
// and never longer than this.
const (
	finalClose = 0x80 | websocket.CloseMessage
	maxControl = 2 + 4 + 125
)

// inputSize is how much is read from the system at once: many small frames.
const inputSize = 16 << 10

var inputs = sync.Pool{New: func() any { b := make([]byte, inputSize); return &b }}

// hijacker puts our socket under gorilla's connection.
type hijacker struct {
	http.ResponseWriter
	socket *socket
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.socket = newSocket(c)
	return h.socket, rw, nil
}

// socket notes when the peer was heard, writes many frames at once, and
// reads many frames at once into a buffer that it holds only while there is
// something in it: while a connection is idle, it holds none.
type socket struct {
	net.Conn
	heard steady.Moment

	// of Read alone
	raw    syscall.RawConn    // nil = nothing but Conn.Read is there
	accept func(uintptr) bool // s.readNow
	input  *[]byte            // of inputs; nil = none
	rest   []byte             // of input: what Read has not returned yet
	err    error              // of readNow

	writing atomic.Bool // text frames are being written, with a deadline of their own …
	closing atomic.Bool // … which a close frame alone may shorten

	mu     sync.Mutex // guards what follows
	corked *[]byte
	closed bool // a close frame was written: no frame may follow
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
			s.heard.Note()
		}
		return n, err
	}
	if len(s.rest) == 0 {
		if err := s.fill(); err != nil {
			return 0, err
		}
		s.heard.Note()
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

// send writes text frames as the host does, all at once.
func (s *socket) send(frames [][]byte) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return websocket.ErrCloseSent
	}
	buf := readBuffers.Get().(*[]byte)
	b := (*buf)[:0]
	for _, f := range frames {
		b = append(appendHeader(b, len(f)), f...)
	}
	err := s.writeAll(b)
	if cap(b) <= 64<<10 {
		*buf = b
		readBuffers.Put(buf)
	}
	return err
}

// writeAll writes text frames within WriteTimeout.
func (s *socket) writeAll(b []byte) error {
	s.writing.Store(true)
	defer s.writing.Store(false)
	_ = s.Conn.SetWriteDeadline(time.Now().Add(WriteTimeout))
	if s.closing.Load() { // its deadline may have come just before ours
		_ = s.Conn.SetWriteDeadline(time.Now().Add(LingerTimeout))
	}
	_, err := s.Conn.Write(b)
	return err
}

// finalText begins a text frame that is a whole message.
const finalText = 0x80 | websocket.TextMessage

// appendHeader appends the header of an unmasked text frame of n bytes (RFC
// 6455, section 5.2).
func appendHeader(b []byte, n int) []byte {
	switch {
	case n <= 125:
		return append(b, finalText, byte(n))
	case n <= 0xffff:
		return binary.BigEndian.AppendUint16(append(b, finalText, 126), uint16(n))
	}
	return binary.BigEndian.AppendUint64(append(b, finalText, 127), uint64(n))
}

// Write is what gorilla writes: control frames, and those of an adapter.
func (s *socket) Write(p []byte) (int, error) {
	closes := len(p) > 0 && p[0] == finalClose && len(p) <= maxControl
	s.mu.Lock()
	s.closed = s.closed || closes
	if s.corked == nil {
		s.mu.Unlock()
		return s.Conn.Write(p)
	}
	defer s.mu.Unlock()
	*s.corked = append(*s.corked, p...)
	if !closes {
		return len(p), nil
	}
	// A close frame of another goroutine can't wait: the connection may end.
	_, err := s.Conn.Write(*s.corked)
	*s.corked = (*s.corked)[:0]
	return len(p), err
}

// SetWriteDeadline is what gorilla calls before each frame. A pong has a second,
// which must not cut short what a slow peer has for the text frames that are
// being written: the pong waits for their end. A text frame comes with "none",
// in whose place our limit is put; while frames are gathered, uncork sets it
// once for all.
func (s *socket) SetWriteDeadline(t time.Time) error {
	if s.writing.Load() && !s.closing.Load() {
		return nil
	}
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
	err := s.writeAll(*b)
	if cap(*b) <= 64<<10 {
		readBuffers.Put(b)
	}
	return err
}
