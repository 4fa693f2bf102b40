package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

var errNotRegistered = errors.New("not registered")

const dialTimeout = 20 * time.Second

// openBatch bounds what an open loop that is behind sends at once.
const openBatch = 64

// target is a server under load.
type target struct {
	name   string
	url    string   // of its WebSocket
	tokens []string // one for each connection; none = no register
	pid    int      // 0 = unknown
}

// peer is one connection of the generator: an adapter reduced to what load
// needs. One goroutine at a time uses it, but for the writer of an open loop.
type peer struct {
	ws   *websocket.Conn
	conn *corked
	buf  []byte
	*template
	tally
	slots []slot // of the messages in flight, by sequence
	says  bool   // an answer counts if it says what was asked: else it is a notice of the host, whose agent failed
	acks  bool   // it acknowledges …
	ack   []byte // … with this frame
	done  atomic.Bool
	out   atomic.Int64 // open loop: sent
	in    atomic.Int64 // open loop: answered or refused
}

type slot struct {
	seq int
	at  time.Duration
}

// epoch is the zero of all times of this process.
var epoch = time.Now()

func now() time.Duration { return time.Since(epoch) }

// connect opens a connection and registers with the token, if there is one.
func connect(ctx context.Context, url, token string) (*websocket.Conn, *corked, error) {
	return connectAs(ctx, url, token, wire.Register{Protocol: wire.V10.String()})
}

// acking is how an adapter registers that acknowledges.
func acking(inFlight int) wire.Register {
	return wire.Register{Protocol: wire.V11.String(), Capabilities: []string{"text", "ack"}, Profile: &wire.Profile{InFlight: inFlight}}
}

// connectAs is connect for an adapter that says more of itself.
func connectAs(ctx context.Context, url, token string, as wire.Register) (*websocket.Conn, *corked, error) {
	ws, conn, err := dial(ctx, url, token)
	if err != nil || token == "" {
		return ws, conn, err
	}
	if as.Platform = "bench"; as.Capabilities == nil {
		as.Capabilities = []string{"text"}
	}
	r := wire.Inbound{Type: wire.TypeRegister, Register: &as}
	if _, err := register(ws, r.Append(nil)); err != nil {
		_ = ws.Close()
		return nil, nil, err
	}
	return ws, conn, nil
}

// dial opens a connection with a token, "" = none.
func dial(ctx context.Context, url, token string) (*websocket.Conn, *corked, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn := &corked{}
	tcp := net.Dialer{Control: loopbackOnly}
	d := websocket.Dialer{
		ReadBufferSize: 16 << 10, WriteBufferSize: 256,
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := tcp.DialContext(ctx, network, addr)
			conn.Conn = c
			return conn, err
		},
	}
	header := http.Header{}
	if token != "" {
		header.Set("X-Bridge-Token", token)
	}
	ws, resp, err := d.DialContext(ctx, url, header)
	if resp != nil {
		defer func() { _ = resp.Body.Close() }()
	}
	switch {
	case err != nil && resp != nil:
		return nil, nil, fmt.Errorf("connect: answered HTTP %s", resp.Status)
	case err != nil:
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	return ws, conn, nil
}

// register writes the frame and reads what the host answers.
func register(ws *websocket.Conn, frame []byte) (ack wire.RegisterAck, err error) {
	_ = ws.SetReadDeadline(time.Now().Add(dialTimeout))
	if err := ws.WriteMessage(websocket.TextMessage, frame); err != nil {
		return ack, fmt.Errorf("register: %w", err)
	}
	_, answer, err := ws.ReadMessage()
	if err != nil {
		return ack, fmt.Errorf("register: %w", err)
	}
	out, err := wire.DecodeOutbound(answer)
	if err != nil {
		return ack, fmt.Errorf("register: %w", err)
	}
	if out.Ack == nil || !out.Ack.OK {
		return ack, fmt.Errorf("register: %w: answered %.200s", errNotRegistered, answer)
	}
	return *out.Ack, ws.SetReadDeadline(time.Time{})
}

// loopbackOnly keeps load on this machine, whatever a name resolves to.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("refused: %s is not a loopback address", address)
	}
	return nil
}

// newPeer opens connection number conn of a run.
func newPeer(ctx context.Context, t target, s Scenario, run, conn int) (*peer, error) {
	frames, err := newTemplate(run, conn, s)
	if err != nil {
		return nil, err
	}
	token := ""
	if len(t.tokens) > 0 {
		token = t.tokens[conn]
	}
	as := wire.Register{Protocol: wire.V10.String()}
	if s.Acks > 0 {
		as = acking(s.Acks)
	}
	ws, c, err := connectAs(ctx, t.url, token, as)
	if err != nil {
		return nil, fmt.Errorf("%s, connection %d: %w", t.name, conn, err)
	}
	return &peer{
		ws: ws, conn: c, says: s.Agent != "", acks: s.Acks > 0 && token != "", buf: make([]byte, s.Size+1024), template: frames, slots: make([]slot, max(s.Window, 1)),
		tally: tally{last: make([]int, s.Conversations)},
	}, nil
}

var _ client = (*peer)(nil)

// run implements client.
func (p *peer) run(st *stage, quota int) error {
	if st.interval > 0 {
		return p.paced(st, quota)
	}
	return p.closed(st, quota)
}

// until implements client.
func (p *peer) until(at time.Time) { _ = p.conn.SetDeadline(at) }

// seen implements client.
func (p *peer) seen() *tally { return &p.tally }

func (p *peer) close() {
	_ = p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
	_ = p.conn.flush()
	if p.acks { // closed with something unread, the host would not read the last acknowledgements
		_ = p.conn.SetReadDeadline(time.Now().Add(dialTimeout))
		for {
			if _, _, err := p.ws.ReadMessage(); err != nil {
				break
			}
		}
	}
	_ = p.ws.Close()
}

// closed keeps as many messages in flight as there are slots until the stage
// is over or quota were sent (0 = no quota), and returns when all are answered.
func (p *peer) closed(st *stage, quota int) error {
	for range p.slots {
		if err := p.next(quota); err != nil {
			return err
		}
	}
	for p.open() > 0 {
		before := p.open()
		seq, err := p.take(st)
		if err != nil {
			return err
		}
		if seq >= 0 && st.measuring() {
			if s := &p.slots[seq%len(p.slots)]; s.seq == seq {
				p.counted++
				p.latency.add(now() - s.at)
			}
		}
		if p.open() < before && !st.over() {
			if err := p.next(quota); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *peer) next(quota int) error {
	if quota > 0 && p.sent >= quota {
		return nil
	}
	p.slots[p.sent%len(p.slots)] = slot{p.sent, now()}
	_, err := p.conn.Write(p.message(p.sent))
	p.sent++
	return err
}

// notTaken is in an acknowledgement that refuses a message.
var notTaken = []byte(`"ok":false`)

// take reads one frame and counts it; seq is -1 unless it is the first answer
// to a message.
func (p *peer) take(st *stage) (seq int, err error) {
	frame, err := p.read()
	if err != nil {
		return -1, err
	}
	kind := value(frame, keyType)
	if wire.Type(kind) == wire.TypeError || wire.Type(kind) == wire.TypeMessageAck && bytes.Contains(frame, notTaken) {
		if p.refused++; p.refusal == "" {
			p.refusal = string(bytes.ToValidUTF8(frame[:min(len(frame), 200)], nil))
		}
		return -1, nil
	}
	if !isAnswer(kind) {
		return -1, nil
	}
	if p.acks {
		if err := p.acknowledge(value(frame, keyMessageID)); err != nil {
			return -1, err
		}
	}
	id := value(frame, keyReplyCtx)
	seq, ok := p.sequence(id)
	if !ok || seq >= p.sentSoFar(st) || p.says && !bytes.Contains(value(frame, keyText), id) {
		if p.stray++; p.refusal == "" {
			p.refusal = "a stray answer: " + string(bytes.ToValidUTF8(frame[:min(len(frame), 200)], nil))
		}
		return -1, nil
	}
	if !p.note(seq) {
		return -1, nil
	}
	return seq, nil
}

// acknowledge tells the host that a message has come. It leaves with what is sent next.
func (p *peer) acknowledge(id []byte) error {
	in := wire.Inbound{Type: wire.TypeMessageAck, MessageID: string(id), Later: &wire.Later{OK: true}}
	if p.ack == nil {
		p.ack = clientHeader(0)
	}
	header := len(clientHeader(0)) // of all frames below 126 bytes
	p.ack = in.Append(p.ack[:header])
	p.ack[1] = 0x80 | byte(len(p.ack)-header) //nolint:gosec // G115: an id has 13 characters, or a few more
	_, err := p.conn.Write(p.ack)
	return err
}

// sentSoFar is the number of messages sent; in an open loop the writer counts.
func (p *peer) sentSoFar(st *stage) int {
	if st.interval > 0 {
		return int(p.out.Load())
	}
	return p.sent
}

func (p *peer) read() ([]byte, error) {
	_, r, err := p.ws.NextReader()
	if err != nil {
		return nil, err
	}
	b := p.buf[:0]
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		p.buf = b
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// corked gathers what is written and sends it before the next read would wait:
// the answers of one read have their successors in one write. Only the reading
// goroutine may use Write.
type corked struct {
	net.Conn
	pending []byte
}

func (c *corked) Write(b []byte) (int, error) {
	c.pending = append(c.pending, b...)
	return len(b), nil
}

func (c *corked) Read(b []byte) (int, error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *corked) flush() error {
	if len(c.pending) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.pending)
	c.pending = c.pending[:0]
	return err
}
