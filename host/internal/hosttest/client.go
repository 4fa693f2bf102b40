package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Client is an adapter that shares no code with the host: it compares bytes.
type Client struct {
	T   *testing.T
	WS  *websocket.Conn
	TCP net.Conn // under WS, for frames that it would not write
}

// Credentials are the token's places in the upgrade request.
type Credentials struct {
	Query  url.Values
	Header http.Header
}

// Dial opens a connection and registers nothing.
func (h *Host) Dial(t *testing.T, c Credentials) *Client {
	t.Helper()
	made, err := h.TryDial(t, c, false)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TryDial is Dial for a connection that may fail; a small one has small buffers.
func (h *Host) TryDial(t *testing.T, c Credentials, small bool) (*Client, error) {
	return DialAt(t, h.Addr, c, small)
}

// DialAt is TryDial by another way, such as a proxy.
func DialAt(t *testing.T, addr string, c Credentials, small bool) (*Client, error) {
	made := &Client{T: t}
	d := websocket.Dialer{HandshakeTimeout: await.Limit, NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, network, addr)
		if err == nil && small {
			shrink(conn)
		}
		made.TCP = conn
		return conn, err
	}}
	address := "ws://" + addr + wire.Path
	if c.Query != nil {
		address += "?" + c.Query.Encode()
	}
	ws, resp, err := d.DialContext(t.Context(), address, c.Header)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	made.WS = ws
	t.Cleanup(func() { _ = ws.Close() })
	return made, nil
}

// Attach registers with the channel's token, declaring the capabilities.
func (h *Host) Attach(t *testing.T, c ledger.Channel, caps ...string) *Client {
	t.Helper()
	return h.Dial(t, Credentials{}).Register(c, caps...)
}

// AttachSmall attaches with small socket buffers.
func (h *Host) AttachSmall(t *testing.T, c ledger.Channel) *Client {
	t.Helper()
	made, err := h.TryDial(t, Credentials{}, true)
	if err != nil {
		t.Fatal(err)
	}
	return made.Register(c)
}

// Register registers with the channel's token, under protocol 1.0.
func (c *Client) Register(channel ledger.Channel, caps ...string) *Client {
	c.T.Helper()
	c.Send(RegisterFrame(TokenOf(channel.Name), caps...))
	c.Want(AckOK)
	return c
}

// Send writes text frames.
func (c *Client) Send(frames ...string) {
	c.T.Helper()
	for _, f := range frames {
		if err := c.WS.WriteMessage(websocket.TextMessage, []byte(f)); err != nil {
			c.T.Fatalf("send %.80s: %v", f, err)
		}
	}
}

// Next reads one frame.
func (c *Client) Next() (string, error) {
	_ = c.WS.SetReadDeadline(await.Deadline())
	_, b, err := c.WS.ReadMessage()
	return string(b), err
}

// MustNext is Next for a connection that is open.
func (c *Client) MustNext() string {
	c.T.Helper()
	got, err := c.Next()
	if err != nil {
		c.T.Fatalf("read: %v", err)
	}
	return got
}

// Read decodes the next frame into v.
func (c *Client) Read(v any) {
	c.T.Helper()
	if got := c.MustNext(); json.Unmarshal([]byte(got), v) != nil {
		c.T.Fatalf("read %.300s, which does not fit %T", got, v)
	}
}

// Want reads the frames and compares their bytes.
func (c *Client) Want(frames ...string) {
	c.T.Helper()
	for _, want := range frames {
		got, err := c.Next()
		if err != nil {
			c.T.Fatalf("read: %v, want %.300s", err, want)
		}
		if got != want {
			c.T.Fatalf("read\n\t%.1000s\nwant\n\t%.1000s", got, want)
		}
	}
}

// Quiet checks that nothing but the answer to a ping comes. What could have
// come must have been offered before the ping is read.
func (c *Client) Quiet() {
	c.T.Helper()
	c.Send(`{"type":"ping"}`)
	c.Want(`{"type":"pong"}`)
}

// Works checks that the connection carries a message and its answer.
func (c *Client) Works() {
	c.T.Helper()
	c.Send(Say("works", "does it work?"))
	c.Want(Answer("works", "echo: does it work?"))
}

// Vanish ends the connection without a word, and waits until the host knows.
func (c *Client) Vanish(h *Host, row ledger.Channel) {
	c.T.Helper()
	_ = c.WS.Close()
	await.Until(c.T, "detached", func() bool { return !h.Attached(row) })
}

// WantError reads an error of the host: ref "" = it names no frame; named is in
// its message.
func (c *Client) WantError(code, ref, named string) {
	c.T.Helper()
	got := c.MustNext()
	var e struct {
		Type, Code, Message string
		Ref                 *string
	}
	if err := json.Unmarshal([]byte(got), &e); err != nil {
		c.T.Fatalf("read %.300s: %v", got, err)
	}
	switch {
	case e.Type != "error" || e.Code != code:
		c.T.Fatalf("read %.300s, want error %s", got, code)
	case ref == "" && e.Ref != nil, ref != "" && (e.Ref == nil || *e.Ref != ref):
		c.T.Fatalf("read %.300s, want ref %q", got, ref)
	case !strings.Contains(e.Message, named) || e.Message == "":
		c.T.Fatalf("read %.300s, want a message that names %q", got, named)
	}
}

// WantClose reads the end of the connection; any frame before it is an error.
func (c *Client) WantClose(code int, reason string) {
	c.T.Helper()
	got, err := c.Next()
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		c.T.Fatalf("read %.300q, %v, want close %d %q", got, err, code, reason)
	}
	if closed.Code != code || closed.Text != reason {
		c.T.Fatalf("closed with %d %q, want %d %q", closed.Code, closed.Text, code, reason)
	}
}

// Rest reads until the end; it returns the frames and the close code.
func (c *Client) Rest() (frames []string, code int) {
	c.T.Helper()
	if tcp, ok := c.TCP.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(1 << 20) // a full small one is refilled at the pace of TCP's probes: a minute for 19 MB
	}
	for {
		got, err := c.Next()
		var closed *websocket.CloseError
		switch {
		case errors.As(err, &closed):
			return frames, closed.Code
		case err != nil:
			c.T.Fatalf("read: %v after %d frames, want a close frame", err, len(frames))
		}
		frames = append(frames, got)
	}
}
