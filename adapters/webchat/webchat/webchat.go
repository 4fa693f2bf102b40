// Package webchat is a chat page on loopback that talks to a Pontoon host.
//
// # Who is who
//
// A browser makes a key of 128 random bits and keeps it in its local storage.
// The key is the only thing that opens a conversation. It travels in the first
// frame of a WebSocket: never in a url, never in a cookie (which other ports of
// the same machine would see). What the host learns is a hash of it, as
// conversation_id and user_id: it shows in logs and history, and opens nothing.
// Since the id follows from the key, a conversation finds itself again after the
// adapter's restart.
//
// # How it runs
//
// Conversations live in memory, in one ring each (store). Everything that
// changes gets a revision, and a browser that comes back asks for what is newer
// than what it has; so there is one path for the first load, for a live change
// and for a reconnect, and no queue per browser. Send only stores: no browser,
// slow or gone, holds it up.
//
// A file that the user attaches is posted to the adapter, which keeps it in a
// directory of its own and gives it a name. The message that comes with that name
// brings it to the host: so a host that is away loses neither.
//
// Run owns the HTTP server and a courier, which hands over what users did: one
// goroutine per conversation that has something to hand over. A WebSocket has
// two goroutines, its handler reads and one writes; Run waits for all of them.
//
// A WebSocket was preferred to server-sent events because browsers open at most
// six HTTP/1.1 connections to one origin: the seventh tab would hang.
package webchat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Adapter is one chat page. Make it with New.
type Adapter struct {
	store *store
	cfg   Config // of Setup

	mu    sync.Mutex
	taken string // the address of the first Run, which a later one takes again
}

var (
	_ sdk.Adapter  = (*Adapter)(nil)
	_ sdk.Setuper  = (*Adapter)(nil)
	_ sdk.Cards    = (*Adapter)(nil)
	_ sdk.Buttons  = (*Adapter)(nil)
	_ sdk.Media    = (*Adapter)(nil)
	_ sdk.Typer    = (*Adapter)(nil)
	_ sdk.Editor   = (*Adapter)(nil)
	_ sdk.Rich     = (*Adapter)(nil)
	_ sdk.Streamer = (*Adapter)(nil)
)

// New makes an adapter; its configuration (Config) comes with Setup.
func New() *Adapter { return &Adapter{store: newStore(defaultBounds)} }

// shutdown bounds how long Run waits for downloads under way; below the 5 s that
// the SDK gives the whole adapter.
const shutdown = 2 * time.Second

// maxConnections bounds TCP connections: maxStreams and as many for page and files.
const maxConnections = 2 * maxStreams

// Setup reads the configuration. A wrong one is sdk.Refused.
func (a *Adapter) Setup(_ context.Context, given sdk.Config) error {
	var cfg Config
	if err := given.Decode(&cfg); err != nil {
		return err // Refused already
	}
	if err := cfg.check(); err != nil {
		return sdk.Refused(fmt.Errorf("configuration: %w", err))
	}
	a.cfg = cfg
	return nil
}

// Run serves the page until ctx ends. A taken port is an error that passes.
func (a *Adapter) Run(ctx context.Context, h *sdk.Host) error {
	ln, err := a.listen(ctx, a.cfg.Listen)
	if err != nil {
		h.Status(ctx, sdk.StatusOf(err))
		return err
	}
	defer func() { _ = ln.Close() }()

	inner, stop := context.WithCancel(ctx)
	defer stop()
	site, err := newSite(inner, a.cfg, ln.Addr().(*net.TCPAddr), a.store, h.Log)
	if err != nil {
		return sdk.Refused(err)
	}
	srv := site.server()
	var work sync.WaitGroup
	work.Go(func() { courier{h, a.store}.serve(inner) })
	served := make(chan error, 1)
	work.Go(func() { served <- srv.Serve(netutil.LimitListener(ln, maxConnections)) })
	h.Log.Info("webchat is open at " + site.address())
	h.Status(ctx, sdk.Status{State: wire.PlatformConnected})

	select {
	case <-ctx.Done():
		err = nil
	case err = <-served:
		err = fmt.Errorf("serve the page: %w", err)
	}
	stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown)
	defer cancel()
	if srv.Shutdown(last) != nil {
		_ = srv.Close() // what is under way has had its time
	}
	site.streams.Wait()
	work.Wait()
	a.store.forgetUploads()
	return err
}

// listen opens the address. Port 0 is any free one, and the same one again when
// Run is started anew, so that open pages find back.
func (a *Adapter) listen(ctx context.Context, address string) (net.Listener, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken != "" {
		address = a.taken
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: another program has this port; stop it, or set \"listen\" to a free one", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	a.taken = ln.Addr().String()
	return ln, nil
}
