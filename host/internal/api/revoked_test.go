package api_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// A stream whose reader takes nothing ends with its key, and nothing is written to it
// any more: else the reader would be told what happened since, once it reads on.
func TestDeafStreamEndsWithItsKey(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole, func(s *hosttest.Setup) { s.SmallBuffer = true })
	h.Make("deaf", `,"queue":true`)
	send := func(text string) {
		t.Helper()
		h.Must(nil, "POST", "/channels/deaf/messages", `{"conversation_id":"a","text":"`+text+`"}`)
	}
	for name, path := range map[string]string{"events": "/events?channel=deaf"} {
		t.Run(name, func(t *testing.T) {
			var key struct{ ID, Key string }
			h.Must(&key, "POST", "/keys", `{"name":"`+name+`","scopes":["read"]}`)
			conn := unread(t, h, path, key.Key)
			for range 20 {
				send("BEFORE" + strings.Repeat("z", 200_000))
			}
			h.Must(nil, "DELETE", "/keys/"+key.ID, "")
			for range 3 {
				send("AFTER")
			}
			_ = conn.SetReadDeadline(time.Now().Add(await.Limit))
			got, err := io.ReadAll(conn)
			if strings.Contains(string(got), "AFTER") || !strings.Contains(string(got), "BEFORE") {
				t.Errorf("read %d bytes, with what came later: %v", len(got), strings.Contains(string(got), "AFTER"))
			}
			if err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the connection is not closed: %v", err)
			}
			await.Until(t, "the stream has ended", func() bool { return h.Hub.Events.Subscribers() == 0 })
		})
	}
}

// unread asks for a stream that it does not read.
func unread(t *testing.T, h *hosttest.Host, path, key string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", h.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(hosttest.SmallBuffer)
	_ = conn.SetReadDeadline(await.Deadline())
	if _, err := fmt.Fprintf(conn, "GET /api/v1%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n", path, h.Addr, key); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 12)
	if _, err := io.ReadFull(conn, first); err != nil || string(first) != "HTTP/1.1 200" {
		t.Fatalf("%s: %q, %v", path, first, err)
	}
	return conn
}

// A body that is no body, or too much of one, is the client's fault, and what is wrong
// with it is said in few words.
func TestBodies(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	var many strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&many, `,"k%d":0`, i)
	}
	for name, c := range map[string]struct {
		path, body string
		status     int
	}{
		"errManyErrors":  {"/channels", `{"name":"a"` + many.String() + `}`, 422},
		"errLongName":    {"/channels", `{"name":"a","` + strings.Repeat("k", 500_000) + `":0}`, 422},
		"errManyValues":  {"/channels", `{"name":[` + strings.Repeat("{},", 300_000) + `{}]}`, 400},
		"errDeep":        {"/channels", `{"name":` + strings.Repeat("[", 500_000), 400},
		"errOpen":        {"/sessions", `{"name":"a"` + many.String() + `}`, 413},
		"errOpenSetup":   {"/operator/setup", `{"name":"a"` + many.String() + `}`, 413},
		"okLongPassword": {"/sessions", `{"name":"a","password":"` + strings.Repeat(`\ud83d\ude00`, 1024) + `"}`, 401},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.Request(h.Key, "POST", c.path, c.body)
			if a.Status != c.status || len(a.Body) > 32<<10 {
				t.Errorf("%d, %d bytes: %.300s", a.Status, len(a.Body), a.Body)
			}
		})
	}
	t.Run("errChunk", func(t *testing.T) {
		conn, err := net.Dial("tcp", h.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(await.Deadline())
		_, _ = fmt.Fprintf(conn, "POST /api/v1/render HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5;x=%s\r\n{}   \r\n0\r\n\r\n",
			h.Key, strings.Repeat("x", 20_000))
		first := make([]byte, 12)
		if _, err := io.ReadFull(conn, first); err != nil || string(first) != "HTTP/1.1 400" {
			t.Errorf("%q, %v", first, err)
		}
	})
}
