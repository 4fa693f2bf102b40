package bridge_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// client is an adapter that shares no code with the host: it compares bytes.
type client struct {
	t   *testing.T
	ws  *websocket.Conn
	tcp net.Conn // under ws, for frames that ws would not write
}

// credentials are the token's places in the upgrade request.
type credentials struct {
	query  url.Values
	header http.Header
}

// dial opens a connection and registers nothing.
func (h *host) dial(t *testing.T, c credentials) *client {
	t.Helper()
	made, err := h.tryDial(t, c, false)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (h *host) tryDial(t *testing.T, c credentials, small bool) (*client, error) {
	return dialAt(t, h.addr, c, small)
}

func dialAt(t *testing.T, addr string, c credentials, small bool) (*client, error) {
	made := &client{t: t}
	d := websocket.Dialer{HandshakeTimeout: patience, NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, network, addr)
		if err == nil && small {
			shrink(conn)
		}
		made.tcp = conn
		return conn, err
	}}
	address := "ws://" + addr + "/api/v1/channels/bridge/ws"
	if c.query != nil {
		address += "?" + c.query.Encode()
	}
	ws, resp, err := d.DialContext(t.Context(), address, c.header)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	made.ws = ws
	t.Cleanup(func() { _ = ws.Close() })
	return made, nil
}

// attach registers with the channel's token, declaring the capabilities.
func (h *host) attach(t *testing.T, c ledger.Channel, caps ...string) *client {
	t.Helper()
	return h.dial(t, credentials{}).register(c, caps...)
}

// slow attaches with small socket buffers.
func (h *host) slow(t *testing.T, c ledger.Channel) *client {
	t.Helper()
	made, err := h.tryDial(t, credentials{}, true)
	if err != nil {
		t.Fatal(err)
	}
	return made.register(c)
}

func (c *client) register(channel ledger.Channel, caps ...string) *client {
	c.t.Helper()
	c.send(registerFrame(tokenOf(channel.Name), caps...))
	c.want(ackOK)
	return c
}

const ackOK = `{"type":"register_ack","ok":true}`

func ackFailed(why string) string { return `{"type":"register_ack","ok":false,"error":"` + why + `"}` }

func registerFrame(token string, caps ...string) string {
	list, err := json.Marshal(strings.Fields(strings.Join(caps, " ")))
	if err != nil {
		panic(err)
	}
	return `{"type":"register","token":` + quote(token) + `,"platform":"test","capabilities":` + string(list) + `}`
}

func quote(s string) string { return string(wire.AppendString(nil, s)) }

// say is a message frame of user u in a conversation.
func say(conversation, text string) string {
	return `{"type":"message","session_key":"k","conversation_id":` + quote(conversation) + `,"user_id":"u","text":` + quote(text) + `,"reply_ctx":"r"}`
}

// press is a card_action frame of the same.
func press(conversation, action string) string {
	return `{"type":"card_action","session_key":"k","conversation_id":` + quote(conversation) + `,"user_id":"u","action":` + quote(action) + `,"reply_ctx":"r"}`
}

// routed is a frame of the host that answers say or press.
func routed(kind, conversation, rest string) string {
	if rest != "" {
		rest = "," + rest
	}
	return `{"type":"` + kind + `","session_key":"k","conversation_id":` + quote(conversation) + `,"reply_ctx":"r"` + rest + `}`
}

// answer is the send frame that answers say or press.
func answer(conversation, text string) string {
	return routed("send", conversation, `"text":`+quote(text))
}

// send writes text frames.
func (c *client) send(frames ...string) {
	c.t.Helper()
	for _, f := range frames {
		if err := c.ws.WriteMessage(websocket.TextMessage, []byte(f)); err != nil {
			c.t.Fatalf("send %.80s: %v", f, err)
		}
	}
}

// next reads one frame.
func (c *client) next() (string, error) {
	_ = c.ws.SetReadDeadline(time.Now().Add(patience))
	_, b, err := c.ws.ReadMessage()
	return string(b), err
}

func (c *client) mustNext() string {
	c.t.Helper()
	got, err := c.next()
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return got
}

// want reads the frames and compares their bytes.
func (c *client) want(frames ...string) {
	c.t.Helper()
	for _, want := range frames {
		got, err := c.next()
		if err != nil {
			c.t.Fatalf("read: %v, want %.300s", err, want)
		}
		if got != want {
			c.t.Fatalf("read\n\t%.1000s\nwant\n\t%.1000s", got, want)
		}
	}
}

// quiet checks that nothing but the answer to a ping comes. What could have
// come must have been offered before the ping is read.
func (c *client) quiet() {
	c.t.Helper()
	c.send(`{"type":"ping"}`)
	c.want(`{"type":"pong"}`)
}

// works checks that the connection carries a message and its answer.
func (c *client) works() {
	c.t.Helper()
	c.send(say("works", "does it work?"))
	c.want(answer("works", "echo: does it work?"))
}

// errorFrame is an error of the host as it is read.
type errorFrame struct {
	Type, Code, Message string
	Ref                 *string
}

func (c *client) wantError(code, ref, named string) {
	c.t.Helper()
	got := c.mustNext()
	var e errorFrame
	if err := json.Unmarshal([]byte(got), &e); err != nil {
		c.t.Fatalf("read %.300s: %v", got, err)
	}
	switch {
	case e.Type != "error" || e.Code != code:
		c.t.Fatalf("read %.300s, want error %s", got, code)
	case ref == "" && e.Ref != nil, ref != "" && (e.Ref == nil || *e.Ref != ref):
		c.t.Fatalf("read %.300s, want ref %q", got, ref)
	case !strings.Contains(e.Message, named) || e.Message == "":
		c.t.Fatalf("read %.300s, want a message that names %q", got, named)
	}
}

// wantClose reads the end of the connection; any frame before it is an error.
func (c *client) wantClose(code int, reason string) {
	c.t.Helper()
	got, err := c.next()
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		c.t.Fatalf("read %.300q, %v, want close %d %q", got, err, code, reason)
	}
	if closed.Code != code || closed.Text != reason {
		c.t.Fatalf("closed with %d %q, want %d %q", closed.Code, closed.Text, code, reason)
	}
}

// rest reads until the end; it returns the frames and the close code.
func (c *client) rest() (frames []string, code int) {
	c.t.Helper()
	for {
		got, err := c.next()
		var closed *websocket.CloseError
		switch {
		case errors.As(err, &closed):
			return frames, closed.Code
		case err != nil:
			c.t.Fatalf("read: %v after %d frames, want a close frame", err, len(frames))
		}
		frames = append(frames, got)
	}
}

// Opcodes of WebSocket frames.
const (
	opContinuation = 0
	opText         = 1
	opBinary       = 2
	opPing         = 9
	opPong         = 10
)

// frame is the bytes of one WebSocket frame. Its mask is zero, which is a mask.
func frame(fin bool, op byte, payload string) []byte {
	b := []byte{op, 0x80}
	if fin {
		b[0] |= 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b[1] |= byte(n)
	case n <= 0xffff:
		b[1] |= 126
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b[1] |= 127
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = append(b, 0, 0, 0, 0)
	return append(b, payload...)
}

// raw writes bytes below the WebSocket, all at once.
func (c *client) raw(frames ...[]byte) {
	c.t.Helper()
	var all []byte
	for _, f := range frames {
		all = append(all, f...)
	}
	// gorilla leaves the deadline of its last control frame, a second, behind.
	if err := c.tcp.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.tcp.Write(all); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// fragments cuts a text message into n frames.
func fragments(op byte, text string, n int) [][]byte {
	var out [][]byte
	for i := range n {
		from, to := len(text)*i/n, len(text)*(i+1)/n
		out = append(out, frame(i == n-1, op, text[from:to]))
		op = opContinuation
	}
	return out
}
