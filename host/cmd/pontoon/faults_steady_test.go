//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// steady is the adapter that must not notice anything: it says something at a
// constant rate, whether it is answered or not, and keeps how long each answer
// took since it was due.
type steady struct {
	t     *testing.T
	peer  *peer
	every time.Duration
	began time.Time
	stop  chan struct{}
	wg    sync.WaitGroup

	mu   sync.Mutex // guards what follows
	sent int
	took []time.Duration // by number; they come in order
	err  error
}

func startSteady(t *testing.T, h *host, token string, rate int) *steady {
	s := &steady{t: t, peer: h.attach(token), every: time.Second / time.Duration(rate), began: time.Now(), stop: make(chan struct{})}
	s.wg.Go(s.write)
	s.wg.Go(s.read)
	return s
}

func (s *steady) write() {
	for n := 0; ; n++ {
		if pause := time.Until(s.due(n)); pause > 0 {
			select {
			case <-s.stop:
				return
			case <-time.After(pause):
			}
		}
		s.mu.Lock()
		s.sent = n + 1
		s.mu.Unlock()
		text := fmt.Sprintf(`{"type":"message","conversation_id":"steady","user_id":"steady","text":"%d"}`, n)
		if err := s.peer.conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			s.fail(err)
			return
		}
		select {
		case <-s.stop:
			return
		default:
		}
	}
}

func (s *steady) due(n int) time.Time { return s.began.Add(time.Duration(n) * s.every) }

func (s *steady) read() {
	for f := range s.peer.frames {
		s.mu.Lock()
		n := len(s.took)
		s.took = append(s.took, time.Since(s.due(n)))
		s.mu.Unlock()
		if want := fmt.Sprintf("echo: %d", n); f["text"] != want || f["conversation_id"] != "steady" {
			s.fail(fmt.Errorf("found %v, expected %q", f, want))
		}
	}
	select {
	case <-s.stop:
	default:
		s.fail(errors.New("connection closed"))
	}
}

func (s *steady) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// now is the number of the next message.
func (s *steady) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// unharmed checks that nothing was lost, reordered or repeated so far, and that
// the connection lives.
func (s *steady) unharmed(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	upTo := s.sent
	s.mu.Unlock()
	eventually(t, "the other adapter's messages are answered", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.err != nil || len(s.took) >= upTo
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		t.Fatalf("the other adapter noticed: %v (close code %d)", s.err, s.peer.code)
	}
}

// p99 is that of the messages from..to.
func (s *steady) p99(from, to int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	to = min(to, len(s.took))
	if from >= to {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.took[from:to]))
	return sorted[(len(sorted)*99+99)/100-1]
}

// end stops it and returns how many messages it said; all were answered.
func (s *steady) end(t *testing.T) int {
	t.Helper()
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.unharmed(t)
	_ = s.peer.conn.Close()
	s.wg.Wait()
	return s.now()
}

// elsewhere is an address that plugins name and nobody must dial.
type elsewhere struct {
	net.Listener
	dialled  atomic.Int64
	outward  atomic.Bool
	finished chan struct{}
	wg       sync.WaitGroup
}

func newElsewhere(t *testing.T) *elsewhere {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &elsewhere{Listener: ln, finished: make(chan struct{})}
	e.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			e.dialled.Add(1)
			_ = c.Close()
		}
	})
	e.wg.Go(e.watch)
	t.Cleanup(func() {
		_ = ln.Close()
		close(e.finished)
		e.wg.Wait()
		if n := e.dialled.Load(); n > 0 {
			t.Errorf("%d connections to where plugins said", n)
		}
		if e.outward.Load() {
			t.Error("somebody dialled 192.0.2.1")
		}
	})
	return e
}

// watch looks for 192.0.2.1 among the machine's connections.
func (e *elsewhere) watch() {
	const address = "010200C0:0050" // as the kernel prints 192.0.2.1:80
	for {
		select {
		case <-e.finished:
			return
		case <-time.After(50 * time.Millisecond):
		}
		if text, err := os.ReadFile("/proc/net/tcp"); err == nil && strings.Contains(string(text), address) {
			e.outward.Store(true)
		}
	}
}
