package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// One key has so many event streams, whether it reads them or not; others have their own,
// and one that ends makes room.
func TestReadersBounded(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	key := h.NewKey("k", `"scopes":["read"]`)
	open := func(key string) (int, net.Conn) {
		t.Helper()
		conn, err := net.Dial("tcp", h.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := fmt.Fprintf(conn, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", key); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(await.Deadline()); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // that would read it to its end, which never comes
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusTooManyRequests {
			text, _ := io.ReadAll(resp.Body)
			t.Logf("refused: %s, Retry-After %s", text, resp.Header.Get("Retry-After"))
		}
		return resp.StatusCode, conn
	}
	const most = 128
	var last net.Conn
	for i := range most {
		status, conn := open(key)
		if last = conn; status != http.StatusOK {
			t.Fatalf("stream %d: %d", i, status)
		}
	}
	if status, _ := open(key); status != http.StatusTooManyRequests {
		t.Errorf("one more: %d", status)
	}
	if status, _ := open(h.Key); status != http.StatusOK {
		t.Errorf("another reader: %d", status)
	}
	_ = last.Close()
	await.Until(t, "there is room again", func() bool {
		status, _ := open(key)
		return status == http.StatusOK
	})
}
