package sendqueue

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	return await.Value(t, what, c)
}

// served is a queue that is written to a peer.
type served struct {
	*Queue
	peer transport.Conn
	end  chan error // what Serve returned
}

func serve(t *testing.T, q *Queue) served {
	t.Helper()
	s := served{Queue: q, end: make(chan error, 1)}
	read := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := transport.Upgrade(w, r)
		if err != nil {
			close(read)
			t.Errorf("upgrade: %v", err)
			return
		}
		gone := make(chan struct{})
		go func() {
			defer close(read)
			defer close(gone)
			readToEnd(c)
		}()
		s.end <- q.Serve(c, gone)
	}))
	peer, err := transport.Dial(t.Context(), strings.Replace(server.URL, "http", "ws", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.peer = peer
	t.Cleanup(func() {
		_ = peer.Close(wire.CloseNormal, "")
		readToEnd(peer)
		receive(t, "end of the reader", read)
		server.Close()
	})
	return s
}

func readToEnd(c transport.Conn) {
	for {
		if _, err := c.Read(); err != nil {
			return
		}
	}
}

func (s served) wantFrame(t *testing.T, want string) {
	t.Helper()
	if got, err := s.peer.Read(); err != nil || string(got) != want {
		t.Fatalf("the peer read %q, %v; want %q", got, err, want)
	}
}

func (s served) wantClose(t *testing.T, code wire.CloseCode, why string) {
	t.Helper()
	var closed *transport.CloseError
	if got, err := s.peer.Read(); !errors.As(err, &closed) || closed.Code != code || closed.Reason != why {
		t.Errorf("the peer read %q, %v; want close code %d, %q", got, err, code, why)
	}
}

func TestCloseWritesWhatWaitsFirst(t *testing.T) {
	q := New(10, 100)
	for _, f := range []string{"a", "b", "c"} {
		if !q.Put([]byte(f)) {
			t.Fatalf("no room for %q", f)
		}
	}
	if !q.Close(wire.CloseRevoked, "first") || q.Close(wire.CloseReplaced, "second") || q.Abort(wire.CloseReplaced, "third") {
		t.Error("the first reason should count, and no other")
	}
	if code, why := q.Closed(); code != wire.CloseRevoked || why != "first" {
		t.Errorf("Closed = %d, %q", code, why)
	}
	if !q.Put([]byte("late")) || !q.Empty() {
		t.Error("a frame after Abort was kept, or was said not to fit")
	}

	q = New(10, 100)
	s := serve(t, q)
	q.Put([]byte("a"))
	q.Put([]byte("b"))
	q.Ping()
	q.Close(wire.CloseRevoked, "over")
	q.Put([]byte("late"))
	s.wantFrame(t, "a")
	s.wantFrame(t, "b")
	s.wantClose(t, wire.CloseRevoked, "over")
	if err := receive(t, "end of Serve", s.end); err != nil {
		t.Errorf("Serve = %v", err)
	}
}

func TestAbortDropsWhatWaits(t *testing.T) {
	q := New(10, 100)
	q.Put([]byte("dropped"))
	q.Close(wire.CloseDraining, "first")
	q.Abort(wire.CloseTooSlow, "second")
	s := serve(t, q)
	s.wantClose(t, wire.CloseDraining, "first")
	if err := receive(t, "end of Serve", s.end); err != nil {
		t.Errorf("Serve = %v", err)
	}
}

func TestBounds(t *testing.T) {
	t.Run("frames", func(t *testing.T) {
		q := New(2, 100)
		if !q.Put([]byte("a")) || !q.Put([]byte("b")) || q.Put([]byte("c")) {
			t.Error("a queue of two frames should take two, and no third")
		}
		if got := string(bytes.Join(q.Some(100, 0), nil)); got != "ab" {
			t.Errorf("took %q", got)
		}
		if !q.Put([]byte("d")) {
			t.Error("no room though all was taken")
		}
	})
	t.Run("bytes", func(t *testing.T) {
		q := New(100, 5)
		if !q.Put([]byte("aaa")) || q.Put([]byte("bbb")) || !q.Put([]byte("cc")) {
			t.Error("a queue of five bytes should take 3 and 2, and not 3 and 3")
		}
		q.Some(3, 0)
		if !q.Put([]byte("ddd")) || q.Put([]byte("e")) {
			t.Error("what was taken should make as much room as it was long")
		}
	})
	t.Run("as soon as Serve took them", func(t *testing.T) {
		q := New(1, 1)
		s := serve(t, q)
		for range 3 {
			if !q.Put([]byte("x")) {
				t.Fatal("no room though the peer has read all")
			}
			s.wantFrame(t, "x")
		}
	})
}

func TestSome(t *testing.T) {
	for name, c := range map[string]struct {
		frames        []string
		most, between int
		want          string
	}{
		"none":                  {nil, 10, 1, ""},
		"all":                   {[]string{"aa", "bb", "cc"}, 8, 1, "aa|bb|cc"},
		"what is between":       {[]string{"aa", "bb", "cc"}, 7, 1, "aa|bb"},
		"one at least":          {[]string{"aaaaaa", "bb"}, 3, 1, "aaaaaa"},
		"in order, none passed": {[]string{"a", "bbbbbb", "c"}, 3, 1, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			q := New(10, 100)
			for _, f := range c.frames {
				q.Put([]byte(f))
			}
			if got := string(bytes.Join(q.Some(c.most, c.between), []byte("|"))); got != c.want {
				t.Errorf("took %q, want %q", got, c.want)
			}
		})
	}
}

// Whoever reads may end without a reason of the queue: Serve ends, too.
func TestServeEndsWithItsReader(t *testing.T) {
	q := New(10, 100)
	s := serve(t, q)
	if err := s.peer.Close(wire.CloseNormal, "bye"); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "end of Serve", s.end); err != nil {
		t.Errorf("Serve = %v", err)
	}
}

func TestServeReportsAWriteThatFails(t *testing.T) {
	q := New(10, 100)
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := transport.Upgrade(w, r)
		if err != nil {
			t.Errorf("upgrade: %v", err)
			return
		}
		_ = c.Close(wire.CloseOverload, "")
		readToEnd(c)
		q.Put([]byte("x"))
		ended <- q.Serve(c, nil)
	}))
	defer server.Close()
	peer, err := transport.Dial(t.Context(), strings.Replace(server.URL, "http", "ws", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	readToEnd(peer)
	if err := receive(t, "end of Serve", ended); err == nil {
		t.Error("Serve = nil, want the error of Write")
	}
	if code, _ := q.Closed(); code != wire.CloseTooSlow {
		t.Errorf("closed with %d", code)
	}
}

// held is a connection whose writes wait.
type held struct {
	transport.Conn
	begun, goOn chan struct{}
}

func (h held) Write(frames ...[]byte) error {
	h.begun <- struct{}{}
	<-h.goOn
	return h.Conn.Write(frames...)
}

// A connection that is ended while a frame is being written is closed behind it,
// not left open by a writer that has gone.
func TestCloseWhileWriting(t *testing.T) {
	conns := make(chan transport.Conn, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := transport.Upgrade(w, r); err == nil {
			conns <- c
		}
	}))
	defer server.Close()
	peer, err := transport.Dial(t.Context(), strings.Replace(server.URL, "http", "ws", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := held{receive(t, "upgrade", conns), make(chan struct{}), make(chan struct{})}
	read, gone, served := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // until the connection is closed
		defer close(read)
		readToEnd(c)
	}()
	q := New(10, 1000)
	go func() { served <- q.Serve(c, gone) }()
	q.Put([]byte("x"))
	receive(t, "the write begins", c.begun)
	q.Abort(wire.CloseDraining, "why")
	close(gone)
	close(c.goOn)
	if err := receive(t, "the writer's end", served); err != nil {
		t.Error(err)
	}
	if frame, err := peer.Read(); err != nil || string(frame) != "x" {
		t.Errorf("read %q, %v", frame, err)
	}
	if err := peer.SetReadDeadline(await.Deadline()); err != nil {
		t.Fatal(err)
	}
	var closed *transport.CloseError
	if _, err := peer.Read(); !errors.As(err, &closed) || closed.Code != wire.CloseDraining {
		t.Errorf("ended with %v, want code %d", err, wire.CloseDraining)
	}
	receive(t, "end of the reader", read)
}
