package transport

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// once is a listener of one connection.
type once struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l once) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l once) Close() error   { close(l.closed); return nil }
func (l once) Addr() net.Addr { return &net.TCPAddr{} }

// inTurn lets one write after the other, as a socket does. Whoever waits for its
// turn does so on a channel: for a mutex the bubble's clock would not go on.
type inTurn struct {
	net.Conn
	turn chan struct{}
}

func (c inTurn) Write(p []byte) (int, error) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	return c.Conn.Write(p)
}

// piped is a connection that holds nothing between its ends, inside of a bubble
// whose clock moves only while everybody waits.
func piped(t *testing.T) (host *WebSocket, client *websocket.Conn) {
	t.Helper()
	near, far := net.Pipe()
	l := once{make(chan net.Conn, 1), make(chan struct{})}
	l.conn <- inTurn{near, make(chan struct{}, 1)}
	upgraded := make(chan *WebSocket, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := Upgrade(w, r); err == nil {
			upgraded <- c
		}
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	dialer := websocket.Dialer{NetDialContext: func(context.Context, string, string) (net.Conn, error) {
		return inTurn{far, make(chan struct{}, 1)}, nil
	}}
	client, resp, err := dialer.DialContext(t.Context(), "ws://host/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	host = <-upgraded
	t.Cleanup(func() {
		_ = client.Close()
		_ = host.socket.Close()
		_ = server.Close()
		<-served
	})
	return host, client
}

// slowly reads n frames, each after a pause.
func slowly(t *testing.T, client *websocket.Conn, n int, pause time.Duration) {
	t.Helper()
	for i := range n {
		time.Sleep(pause)
		if _, _, err := client.ReadMessage(); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
}

// The limit of a write is for as much as one frame may hold: a peer that reads is
// not too slow because much waits for it.
func TestManyFramesToASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, client := piped(t)
		frames := [][]byte{bytes.Repeat([]byte("x"), wire.MaxFrame-100), []byte("small"), bytes.Repeat([]byte("y"), wire.MaxFrame), []byte("z")}
		written := make(chan error, 1)
		go func() { written <- host.Write(frames...) }()
		slowly(t, client, len(frames), WriteTimeout*2/5) // a small one goes with a large one
		if err := <-written; err != nil {
			t.Errorf("Write = %v", err)
		}
	})
}

// A peer that does not read a frame is found after the limit.
func TestPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, _ := piped(t)
		began := time.Now()
		if err := host.Write([]byte("x"), bytes.Repeat([]byte("y"), wire.MaxFrame)); !errors.Is(err, ErrSlow) {
			t.Errorf("Write = %v, want %v", err, ErrSlow)
		}
		if took := time.Since(began); took != WriteTimeout {
			t.Errorf("found after %s, want %s", took, WriteTimeout)
		}
	})
}

// The answer to a ping has a second, which must not become the limit of the frame
// that is being written.
func TestPingWhileAFrameIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, client := piped(t)
		end := ends(host)
		written := make(chan error, 1)
		go func() { written <- host.Write(bytes.Repeat([]byte("x"), 10_000)) }()
		synctest.Wait() // the write has begun
		if err := client.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		slowly(t, client, 1, WriteTimeout/2)
		if err := <-written; err != nil {
			t.Errorf("Write = %v", err)
		}
		ponged := false
		client.SetPongHandler(func(string) error { ponged = true; return nil })
		go func() { _ = host.Write([]byte("later")) }()
		slowly(t, client, 1, 0)
		if !ponged {
			t.Error("the ping was not answered")
		}
		_ = client.Close()
		_ = receive(t, "the end", end)
	})
}

// A close frame does not wait for a peer that reads nothing.
func TestCloseWhileAFrameIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, _ := piped(t)
		end := ends(host)
		written := make(chan error, 1)
		go func() { written <- host.Write(bytes.Repeat([]byte("x"), 10_000)) }()
		synctest.Wait()
		began := time.Now()
		_ = host.Close(wire.CloseRevoked, "why")
		_ = receive(t, "the write", written)
		_ = receive(t, "the end", end)
		if took := time.Since(began); took > 2*LingerTimeout {
			t.Errorf("ended after %s", took)
		}
	})
}
