package safehttp

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// As many connections as there are requests at once serve the next ones too.
func TestIdleConnections(t *testing.T) {
	const atOnce = 80
	var opened atomic.Int64
	var all sync.WaitGroup // requests that have not come
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) {
		all.Done()
		all.Wait()
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c := New(Options{Allow: Networks{All: true}, Idle: atOnce})
	defer c.Close()
	for range 3 {
		all.Add(atOnce)
		var answered sync.WaitGroup
		for range atOnce {
			answered.Go(func() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := c.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			})
		}
		answered.Wait()
	}
	// One that is just put back may come too late for the next.
	if n := opened.Load(); n > 2*atOnce {
		t.Errorf("%d connections were opened for three times %d requests", n, atOnce)
	}
}
