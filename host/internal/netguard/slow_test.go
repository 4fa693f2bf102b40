package netguard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/torture"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// Connections that stay open, and say nothing, do not keep others out. The good
// client is of this machine, as the slow ones, which have no bound of their own.
func TestHostileSlowClients(t *testing.T) {
	e := New(Options{})
	address := runs(t, e, nil, okay)
	var slow []net.Conn
	blocked := 0
	good := func() time.Duration {
		began := time.Now()
		if status, _, _, err := says(from(t, "127.0.0.1", address), hello); status != 200 {
			t.Fatalf("good client: %d %v", status, err)
		}
		return time.Since(began)
	}
	_ = good()
	alone := good() // how slow this machine is
	for i := range 500 {
		c := from(t, "127.0.0.1", address)
		if i%2 == 0 {
			_, _ = io.WriteString(c, "POST /api/v1/channels HTTP/1.1\r\nHost: localhost\r\nX-A: ")
		}
		slow = append(slow, c)
	}
	for range 20 {
		if took := good(); took > 5*time.Second+100*alone {
			blocked++
			t.Errorf("a good client waited %s, and %s when it was alone", took, alone)
		}
	}
	// They trickle on, and are cut off all the same.
	eventually(t, "the slow ones are cut off", func() bool {
		for _, c := range slow {
			_, _ = c.Write([]byte("a"))
		}
		return e.conns.len() < 50
	})
	torture.Attack(t, "connections that say little, slowly (slowloris)", 500, blocked, "a good client waited for the slow ones")
}

// A body may be long but not slow, and what is not read does not hold anybody up.
func TestBodies(t *testing.T) {
	e := New(Options{MaxBody: func(*http.Request) int64 { return 1 << 20 }})
	failed := make(chan error, 8)
	address := runs(t, e, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unread" {
			okay(w, r)
			return
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			failed <- err
			refuse(w, http.StatusRequestEntityTooLarge, err.Error())
			return
		}
		fmt.Fprint(w, len(b))
	})
	for name, c := range map[string]struct {
		request string
		status  int
		want    string
	}{
		"ok":           {"POST / HTTP/1.1\nHost: localhost\nContent-Length: 5\n\nhello", 200, "5"},
		"identity":     {"POST / HTTP/1.1\nHost: localhost\nContent-Encoding: identity\nContent-Length: 5\n\nhello", 200, "5"},
		"gzip":         {"POST / HTTP/1.1\nHost: localhost\nContent-Encoding: gzip\nContent-Length: 5\n\nhello", 415, "compressed"},
		"gzip, second": {"POST / HTTP/1.1\nHost: localhost\nContent-Encoding: identity\nContent-Encoding: br\nContent-Length: 5\n\nhello", 415, "compressed"},
		"declared":     {"POST / HTTP/1.1\nHost: localhost\nContent-Length: 1048577\n\nhello", 413, "at most 1048576"},
		"undeclared":   {"POST / HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked\n\n200000\n" + strings.Repeat("x", 0x200000) + "\n0\n\n", 413, "too large"},
		"smuggled":     {"POST / HTTP/1.1\nHost: localhost\nContent-Length: 5\nTransfer-Encoding: gzip, chunked\n\n0\n\n", 501, ""},
		"two lengths":  {"POST / HTTP/1.1\nHost: localhost\nContent-Length: 5\nContent-Length: 6\n\nhello", 400, ""},
		"large header": {"GET / HTTP/1.1\nHost: localhost\nX-A: " + strings.Repeat("x", 32<<10) + "\n\n", 431, ""},
	} {
		status, _, body, err := says(from(t, "127.0.0.1", address), c.request)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %.100s %v, expected %d %s", name, status, body, err, c.status, c.want)
		}
	}
	// A client that sends nothing of what nobody wants is answered at once, and
	// does not keep the connection.
	c := from(t, "127.0.0.1", address)
	if status, _, _, err := says(c, "POST /unread HTTP/1.1\nHost: localhost\nContent-Length: 1000\n\nx"); status != 200 {
		t.Errorf("unread: %d %v", status, err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Errorf("unread: %v, expected the end", err)
	}
}

func TestPace(t *testing.T) {
	p := pace{patience: patience}
	if got := p.next(0); got != patience {
		t.Errorf("%s at the beginning", got)
	}
	// Much that comes in time buys no more patience than the rest may take at once.
	p.note(100*minRate, time.Second)
	if got := p.next(0); got != patience {
		t.Errorf("%s after much", got)
	}
	// At a quarter of the rate there is an end to it.
	p = pace{patience: patience}
	n := 0
	for ; p.next(0) > 0; n++ {
		p.note(minRate/4, time.Second)
	}
	if n < 20 || n > 30 {
		t.Errorf("slow for %d s, expected 20/0.75", n)
	}
	if p.note(1<<40, time.Hour); p.next(0) != patience {
		t.Error("a stream that had a TiB has no time")
	}
	// At the rate there is none, however long it takes.
	p = pace{patience: patience}
	for range 10_000 {
		p.note(minRate, time.Second)
	}
	if got := p.next(0); got != patience {
		t.Errorf("%s at the rate", got)
	}
}

// An end to a reader who takes nothing, through the real sockets, with a deadline
// of the handler's own, which is sooner than ours.
func TestSlowReader(t *testing.T) {
	ended := make(chan error, 1)
	address := runs(t, New(Options{}), nil, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		b := make([]byte, 1<<20)
		for {
			if _, err := w.Write(b); err != nil {
				ended <- err
				return
			}
		}
	})
	c := from(t, "127.0.0.1", address)
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v, expected the deadline", err)
		}
	case <-time.After(await.Limit):
		t.Error("a reader who takes nothing is written to for ever")
	}
}

// The same with our own, and one that takes a little now and then.
func TestSlowReaderPace(t *testing.T) {
	for name, sip := range map[string]int{"nothing": 0, "a little": 16} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := New(Options{})
			e.patience = 100 * time.Millisecond
			ended := make(chan error, 1)
			address := runs(t, e, nil, func(w http.ResponseWriter, _ *http.Request) {
				b := make([]byte, 1<<20)
				for {
					if _, err := w.Write(b); err != nil {
						ended <- err
						return
					}
				}
			})
			c := from(t, "127.0.0.1", address)
			_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
			if _, err := io.WriteString(c, strings.ReplaceAll(hello, "\n", "\r\n")); err != nil {
				t.Fatal(err)
			}
			deadline := await.Deadline()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case err := <-ended:
					if !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("%v, expected the deadline", err)
					}
					return
				case <-tick.C:
					_, _ = c.Read(make([]byte, sip))
				}
				if time.Now().After(deadline) {
					t.Fatal("a slow reader is written to for ever")
				}
			}
		})
	}
}

// A body of which a byte comes now and then ends, and so does one of which nothing comes.
func TestSlowBody(t *testing.T) {
	for name, trickle := range map[string]bool{"nothing": false, "a little": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := New(Options{})
			e.patience = 300 * time.Millisecond
			failed := make(chan error, 1)
			address := runs(t, e, nil, func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.ReadAll(r.Body)
				failed <- err
			})
			c := from(t, "127.0.0.1", address)
			if _, err := io.WriteString(c, "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			deadline := time.After(await.Limit)
			for {
				select {
				case err := <-failed:
					if !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("%v, expected the deadline", err)
					}
					return
				case <-deadline:
					t.Fatal("a slow body is read for ever")
				case <-tick.C:
					if trickle {
						_, _ = c.Write([]byte("x"))
					}
				}
			}
		})
	}
}

// A handler that takes long after it has read the body, or that streams, is not
// ended by the deadline of either.
func TestPatientHandler(t *testing.T) {
	e := New(Options{})
	e.patience = 100 * time.Millisecond
	address := runs(t, e, nil, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for range 5 {
			late := time.NewTimer(120 * time.Millisecond)
			select {
			case <-late.C:
			case <-r.Context().Done():
				late.Stop()
				return
			}
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
		}
	})
	c := from(t, "127.0.0.1", address)
	for range 2 {
		if status, _, body, err := says(c, "POST /healthz HTTP/1.1\nHost: localhost\nContent-Length: 5\n\nhello"); status != 200 || body != "xxxxx" {
			t.Errorf("%d %q %v", status, body, err)
		}
	}
}
