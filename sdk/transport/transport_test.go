package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const patience = await.Limit

func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	return await.Value(t, what, c)
}

// listen upgrades every request and hands out the host's end.
func listen(t *testing.T) (url string, accepted <-chan *WebSocket) {
	conns := make(chan *WebSocket, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := Upgrade(w, r); err == nil {
			conns <- c
		}
	}))
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http", "ws", 1), conns
}

// pair is a connection with both its ends; the test's end frees it.
func pair(t *testing.T) (host, adapter *WebSocket) {
	url, accepted := listen(t)
	adapter, err := Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	host = receive(t, "upgrade", accepted)
	t.Cleanup(func() {
		for _, c := range []*WebSocket{host, adapter} {
			_ = c.socket.Close()
		}
	})
	return host, adapter
}

// raw is a gorilla client, for what our own end would never send.
func raw(t *testing.T) (host *WebSocket, client *websocket.Conn) {
	url, accepted := listen(t)
	client, resp, err := websocket.DefaultDialer.DialContext(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	host = receive(t, "upgrade", accepted)
	t.Cleanup(func() {
		_ = client.Close()
		_ = host.socket.Close()
	})
	return host, client
}

// ends reads c to its end in the background.
func ends(c Conn) <-chan error {
	end := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Read(); err != nil {
				end <- err
				return
			}
		}
	}()
	return end
}

func wantCode(t *testing.T, end <-chan error, code wire.CloseCode, reason string) {
	t.Helper()
	var closed *CloseError
	if err := receive(t, "end", end); !errors.As(err, &closed) || closed.Code != code || closed.Reason != reason {
		t.Errorf("peer's Read = %v, want close code %d %q", err, code, reason)
	}
}

func TestFrameSize(t *testing.T) {
	for _, n := range []int{0, 1, 1023, 1024, 1025, 70_000, wire.MaxFrame} {
		for _, direction := range []string{"to the host", "to the adapter"} {
			t.Run(fmt.Sprint(n, " bytes ", direction), func(t *testing.T) {
				reader, writer := pair(t)
				if direction == "to the adapter" {
					reader, writer = writer, reader
				}
				sent := bytes.Repeat([]byte{'x'}, n)
				done := make(chan error, 1)
				go func() { done <- writer.Write(sent) }()
				got, err := reader.Read()
				if err != nil || !bytes.Equal(got, sent) {
					t.Errorf("Read = %d bytes, %v", len(got), err)
				}
				if err := receive(t, "write", done); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestFrameTooLargeCloses1009(t *testing.T) {
	for name, turn := range map[string]bool{"to the host": false, "to the adapter": true} {
		t.Run(name, func(t *testing.T) {
			reader, writer := pair(t)
			if turn {
				reader, writer = writer, reader
			}
			end := ends(writer)
			go func() { _ = writer.Write(bytes.Repeat([]byte{'x'}, wire.MaxFrame+1)) }()
			if frame, err := reader.Read(); err == nil {
				t.Errorf("Read = %d bytes, want an error", len(frame))
			}
			wantCode(t, end, wire.CloseTooLarge, "")
		})
	}
}

func TestInvalidUTF8Closes1007(t *testing.T) {
	for name, frame := range map[string]string{
		"lone byte":         "{\"a\":\"\xff\"}",
		"surrogate":         "\xed\xa0\x80",
		"cut off at end":    "abc\xe2\x82",
		"overlong":          "\xc0\xaf",
		"beyond the planes": "\xf4\x90\x80\x80",
	} {
		t.Run(name, func(t *testing.T) {
			host, adapter := pair(t)
			end := ends(adapter)
			if err := adapter.Write([]byte(frame)); err != nil {
				t.Fatal(err)
			}
			if got, err := host.Read(); err == nil {
				t.Errorf("Read = %q, want an error", got)
			}
			wantCode(t, end, wire.CloseInvalidUTF8, "frame is not valid UTF-8")
		})
	}
}

func TestBinaryFrameIsReadAsText(t *testing.T) {
	host, client := raw(t)
	if err := client.WriteMessage(websocket.BinaryMessage, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	if got, err := host.Read(); err != nil || string(got) != `{"type":"ping"}` {
		t.Errorf("Read = %s, %v", got, err)
	}
}

func TestFragmentsWithAControlFrameBetween(t *testing.T) {
	host, client := raw(t)
	w, err := client.NextWriter(websocket.TextMessage)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Repeat("ä", 4096) // more than gorilla's buffer: goes out as a fragment
	_, _ = w.Write([]byte(first))
	if err := client.WriteControl(websocket.PingMessage, nil, time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("end"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := host.Read(); err != nil || string(got) != first+"end" {
		t.Errorf("Read = %d bytes, %v", len(got), err)
	}
}

// countingConn counts what reaches the network.
type countingConn struct {
	net.Conn
	mu     sync.Mutex
	writes [][]byte
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.writes = append(c.writes, bytes.Clone(p))
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func TestFramesOfOneWriteArriveInOnePieceInOrder(t *testing.T) {
	host, adapter := pair(t)
	counting := &countingConn{Conn: host.socket.Conn}
	host.socket.Conn = counting
	var frames [][]byte
	for i := range 50 {
		frames = append(frames, fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", i*100)))
	}
	if err := host.Write(frames...); err != nil {
		t.Fatal(err)
	}
	if len(counting.writes) != 1 {
		t.Errorf("%d socket writes for one Write, want 1", len(counting.writes))
	}
	for i, want := range frames {
		if got, err := adapter.Read(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("frame %d = %.20q, %v", i, got, err)
		}
	}
}

func TestCloseCodeReachesThePeer(t *testing.T) {
	for _, code := range []wire.CloseCode{
		wire.CloseNormal, wire.CloseDraining, wire.CloseRefused, wire.CloseOverload, wire.CloseReplaced, wire.CloseRevoked, wire.CloseTooSlow,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			host, adapter := pair(t)
			adapterEnd, hostEnd := ends(adapter), ends(host)
			if err := host.Close(code, "why"); err != nil {
				t.Fatal(err)
			}
			wantCode(t, adapterEnd, code, "why")
			_ = receive(t, "host's own end", hostEnd)
			if err := host.Close(wire.CloseNormal, "again"); err != nil {
				t.Errorf("second Close = %v", err)
			}
			if err := host.Write([]byte("x")); err == nil {
				t.Error("Write after Close = nil, want an error")
			}
		})
	}
}

// The peer has frames under way when it is refused: closing the socket with
// them unread would reset the connection and take the close frame back.
func TestCloseCodeSurvivesUnreadInput(t *testing.T) {
	host, adapter := pair(t)
	frame := bytes.Repeat([]byte{'x'}, 10_000)
	for range 20 {
		if err := adapter.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	if err := host.Close(wire.CloseRefused, "no"); err != nil {
		t.Fatal(err)
	}
	hostEnd := ends(host)
	wantCode(t, ends(adapter), wire.CloseRefused, "no")
	_ = receive(t, "host's own end", hostEnd)
}

func TestCloseEndsReadOfAPeerThatDoesNotAnswer(t *testing.T) {
	host, client := raw(t) // the client never reads, so it never answers the close
	end := ends(host)
	if err := host.Close(wire.CloseNormal, ""); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "host's end", end); !errors.Is(err, ErrClosed) {
		t.Errorf("Read = %v, want ErrClosed", err)
	}
	_ = client.Close()
}

func TestPeerThatVanishes(t *testing.T) {
	host, client := raw(t)
	end := ends(host)
	_ = client.NetConn().Close()
	var closed *CloseError
	if err := receive(t, "host's end", end); errors.As(err, &closed) && closed.Code != 1006 || errors.Is(err, ErrClosed) {
		t.Errorf("Read = %v, want neither a close code of the peer nor ErrClosed", err)
	}
}

func TestReadBufferIsGoodUntilTheNextRead(t *testing.T) {
	host1, adapter1 := pair(t)
	host2, adapter2 := pair(t)
	write := func(c *WebSocket, s string) {
		t.Helper()
		if err := c.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	write(adapter1, "first of one")
	first, err := host1.Read()
	if err != nil {
		t.Fatal(err)
	}
	for range 100 { // another connection takes and returns pooled buffers meanwhile
		write(adapter2, "XXXXXXXXXXXXXXXXX")
		if _, err := host2.Read(); err != nil {
			t.Fatal(err)
		}
		if err := host2.Write([]byte("YYYY"), []byte("ZZZZ")); err != nil {
			t.Fatal(err)
		}
	}
	if string(first) != "first of one" {
		t.Errorf("the frame changed to %q before the next Read", first)
	}
}

func TestPingIsAnsweredAndHeard(t *testing.T) {
	host, adapter := pair(t)
	_, _ = ends(host), ends(adapter)
	before := host.Heard()
	if err := host.Ping(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "a pong is heard", func() bool { return host.Heard().After(before) })
}

func TestDialNamesTheRefusalButNotTheQuery(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	address := strings.Replace(server.URL, "http", "ws", 1)
	for name, c := range map[string]struct{ url, want string }{
		"status":      {address + "/?token=secret", "429"},
		"no listener": {"ws://127.0.0.1:1/?token=secret", "refused"},
		"bad url":     {"ws://h/%zz?token=secret", "dial"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := Dial(ctx, c.url, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("Dial = %v, want %q and no query", err, c.want)
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	for range 20 {
		host, adapter := pair(t)
		hostEnd, adapterEnd := ends(host), ends(adapter)
		var group sync.WaitGroup
		for _, c := range []*WebSocket{host, adapter} {
			group.Go(func() { // the one writer
				for i := 0; ; i++ {
					if c.Write([]byte("a"), bytes.Repeat([]byte{'b'}, 3000)) != nil || c.Write([]byte("c")) != nil {
						return
					}
				}
			})
			group.Go(func() {
				for range 20 {
					_ = c.Ping()
					_ = c.Heard()
				}
			})
		}
		for range 3 {
			group.Go(func() { _ = host.Close(wire.CloseReplaced, "") })
			group.Go(func() { _ = adapter.Close(wire.CloseNormal, "") })
		}
		_ = receive(t, "host's end", hostEnd)
		_ = receive(t, "adapter's end", adapterEnd)
		group.Wait()
	}
}

// TestManyFramesAtOnce writes frames of every length of header in one piece, so
// that they reach the reader in pieces of its own.
func TestManyFramesAtOnce(t *testing.T) {
	host, adapter := pair(t)
	var frames [][]byte
	for i := range 400 {
		size := []int{0, 1, 125, 126, 200, 1024 - 8, 1024, 5000, 65535, 65536, wire.MaxFrame}[i%11]
		if size > 5000 && i > 33 {
			size = i
		}
		frames = append(frames, bytes.Repeat([]byte{byte('a' + i%26)}, size))
	}
	for name, ends := range map[string][2]*WebSocket{"to the adapter": {host, adapter}, "to the host": {adapter, host}} {
		t.Run(name, func(t *testing.T) {
			from, to := ends[0], ends[1]
			wrote := make(chan error, 1)
			go func() { wrote <- from.Write(frames...) }()
			for i, want := range frames {
				got, err := to.Read()
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("frame %d: found %d bytes, %v, expected %d", i, len(got), err, len(want))
				}
			}
			if err := receive(t, "write", wrote); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNoFrameFollowsAClose(t *testing.T) {
	host, adapter := pair(t)
	end := ends(adapter)
	if err := host.Close(wire.CloseDraining, "bye"); err != nil {
		t.Fatal(err)
	}
	if err := host.Write([]byte("{}")); !errors.Is(err, websocket.ErrCloseSent) {
		t.Errorf("write after close: %v, expected %v", err, websocket.ErrCloseSent)
	}
	wantCode(t, end, wire.CloseDraining, "bye")
}
