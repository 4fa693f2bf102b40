package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
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
	"github.com/pontoon-bridge/pontoon/host/internal/connlog"
	"github.com/pontoon-bridge/pontoon/host/internal/console"
	"github.com/pontoon-bridge/pontoon/host/internal/disk"
	"github.com/pontoon-bridge/pontoon/host/internal/framelog"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/logbound"
	"github.com/pontoon-bridge/pontoon/host/internal/metrics"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
	"github.com/pontoon-bridge/pontoon/host/internal/secrets"
	"github.com/pontoon-bridge/pontoon/host/internal/socketio"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/child"
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
			c.Data, c.MasterKey = o.data, o.masterKey()
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
	f.StringVar(&c.MetricsListen, "metrics-listen", "", "loopback address where Prometheus reads /metrics without a key, such as 127.0.0.1:9464")
	f.StringVar(&c.PublicURL, "public-url", "", "url at which others reach the host (default: where it listens)")
	f.StringArrayVar(&c.AllowOrigin, "allow-origin", nil, "origin that browsers may call the API from; may be repeated")
	f.StringVar(&c.TLSCert, "tls-cert", "", "certificate file")
	f.StringVar(&c.TLSKey, "tls-key", "", "key file of the certificate")
	f.BoolVar(&c.AllowPlainPublic, "allow-plain-public", false, "allow an address that other machines reach without TLS")
	f.StringArrayVar(&c.TrustedProxy, "trusted-proxy", listOr("PONTOON_TRUSTED_PROXY"), "address or network of a proxy that says who a client is; may be repeated (PONTOON_TRUSTED_PROXY, separated by commas)")
	f.IntVar(&c.MaxConns, "max-connections", netguard.DefaultMaxConns, "connections in all")
	f.IntVar(&c.MaxConnsEach, "max-connections-per-address", netguard.DefaultMaxPerAddress, "connections of one address, or IPv6 /64, that is neither this machine nor a trusted proxy")
	f.BoolVar(&c.NoQueryToken, "no-query-token", false, "refuse adapters' tokens in the url")
	o.masterKeyFlag(cmd)
	f.BoolVar(&c.NoFrames, "no-frames", false, "don't keep the last frames of each adapter in memory for who debugs it")
	f.StringVar(&c.Plugins, "plugins", config.DefaultPlugins, "file of the adapters that the host runs")
	f.BoolVar(&c.RequireChecksums, "require-checksums", false, "refuse to run a plugin whose program is not pinned by sha256")
	f.StringVar(&c.MaxStorage, "max-storage", envOr("PONTOON_MAX_STORAGE", "0"), "delete the oldest messages while database and attachments take more than this, such as 10GiB (PONTOON_MAX_STORAGE); 0 = never")
	f.StringArrayVar(&c.Files, "files", listOr("PONTOON_FILES"), "directory whose files may be sent by their paths, by whoever may send; may be repeated (PONTOON_FILES, separated by commas)")
	f.BoolVar(&c.NoShim, "no-shim", false, "run plugins as on systems other than Linux: for tests")
	_ = f.MarkHidden("no-shim")
	f.StringVar(&profiles, "profile", "", "directory for a profile of processor time and one of allocations, written at the end: for developers")
	_ = f.MarkHidden("profile")
	c.BridleSecret, c.BridleAPIKey = secretOf("PONTOON_BRIDLE_JWT_SECRET"), secretOf("PONTOON_BRIDLE_API_KEY")
	f.BoolVar(&c.Verbose, "verbose", false, "log debug lines too")
	return cmd
}

// serve wires the packages together and runs them until ctx ends.
func serve(ctx context.Context, c config.Serve, cmd *cobra.Command) error {
	child.Guard() // before there is anything to be seen
	log := newLog(cmd.ErrOrStderr(), c.Verbose)
	network, err := openNetwork(ctx, c, log) // first: a host that can't listen leaves nothing behind
	if err != nil {
		return err
	}
	defer func() { _ = network.listener.Close() }() // closed already, if it served
	roster := agent.NewRoster(log)
	hello := greeting{dir: c.Data}
	st, err := openStore(ctx, c, sealing(c.MasterKey, roster, hello.madeKey), log)
	if err != nil {
		return err
	}
	defer closeStore(st, log)
	keys, err := auth.OpenKeys(c.Data)
	if err != nil {
		return err
	}
	url := network.url
	files, err := openFiles(c, url, st, log)
	if err != nil {
		return err
	}
	defer func() { _ = files.Close() }()
	st.SetFiles(files)
	defer st.SetFiles(nil)
	h := hub.New(hub.Options{Store: st, Attachments: files, Commands: command.New(), Log: log, Agents: roster})
	defer roster.Close()
	defer h.Close()
	gate := auth.NewGate(st, nil)
	account := newAccount(c.Data, url, st, network.failures, gate)
	met := connlog.New(st, log, time.Now)
	who, err := openAgents(ctx, c, st, h, gate, network.failures, roster, url, met, log)
	if err != nil {
		return err
	}
	defer who.close()
	if err := handOver(ctx, h, log); err != nil {
		return err
	}
	list := paging.New(st) // one: what all requests read at once is bounded
	bodies := intake.New(log)
	front, err := openFronts(ctx, c, st, files, h, list, bodies, who.bridles, network.failures, log)
	if err != nil {
		return err
	}
	defer front.close()
	slots := bridge.New(bridge.Local(h), gate, bridge.Options{Failures: network.failures, Log: log, Frames: book(c), Note: met.Note})
	plugins, err := newSupervisor(ctx, c, st, h, slots, log)
	if err != nil {
		return err
	}
	seen, err := openWatch(ctx, c, metrics.Options{
		Store: st, Hub: h, Failures: &gate.Failures, Plugins: plugins, Attachments: files.Bytes, Log: log,
		Connections: map[string]func() int{"adapter": slots.Len, "agent": who.sockets.Len, "socketio": front.io.Len},
	})
	if err != nil {
		return err
	}
	defer seen.close()
	ending := new(atomic.Bool)
	streams, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	operate := api.New(streams, api.Options{
		Store: st, Pages: list, Bodies: bodies, Attachments: files, Hub: h, Slots: slots, AgentSockets: who.sockets, Agents: roster, Plugins: plugins, Keys: keys, Gate: gate, Account: account, Failures: network.failures,
		Fronts: front.ends(), Handlers: map[string]http.Handler{socketio.Path: front.io},
		Metrics: seen, Minutes: seen.minutes.Minutes, Assets: agent.Assets(), Log: log, Version: version, Now: time.Now,
		Ready: st.Writable, Ending: ending.Load, Origins: c.AllowOrigin, RefuseQueryToken: c.NoQueryToken,
	})
	srv := network.guard.Server(surface(operate, console.Options{URL: url, KeyFile: absolute(filepath.Join(c.Data, auth.KeyFile)), Log: log, Setup: network.links(account)}, gate, network.failures, seen))
	link, err := account.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = account.Close() }() // the link is worthless anyway: the code dies with the process
	hello.url, hello.link, hello.metrics = url, link, seen.url()
	hello.print(cmd.OutOrStdout())
	run := services{log, srv, network, st, h, gate, slots, who, front, plugins, files, seen, met, endStreams, ending}
	return advise(run.serve(ctx), c.Data)
}

func closeStore(st *sqlite.Store, log *slog.Logger) {
	if err := st.Close(); err != nil {
		log.Error("store not closed cleanly", "error", err)
	}
}

// newLog makes the host's log, one line an entry. What others say in it is bounded.
func newLog(out io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(logbound.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})))
}

// privateFiles are the host's own beside its data directory: neither sent, nor
// readable for plugins.
func privateFiles(c config.Serve) []string {
	return slices.DeleteFunc([]string{c.Plugins, c.TLSKey, c.MasterKey.File}, func(name string) bool { return name == "" })
}

// openFiles opens the attachments, which are reached at url.
func openFiles(c config.Serve, url string, st *sqlite.Store, log *slog.Logger) (*attach.Store, error) {
	return attach.Open(c.Data, attach.Options{
		Base: func() string { return url }, Log: log, Named: st.Named, Files: c.Files, Private: privateFiles(c),
		Room: func(bytes int64) error { return disk.RoomForFiles(c.Data, bytes) },
	})
}

// handOver gives agents what they had not answered when the host stopped.
func handOver(ctx context.Context, h *hub.Hub, log *slog.Logger) error {
	n, err := h.Recover(ctx)
	if err != nil {
		return fmt.Errorf("hand over open messages: %w", err)
	}
	if n > 0 {
		log.Info("open messages handed over again", "count", n)
	}
	return nil
}

// book keeps the frames of adapters, if it may; else nil.
func book(c config.Serve) *framelog.Book {
	if c.NoFrames {
		return nil
	}
	return framelog.NewBook()
}

// newAccount makes the operator's account.
func newAccount(dir, url string, st *sqlite.Store, limiter auth.Limiter, gate *auth.Gate) *auth.Account {
	return auth.NewAccount(auth.AccountOptions{
		Store: st, Dir: dir, Limiter: limiter, Failures: &gate.Failures, Now: time.Now,
		URL: func(code string) string { return url + console.Path + "setup?code=" + code },
	})
}

// absolute is path from the root, if that can be known.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// surface puts the console beside the API, and who is logged in before both.
func surface(operate http.Handler, o console.Options, gate *auth.Gate, failures *netguard.Failures, seen *watch) http.Handler {
	o.API, o.Version, o.Now = operate, version, time.Now
	mux := http.NewServeMux()
	mux.Handle(console.Path, seen.Count(console.New(o)))
	mux.Handle("GET /{$}", http.RedirectHandler(console.Path, http.StatusSeeOther))
	mux.Handle("/", operate)
	return netguard.Sessions(gate, failures, o.Log, mux)
}

// hostKeys are files of the data directory that only a host which was there before
// leaves.
var hostKeys = []string{auth.KeyFile, secrets.FileName, attach.KeyFile}

// checkPlace refuses a data directory out of which a database was taken.
func checkPlace(dir string) error {
	if err := backup.CutOff(sqlite.Offline{}, dir); err != nil {
		return err
	}
	return sqlite.CheckThere(dir, hostKeys)
}

// openStore opens the database, after a backup if it must be migrated. If it is
// damaged the error names what to restore.
func openStore(ctx context.Context, c config.Serve, sealing sqlite.Sealing, log *slog.Logger) (*sqlite.Store, error) {
	limit, err := c.StorageLimit()
	if err != nil {
		return nil, err
	}
	if err := checkPlace(c.Data); err != nil {
		return nil, err
	}
	backUp := func(ctx context.Context, schema int64) error {
		file, err := backup.BeforeMigration(ctx, sqlite.Offline{}, c.Data, schema)
		if err == nil {
			log.Info("database backed up before its schema is changed", "schema", schema, "file", file)
		}
		return err
	}
	st, err := sqlite.Open(ctx, c.Data, sqlite.Options{Log: log, MaxBytes: limit, Names: attach.Names, Keys: hostKeys, Sealing: sealing, BackUp: backUp})
	return st, advise(err, c.Data)
}

// advise tells of damage what can be done about it.
func advise(err error, dir string) error {
	if !errors.Is(err, ledger.ErrCorrupt) {
		return err
	}
	if newest, ok := backup.Newest(dir); ok {
		return fmt.Errorf("%w: restore the newest backup, of %s: pontoon restore %s --data %s", err, newest.At.Format(time.RFC3339), newest.File, dir)
	}
	return fmt.Errorf("%w: restore a backup: pontoon restore FILE --data %s (none is known here)", err, dir)
}

// newSupervisor reads plugins.yaml and makes what will run them.
func newSupervisor(ctx context.Context, c config.Serve, st *sqlite.Store, h *hub.Hub, slots *bridge.Slots, log *slog.Logger) (*supervisor.Supervisor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	return supervisor.New(supervisor.Options{
		Store: st, Hub: h, Slots: slots, Load: loader(ctx, c, st), Self: self, Data: c.Data, Private: privateFiles(c), Files: c.Files, Version: version,
		RequireSums: c.RequireChecksums, NoShim: c.NoShim, Log: log,
		OnState: h.Events.PluginState,
	})
}

// services are what a host runs until it stops.
type services struct {
	log        *slog.Logger
	srv        *http.Server
	network    *network
	store      *sqlite.Store
	hub        *hub.Hub
	gate       *auth.Gate
	slots      *bridge.Slots
	agents     *agents
	fronts     *fronts
	plugins    *supervisor.Supervisor
	files      *attach.Store
	seen       *watch
	met        *connlog.Log
	endStreams func() // ends the API's long answers
	ending     *atomic.Bool
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
	start(&rest, "certificate", s.network.serve)
	start(&rest, "metrics", s.seen.serve)
	start(&rest, "statistics", s.seen.minutes.Serve)
	start(&rest, "history of connections", s.met.Serve)
	start(&plugins, "plugins", s.plugins.Serve)
	start(&rest, "http", func(context.Context) error {
		if err := s.srv.Serve(s.network.listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	rest.Go(func() { reloadOnHangup(ctx, s.plugins, s.network, s.log) })
	manager := openNotifier(s.log)
	manager.ready()
	rest.Go(func() { manager.watchdog(ctx, s.alive) })
	<-ctx.Done()
	s.ending.Store(true)
	manager.stopping()
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
	s.seen.minutes.Close(deadline)
	s.met.Close(deadline)
	s.log.Info("stopped")
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// alive returns if nothing hangs that all messages pass; what the disk says does
// not count.
func (s *services) alive() {
	_ = s.store.Writable()
	s.hub.Tallies()
}
