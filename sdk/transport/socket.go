package transport

import (
	"bufio"
	"encoding/binary"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// A close frame as RFC 6455 has it on the wire: the final bit and the opcode,
// and never longer than this.
const (
	finalClose = 0x80 | websocket.CloseMessage
	maxControl = 2 + 4 + 125
)

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
	h.socket = &socket{Conn: c}
	return h.socket, rw, nil
}

// socket notes when the peer was heard, reads ahead while much comes, and writes
// many frames at once.
type socket struct {
	net.Conn
	heard moment

	// Of the reading goroutine.
	full   bool    // the last read filled its buffer: more waits, surely
	buffer *[]byte // holds ahead; nil = none
	ahead  []byte  // read, and not asked for yet

	mu     sync.Mutex // guards what follows
	corked *[]byte
	closed bool // a close frame was written: no frame may follow
}

// aheadSize is what one read may take of a peer that sends fast. The buffer is
// lent for as long as it holds something, so that an idle connection has none.
const aheadSize = 16 << 10

var aheadBuffers = sync.Pool{New: func() any { b := make([]byte, aheadSize); return &b }}

func (s *socket) Read(p []byte) (int, error) {
	if len(s.ahead) == 0 && (!s.full || len(p) >= aheadSize) {
		n, err := s.Conn.Read(p)
		s.full = n == len(p)
		s.hear(n)
		return n, err
	}
	if len(s.ahead) == 0 {
		s.buffer = aheadBuffers.Get().(*[]byte)
		n, err := s.Conn.Read(*s.buffer)
		s.full = n == aheadSize
		s.ahead = (*s.buffer)[:n]
		s.hear(n)
		if n == 0 {
			s.giveBack()
			return 0, err
		} // an error that came with bytes comes again
	}
	n := copy(p, s.ahead)
	if s.ahead = s.ahead[n:]; len(s.ahead) == 0 {
		s.giveBack()
	}
	return n, nil
}

func (s *socket) hear(n int) {
	if n > 0 {
		s.heard.note()
	}
}

func (s *socket) giveBack() {
	aheadBuffers.Put(s.buffer)
	s.buffer, s.ahead = nil, nil
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
	_ = s.Conn.SetWriteDeadline(time.Now().Add(WriteTimeout))
	_, err := s.Conn.Write(b)
	if cap(b) <= 64<<10 {
		*buf = b
		readBuffers.Put(buf)
	}
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
