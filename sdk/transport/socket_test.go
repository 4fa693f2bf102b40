package transport

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// Frames of all sizes around the input buffer's, in one write: none is torn,
// and what an idle connection holds afterwards is nothing.
func TestIdleConnectionHoldsNoInput(t *testing.T) {
	host, adapter := pair(t)
	if host.socket.raw == nil {
		t.Fatal("a TCP connection is read like any other")
	}
	var frames [][]byte
	for _, n := range []int{0, 1, 125, 126, 127, 200, inputSize - 200, inputSize - 4, inputSize, inputSize + 1, 3 * inputSize, 70_000, 2} {
		frames = append(frames, bytes.Repeat([]byte("x"), n))
	}
	written := make(chan error, 1)
	go func() { written <- adapter.Write(frames...) }()
	for i, want := range frames {
		if got, err := host.Read(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("frame %d has %d bytes, %v, want %d", i, len(got), err, len(want))
		}
	}
	if err := receive(t, "write", written); err != nil {
		t.Fatal(err)
	}
	if host.socket.input != nil || len(host.socket.rest) != 0 {
		t.Errorf("everything is read, and %d bytes are still held", len(host.socket.rest))
	}
}

func TestReadDeadlineOfAnIdleConnection(t *testing.T) {
	host, _ := pair(t)
	if err := host.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	end := ends(host)
	var inTime net.Error
	if err := receive(t, "deadline", end); !errors.As(err, &inTime) || !inTime.Timeout() {
		t.Errorf("read = %v, want a timeout", err)
	}
}

// Over TLS there is no reading from the system directly.
func TestFramesOverTLS(t *testing.T) {
	accepted := make(chan *WebSocket, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := Upgrade(w, r); err == nil {
			accepted <- c
		}
	}))
	defer server.Close()
	trusting := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
	client, resp, err := trusting.DialContext(t.Context(), strings.Replace(server.URL, "https", "wss", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	defer func() { _ = client.Close() }()
	host := receive(t, "upgrade", accepted)
	if host.socket.raw != nil {
		t.Fatal("a TLS connection is read below TLS")
	}
	for i := range 100 {
		want := fmt.Sprint(i, strings.Repeat("x", i*100))
		if err := client.WriteMessage(websocket.TextMessage, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := host.Read(); err != nil || string(got) != want {
			t.Fatalf("frame %d = %.20q, %v", i, got, err)
		}
	}
	_ = client.Close()
	if err := receive(t, "end", ends(host)); err == nil {
		t.Error("the peer has gone, and Read goes on")
	}
}
