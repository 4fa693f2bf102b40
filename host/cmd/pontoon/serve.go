package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/backup"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/store"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor"
)

// drainTimeout bounds how long open requests hold up the end.
const drainTimeout = 10 * time.Second

func serveCommand(o *clientOptions) *cobra.Command {
	var c config.Serve
	var profiles string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the host",
		Long: "Run the host until SIGTERM. The first start makes the data directory with its database and an admin key.\n" +
			"The host listens on loopback unless told otherwise.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Data = o.data
			c.PluginsNamed = cmd.Flags().Changed("plugins")
			if err := c.Validate(); err != nil {
				return usageError{err}
			}
			if profiles == "" {
				return serve(cmd.Context(), c, cmd)
			}
			stop, err := profile(profiles)
			if err != nil {
				return err
			}
			return errors.Join(serve(cmd.Context(), c, cmd), stop())
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Listen, "listen", config.DefaultListen, "address to listen on; port 0 takes a free one")
	f.StringVar(&c.PublicURL, "public-url", "", "url at which others reach the host (default: where it listens)")
	f.StringArrayVar(&c.AllowOrigin, "allow-origin", nil, "origin that browsers may call the API from; may be repeated")
	f.StringVar(&c.TLSCert, "tls-cert", "", "certificate file")
	f.StringVar(&c.TLSKey, "tls-key", "", "key file of the certificate")
	f.BoolVar(&c.AllowPlainPublic, "allow-plain-public", false, "allow an address that other machines reach without TLS")
	f.BoolVar(&c.NoQueryToken, "no-query-token", false, "refuse adapters' tokens in the url")
	f.StringVar(&c.Plugins, "plugins", config.DefaultPlugins, "file of the adapters that the host runs")
	f.BoolVar(&c.RequireChecksums, "require-checksums", false, "refuse to run a plugin whose program is not pinned by sha256")
	f.StringVar(&c.MaxStorage, "max-storage", envOr("PONTOON_MAX_STORAGE", "0"), "delete the oldest messages while database and attachments take more than this, such as 10GiB (PONTOON_MAX_STORAGE); 0 = never")
	f.BoolVar(&c.NoShim, "no-shim", false, "run plugins as on systems other than Linux: for tests")
	_ = f.MarkHidden("no-shim")
	f.StringVar(&profiles, "profile", "", "directory for a profile of processor time and one of allocations, written at the end: for developers")
	_ = f.MarkHidden("profile")
	c.BridleSecret, c.BridleAPIKey = os.Getenv("PONTOON_BRIDLE_JWT_SECRET"), os.Getenv("PONTOON_BRIDLE_API_KEY")
	f.BoolVar(&c.Verbose, "verbose", false, "log debug lines too")
	return cmd
}

// serve wires the packages together and runs them until ctx ends.
func serve(ctx context.Context, c config.Serve, cmd *cobra.Command) error {
	level := slog.LevelInfo
	if c.Verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))

	limit, err := c.StorageLimit()
	if err != nil {
		return err
	}
	st, err := openStore(ctx, c.Data, store.Options{Log: log, MaxBytes: limit, Names: attach.Names})
	if err != nil {
		return err
	}
	defer func() {
		if err := st.Close(); err != nil {
			log.Error("store not closed cleanly", "error", err)
		}
	}()
	keys, err := auth.OpenKeys(c.Data)
	if err != nil {
		return err
	}
	ln, url, err := listen(ctx, c)
	if err != nil {
		return err
	}
	if c.PublicURL != "" {
		url = c.PublicURL
	}
	files, err := attach.Open(c.Data, attach.Options{
		Base: func() string { return url }, Log: log, Named: st.Named,
		Room: func(bytes int64) error { return store.RoomFor(c.Data, bytes) },
	})
	if err != nil {
		return err
	}
	defer func() { _ = files.Close() }()
	st.SetFiles(files)
	defer st.SetFiles(nil)
	roster := agent.NewRoster(log)
	h := hub.New(hub.Options{Store: st, Attachments: files, Commands: command.New(), Log: log, Agents: roster})
	defer roster.Close()
	defer h.Close()
	gate := auth.NewGate(st, nil)
	who, err := openAgents(ctx, c, st, h, gate, roster, url, log)
	if err != nil {
		return err
	}
	defer who.close()
	if n, err := h.Recover(ctx); err != nil {
		return fmt.Errorf("hand over open messages: %w", err)
	} else if n > 0 {
		log.Info("open messages handed over again", "count", n)
	}
	front, err := openFronts(ctx, c, st, files, h, who.bridles, log)
	if err != nil {
		return err
	}
	defer front.close()
	slots := bridge.New(h, gate, bridge.Options{Log: log})
	plugins, err := newSupervisor(c, st, h, slots, log)
	if err != nil {
		return err
	}
	streams, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	srv := newServer(api.New(streams, api.Options{
		Store: st, Attachments: files, Hub: h, Slots: slots, AgentSockets: who.sockets, Agents: roster, Plugins: plugins, Keys: keys, Gate: gate,
		AGUI: front.runs, Bridle: front.browsers, SocketIO: front.io,
		Assets: agent.Assets(), Log: log, Version: version, Now: time.Now,
		Ready: st.Writable, Origins: c.AllowOrigin, RefuseQueryToken: c.NoQueryToken,
	}), log)
	fmt.Fprintf(cmd.OutOrStdout(), "Pontoon %s listens on %s\nThe admin key is in %s\n", version, url, filepath.Join(c.Data, auth.KeyFile))
	run := services{log, srv, ln, st, gate, slots, who, front, plugins, files, endStreams}
	return advise(run.serve(ctx), c.Data)
}

func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// openStore opens the database, after a backup if it must be migrated. If it is
// damaged the error names what to restore.
func openStore(ctx context.Context, dir string, o store.Options) (*store.Store, error) {
	if err := backup.CutOff(dir); err != nil {
		return nil, err
	}
	o.BackUp = func(ctx context.Context, schema int64) error {
		file, err := backup.BeforeMigration(ctx, dir, schema)
		if err == nil {
			o.Log.Info("database backed up before its schema is changed", "schema", schema, "file", file)
		}
		return err
	}
	st, err := store.Open(ctx, dir, o)
	return st, advise(err, dir)
}

// advise tells of damage what can be done about it.
func advise(err error, dir string) error {
	if !errors.Is(err, store.ErrCorrupt) {
		return err
	}
	if newest, ok := backup.Newest(dir); ok {
		return fmt.Errorf("%w: restore the newest backup, of %s: pontoon restore %s --data %s", err, newest.At.Format(time.RFC3339), newest.File, dir)
	}
	return fmt.Errorf("%w: restore a backup: pontoon restore FILE --data %s (none is known here)", err, dir)
}

// newSupervisor reads plugins.yaml and makes what will run them.
func newSupervisor(c config.Serve, st *store.Store, h *hub.Hub, slots *bridge.Slots, log *slog.Logger) (*supervisor.Supervisor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	return supervisor.New(supervisor.Options{
		Store: st, Hub: h, Slots: slots, Load: loader(c), Self: self, Data: c.Data, Version: version,
		RequireSums: c.RequireChecksums, NoShim: c.NoShim, Log: log,
		OnState: func(st supervisor.Status) { h.Events.PluginState(st.Name, string(st.State), st.Reason) },
	})
}

// services are what a host runs until it stops.
type services struct {
	log        *slog.Logger
	srv        *http.Server
	ln         net.Listener
	store      *store.Store
	gate       *auth.Gate
	slots      *bridge.Slots
	agents     *agents
	fronts     *fronts
	plugins    *supervisor.Supervisor
	files      *attach.Store
	endStreams func() // ends the API's long answers
}

// serve runs until ctx ends or a service fails, then drains: plugins end in
// peace, no new requests, adapters told to come back later, what was accepted
// written.
func (s *services) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var rest, plugins sync.WaitGroup
	start := func(wg *sync.WaitGroup, name string, serve func(context.Context) error) {
		wg.Go(func() {
			if err := serve(ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	start(&rest, "storage", s.store.Serve)
	start(&rest, "token use", s.gate.Serve)
	start(&rest, "pulse", s.slots.Serve)
	start(&rest, "pulse of agents", s.agents.sockets.Serve)
	start(&rest, "agents of Bridle", s.agents.bridles.Serve)
	start(&rest, "browsers of Bridle", s.fronts.browsers.Serve)
	start(&rest, "socket.io", s.fronts.io.Serve)
	start(&rest, "attachments", s.files.Serve)
	start(&rest, "heap", serveHeap)
	start(&plugins, "plugins", s.plugins.Serve)
	start(&rest, "http", func(context.Context) error {
		if err := s.srv.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	rest.Go(func() { reloadOnHangup(ctx, s.plugins, s.log) })
	<-ctx.Done()
	s.log.Info("stopping")
	plugins.Wait() // while their last words can still be taken
	s.fronts.runs.Close()
	s.endStreams()
	s.slots.Close()
	s.agents.sockets.Close()
	s.fronts.browsers.Close()
	s.fronts.io.Close()
	deadline, done := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer done()
	if err := s.srv.Shutdown(deadline); err != nil {
		s.log.Warn("requests cut off", "error", err)
		_ = s.srv.Close()
	}
	rest.Wait()
	s.log.Info("stopped")
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// listen opens the socket and says at which url it is reached.
func listen(ctx context.Context, c config.Serve) (net.Listener, string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, "", err
	}
	scheme := "http"
	if c.TLSCert != "" {
		cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			_ = ln.Close()
			return nil, "", fmt.Errorf("load TLS certificate: %w", err)
		}
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
		scheme = "https"
	}
	host, _, _ := net.SplitHostPort(c.Listen)
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			host = "127.0.0.1"
		}
	}
	return ln, scheme + "://" + net.JoinHostPort(strings.Trim(host, "[]"), port), nil
}
