package hosttest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// Host is a whole host in this process, on a socket of its own.
type Host struct {
	*Core
	Slots *bridge.Slots
	Gate  *auth.Gate

	Key  string // the operator's
	Addr string // host and port

	stopOnce sync.Once
	stopped  func()
}

// Start runs a host until the test ends or calls Stop.
func Start(t *testing.T, change ...func(*Setup)) *Host {
	t.Helper()
	s := settings(t, change)
	h := &Host{Core: open(t, s)}
	keys, err := auth.OpenKeys(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if h.Key, err = auth.ReadKey(s.Dir); err != nil {
		t.Fatal(err)
	}
	log := s.Store.Log
	h.Gate = auth.NewGate(h.Store, s.Now)
	var w *whole
	if s.Whole {
		w = h.openWhole(log)
	}
	if err := h.Roster.Load(t.Context(), h.Store); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Hub.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	var admits bridge.Gate = h.Gate
	if s.Gate != nil {
		admits = s.Gate(h.Gate)
	}
	if w != nil {
		s.Bridge.Note = w.met.Note
	}
	h.Slots = bridge.New(bridge.Local(h.Hub), admits, s.Bridge)
	o := api.Options{
		Store: h.Store, Attachments: h.Files, Hub: h.Hub, Slots: h.Slots, Agents: h.Roster, Keys: keys, Gate: h.Gate,
		Assets: agent.Assets(), Log: log, Version: "test", Now: time.Now, Ready: h.Store.Writable,
	}
	if w != nil {
		if err := w.complete(h, s, &o); err != nil {
			t.Fatal(err)
		}
	}
	if s.API != nil {
		s.API(h, &o)
	}
	streams, endStreams := context.WithCancel(context.WithoutCancel(t.Context()))
	h.serve(api.New(streams, o), w, log, endStreams, s.SmallBuffer)
	return h
}

func (h *Host) serve(handler http.Handler, w *whole, log *slog.Logger, endStreams func(), small bool) {
	services, closeWhole := []func(context.Context) error{h.Gate.Serve, h.Slots.Serve}, func() {}
	if w != nil {
		handler, services, closeWhole = w.surface(h, log, handler), append(services, w.services(h)...), w.close
	}
	srv := httptest.NewUnstartedServer(handler)
	if small {
		srv.Listener = smallListener{srv.Listener}
	}
	srv.Start()
	h.Addr = srv.Listener.Addr().String()
	h.addr = h.Addr
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.T.Context()))
	var wg sync.WaitGroup
	for _, serve := range services {
		wg.Go(func() {
			if err := serve(ctx); err != nil && !errors.Is(err, context.Canceled) {
				h.T.Error(err)
			}
		})
	}
	h.stopped = func() {
		endStreams()
		closeWhole()
		await.Done(h.T, "the sessions end", h.Slots.Close)
		srv.Close()
		cancel()
		wg.Wait()
		h.close()
	}
	h.T.Cleanup(h.Stop)
}

// Stop ends the host as the program does, and waits for it.
func (h *Host) Stop() { h.stopOnce.Do(h.stopped) }

// Again stops the host and starts another one on the same data directory.
func (h *Host) Again(change ...func(*Setup)) *Host {
	h.T.Helper()
	h.Stop()
	return h.on(h.Dir, change)
}

// Killed starts another host on what a kill at this moment would leave on the disk,
// so that nothing of this one's end is in it.
func (h *Host) Killed(change ...func(*Setup)) *Host {
	h.T.Helper()
	left := h.T.TempDir()
	unlock := LockStore(h.T, h.Dir) // the log is not begun anew while it is copied
	err := copyTree(left, h.Dir)
	unlock()
	if err != nil {
		h.T.Fatal(err)
	}
	h.Stop()
	return h.on(left, change)
}

func (h *Host) on(dir string, change []func(*Setup)) *Host {
	h.T.Helper()
	return Start(h.T, append([]func(*Setup){func(s *Setup) { s.Dir = dir }}, change...)...)
}

// copyTree copies files and directories with their modes.
func copyTree(to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.Walk(from, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return os.Chmod(filepath.Join(to, name), info.Mode().Perm())
	})
}

// smallListener's connections hold little, so that a peer that doesn't read is
// noticed after kilobytes and not megabytes.
type smallListener struct{ net.Listener }

// SmallBuffer is what such a connection holds at most each way, roughly.
const SmallBuffer = 128 << 10 // less than a segment of the loopback would make it crawl

func (l smallListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		shrink(c)
	}
	return c, err
}

func shrink(c net.Conn) {
	tcp := c.(*net.TCPConn)
	_ = tcp.SetReadBuffer(SmallBuffer)
	_ = tcp.SetWriteBuffer(SmallBuffer)
}
