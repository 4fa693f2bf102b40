package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/internal/steady"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// bufferSize keeps an idle connection small; larger frames pass through.
const bufferSize = 1024

// peekSize is what gorilla itself holds of the input for as long as the
// connection lives: enough for the head of a frame, if the socket holds the rest.
const peekSize = 128

func readBuffer(direct bool) int {
	if direct && canReadNow {
		return peekSize
	}
	return bufferSize
}

// lingerBytes bounds what is read and thrown away after a close frame was sent.
const lingerBytes = 1 << 20

var (
	writeBuffers sync.Pool // gorilla's, held only while a frame is written
	readBuffers  = sync.Pool{New: func() any { b := make([]byte, 0, bufferSize); return &b }}
)

// WebSocket is a Conn over a gorilla/websocket connection.
type WebSocket struct {
	ws     *websocket.Conn
	socket *socket
	host   bool           // this is the host's end, which does not mask what it writes
	frame  *[]byte        // the buffer of the frame that Read returned last
	ask    func() error   // see AskRoom
	pings  atomic.Uint32  // how many were sent: the latest one's number, which its answer repeats
	asked  steady.Moment  // when the latest ping was sent …
	round  atomic.Int64   // … and how long the latest answer took, in nanoseconds; 0 = none came yet
	closed atomic.Bool    // Close was called …
	said   sync.WaitGroup // … and is done with the close frame
}

var _ Conn = (*WebSocket)(nil)

// Upgrade turns an HTTP request into the host's end of a connection. On failure
// it has answered the request.
func Upgrade(w http.ResponseWriter, r *http.Request) (*WebSocket, error) {
	up := websocket.Upgrader{
		ReadBufferSize:  readBuffer(r.TLS == nil),
		WriteBufferSize: bufferSize,
		WriteBufferPool: &writeBuffers,
		// The token is the only credential and is not ambient: a page of
		// another origin gains nothing that any other program would not.
		CheckOrigin: func(*http.Request) bool { return true },
	}
	h := &hijacker{ResponseWriter: w}
	ws, err := up.Upgrade(h, r, nil)
	if err != nil {
		return nil, fmt.Errorf("upgrade to WebSocket: %w", err)
	}
	c := newWebSocket(ws, h.socket)
	c.host = true
	return c, nil
}

// Dial opens the adapter's end. A refused upgrade is an error that names the
// HTTP status; the url's query never appears in it.
func Dial(ctx context.Context, url string, header http.Header) (*WebSocket, error) {
	var s *socket
	wrap := func(c net.Conn, err error) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		s = newSocket(c)
		return s, nil
	}
	var tcp net.Dialer
	d := websocket.Dialer{
		Proxy:            http.ProxyFromEnvironment,
		HandshakeTimeout: WriteTimeout,
		ReadBufferSize:   readBuffer(true), // below TLS, if there is any
		WriteBufferSize:  bufferSize,
		WriteBufferPool:  &writeBuffers,
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return wrap(tcp.DialContext(ctx, network, addr))
		},
	}
	ws, resp, err := d.DialContext(ctx, url, header)
	if resp != nil && resp.Body != nil {
		defer func() { _ = resp.Body.Close() }()
	}
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("upgrade to WebSocket: answered HTTP %s", resp.Status)
		}
		var unparsed *neturl.Error // repeats the url
		if errors.As(err, &unparsed) {
			err = unparsed.Err
		}
		return nil, fmt.Errorf("dial host: %w", err)
	}
	return newWebSocket(ws, s), nil
}

func newWebSocket(ws *websocket.Conn, s *socket) *WebSocket {
	s.heard.Note()
	ws.SetReadLimit(wire.MaxFrame)
	c := &WebSocket{ws: ws, socket: s}
	ws.SetPongHandler(func(number string) error {
		if number != c.ping() { // it answers nothing, or an older one
			return nil
		}
		if took, ok := c.asked.Take(); ok {
			c.round.Store(int64(took))
		}
		return nil
	})
	c.said.Add(1)
	return c
}

// AskRoom has Read call ask before it keeps more than ShortFrame of a frame; its error
// ends the connection. nil = nobody is asked. It is called where Read is.
func (c *WebSocket) AskRoom(ask func() error) { c.ask = ask }

// ShortFrame is the bytes of a frame for which nobody is asked.
const ShortFrame = 64 << 10

// Read implements Conn.
func (c *WebSocket) Read() ([]byte, error) {
	c.release()
	_, r, err := c.ws.NextReader() // text or binary: a binary frame is read as text
	if err != nil {
		return nil, c.finish(err)
	}
	if c.closed.Load() {
		return nil, c.finish(ErrClosed)
	}
	frame, err := c.readAll(r)
	if err != nil {
		return nil, c.finish(err)
	}
	if !utf8.Valid(frame) { // gorilla passes it
		_ = c.Close(wire.CloseInvalidUTF8, "frame is not valid UTF-8")
		return nil, c.finish(errors.New("frame is not valid UTF-8"))
	}
	return frame, nil
}

func (c *WebSocket) readAll(r io.Reader) ([]byte, error) {
	c.frame = readBuffers.Get().(*[]byte)
	b, asked := (*c.frame)[:0], false
	for {
		if len(b) == cap(b) {
			if c.ask != nil && len(b) >= ShortFrame && !asked {
				if err := c.ask(); err != nil {
					return nil, err
				}
				asked = true
			}
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			*c.frame = b
			if errors.Is(err, io.EOF) {
				return b, nil
			}
			return nil, err
		}
	}
}

func (c *WebSocket) release() {
	if c.frame == nil {
		return
	}
	if cap(*c.frame) <= ShortFrame { // a rare giant is not kept for ever
		readBuffers.Put(c.frame)
	}
	c.frame = nil
}

// finish lets a close frame reach the peer before the socket goes: closing it
// with unread input would reset the connection and take the frame back.
func (c *WebSocket) finish(err error) error {
	c.release()
	if c.closed.Load() {
		c.said.Wait() // nothing may end the stream before the close frame
	}
	_ = c.socket.SetReadDeadline(time.Now().Add(LingerTimeout))
	var byPeer *websocket.CloseError
	var inTime net.Error
	switch {
	case errors.As(err, &byPeer):
		if err = (&CloseError{Code: wire.CloseCode(byPeer.Code), Reason: byPeer.Text}); c.closed.Load() {
			err = ErrClosed // the echo of our own close frame
		}
	case errors.As(err, &inTime) && inTime.Timeout(), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		if c.closed.Load() {
			err = ErrClosed
		}
	default:
		if half, ok := c.socket.Conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		_, _ = io.CopyN(io.Discard, c.socket, lingerBytes)
	}
	_ = c.socket.Close()
	return err
}

// Write implements Conn.
func (c *WebSocket) Write(frames ...[]byte) error {
	for len(frames) > 0 {
		n := atOnce(frames)
		if err := c.write(frames[:n]); err != nil {
			return err
		}
		frames = frames[n:]
	}
	return nil
}

// atOnce is how many of the frames one socket write takes: as many as are no
// larger together than the largest frame, and at least one. What a peer must
// read within WriteTimeout is then the same however much waits for it.
func atOnce(frames [][]byte) int {
	size := 0
	for i, f := range frames {
		if size += len(f); size > wire.MaxFrame && i > 0 {
			return i
		}
	}
	return len(frames)
}

func (c *WebSocket) write(frames [][]byte) error {
	if c.host {
		return slow(c.socket.send(frames))
	}
	if len(frames) == 1 && len(frames[0]) <= bufferSize {
		return slow(c.ws.WriteMessage(websocket.TextMessage, frames[0]))
	}
	// A larger frame would go out in pieces of gorilla's buffer.
	c.socket.cork()
	for _, f := range frames {
		if err := c.ws.WriteMessage(websocket.TextMessage, f); err != nil {
			_ = c.socket.uncork()
			return slow(err)
		}
	}
	return slow(c.socket.uncork())
}

// slow says what a deadline that was missed means.
func slow(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrSlow, err)
	}
	return err
}

// Ping implements Conn.
func (c *WebSocket) Ping() error {
	c.pings.Add(1)
	c.asked.Note()
	return c.ws.WriteControl(websocket.PingMessage, []byte(c.ping()), time.Now().Add(LingerTimeout))
}

// ping is what the latest ping carries.
func (c *WebSocket) ping() string { return strconv.FormatUint(uint64(c.pings.Load()), 10) }

// RoundTrip is how long the peer took to answer the latest ping that it
// answered; 0 = not known yet.
func (c *WebSocket) RoundTrip() time.Duration { return time.Duration(c.round.Load()) }

// Heard implements Conn.
func (c *WebSocket) Heard() time.Time { return c.socket.heard.Time() }

// SetReadDeadline bounds every Read from now on; the zero time lifts it.
func (c *WebSocket) SetReadDeadline(t time.Time) error { return c.socket.SetReadDeadline(t) }

// RemoteAddr is the peer's address.
func (c *WebSocket) RemoteAddr() net.Addr { return c.socket.RemoteAddr() }

// Close implements Conn.
func (c *WebSocket) Close(code wire.CloseCode, why string) error {
	if c.closed.Swap(true) {
		return nil
	}
	c.socket.closing.Store(true)
	deadline := time.Now().Add(LingerTimeout)
	err := c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(int(code), why), deadline)
	c.said.Done()
	derr := c.socket.SetReadDeadline(deadline)
	if err == nil && !errors.Is(derr, net.ErrClosed) { // the peer has answered already: Read has ended
		err = derr
	}
	return err
}
