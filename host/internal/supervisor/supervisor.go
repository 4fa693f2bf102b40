// Package supervisor runs adapters as processes of their own: it starts them,
// watches them, restarts them, and lets none of them harm the host or another.
// It is the only user of go-plugin in the host, but for measurements.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/thejerf/suture/v4"

	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/child"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
)

// Slots is where a plugin's stream goes once it is up.
type Slots interface {
	Start(c transport.Conn, from bridge.Origin)
}

// Timing holds what tests want shorter.
type Timing struct {
	Start       time.Duration // process started → Attach; all of it
	PingEvery   time.Duration
	PingTimeout time.Duration // without an answer for so long it is hung
	Grace       time.Duration // asked to stop → killed
	Window      time.Duration // in which failures are counted for quarantine
	Settled     time.Duration // what ran for so long starts again at the first backoff
}

// DefaultTiming is what the documentation promises.
var DefaultTiming = Timing{
	Start: 15 * time.Second, PingEvery: 2 * time.Second, PingTimeout: 8 * time.Second,
	Grace: 8 * time.Second, Window: 10 * time.Minute, Settled: time.Minute,
}

// Options of a supervisor. All but Private, Files, Timing, OnState, RequireSums and NoShim are needed.
type Options struct {
	Store       Ledger
	Hub         *hub.Hub
	Slots       Slots
	Load        func() ([]config.Plugin, error) // reads plugins.yaml
	Self        string                          // path of the host's own binary
	Data        string                          // the host's data directory, which is its alone
	Private     []string                        // files beside it that are the host's alone, such as keys
	Files       []string                        // directories whose files may be sent by their paths: every plugin may read them
	Version     string
	RequireSums bool
	NoShim      bool // run plugins as on systems where there is no shim
	Log         *slog.Logger
	OnState     func(name, state, reason string) // told of every new state; must not block
	Timing      Timing                           // zero = DefaultTiming
}

// Supervisor owns the plugins of one host.
type Supervisor struct {
	Options
	tree  *suture.Supervisor
	data  string // Data, absolute
	run   string // directory of what the plugins run from
	group string // names what is of this data directory's hosts

	reload  sync.Mutex // one Reload at a time; guards running
	running bool       // the first one is done

	mu      sync.Mutex // guards what follows
	plugins map[string]*service
	order   []string
	logs    map[string]*logs // kept when an entry goes and comes back
}

// New makes a supervisor of what plugins.yaml says now; nothing is started
// before Serve.
func New(o Options) (*Supervisor, error) {
	if o.Timing == (Timing{}) {
		o.Timing = DefaultTiming
	}
	s := &Supervisor{Options: o, plugins: map[string]*service{}, logs: map[string]*logs{}}
	data, err := filepath.Abs(o.Data)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	s.data, s.group = data, groupOf(data)
	if s.run, err = runDir(data, s.group); err != nil {
		return nil, err
	}
	if err := child.Sweep(s.group); err != nil {
		o.Log.Warn("what an earlier host left behind was not swept", "error", err)
	}
	s.tree = suture.New("plugins", suture.Spec{
		EventHook: func(e suture.Event) { o.Log.Error("plugin service failed", "event", e.String()) },
		// A service stops when its process is gone, which is bounded by Grace
		// and by what child promises of Kill.
		Timeout: o.Timing.Grace + killTimeout,
	})
	_, err = s.Reload(context.Background())
	return s, err
}

// Serve runs the plugins until ctx ends, and returns when all are gone.
func (s *Supervisor) Serve(ctx context.Context) error {
	err := s.tree.Serve(ctx)
	s.clean()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Settled reports whether every plugin is running, disabled, quarantined, or
// has failed its first attempt; else it names one that is not.
func (s *Supervisor) Settled() (ok bool, waiting string) {
	for _, v := range s.services() {
		if !v.settled() {
			return false, v.entry().Name
		}
	}
	return true, ""
}

// Reload reads plugins.yaml again and starts, stops and restarts what changed.
// An error changes nothing.
func (s *Supervisor) Reload(ctx context.Context) (plugin.Changes, error) {
	s.reload.Lock()
	defer s.reload.Unlock()
	entries, err := s.Load()
	if err != nil {
		return plugin.Changes{}, err
	}
	if s.running {
		if err := s.checkAgents(entries); err != nil {
			return plugin.Changes{}, err
		}
	}
	c, stop, start := s.compare(ctx, entries)
	var stopping sync.WaitGroup
	order := make([]string, len(entries))
	for i, p := range entries {
		order[i] = p.Name
	}
	for _, v := range stop {
		stopping.Go(func() {
			s.stop(v)
			if !slices.Contains(order, v.entry().Name) { // else it is seen until its successor takes its place
				s.forget(v)
			}
		})
	}
	stopping.Wait()
	for _, p := range start {
		s.add(ctx, p)
	}
	s.running = true
	s.mu.Lock()
	s.order = order
	s.mu.Unlock()
	s.Log.Info("plugins.yaml read", "added", c.Added, "removed", c.Removed, "changed", c.Changed, "unchanged", len(c.Unchanged))
	return c, nil
}

// compare says what a new file changes, and adopts what needs no restart.
func (s *Supervisor) compare(ctx context.Context, entries []config.Plugin) (c plugin.Changes, stop []*service, start []config.Plugin) {
	old := map[string]*service{}
	for _, v := range s.services() {
		old[v.entry().Name] = v
	}
	for _, p := range entries {
		v := old[p.Name]
		delete(old, p.Name)
		if v == nil {
			c.Added = append(c.Added, p.Name)
			start = append(start, p)
			continue
		}
		before := v.entry()
		if before.Equal(p) {
			c.Unchanged = append(c.Unchanged, p.Name)
			v.adopt(ctx, p) // its line may be another now
			continue
		}
		c.Changed = append(c.Changed, p.Name)
		if before.SameProcess(p) && before.Enabled == p.Enabled {
			v.adopt(ctx, p)
			continue
		}
		stop = append(stop, v)
		start = append(start, p)
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		c.Removed = append(c.Removed, name)
		stop = append(stop, old[name])
	}
	return c, stop, start
}

func (s *Supervisor) add(ctx context.Context, p config.Plugin) {
	s.mu.Lock()
	l := s.logs[p.Name]
	if l == nil {
		name := p.Name
		l = newLogs(time.Now().UnixMicro(), func(line plugin.Line) {
			s.Log.Info("plugin wrote", "plugin", name, "stream", line.Stream, "line", line.Text)
		})
		s.logs[name] = l
	}
	l.hide(p.Hidden)
	v := newService(s, p, l)
	s.plugins[p.Name] = v
	if !slices.Contains(s.order, p.Name) {
		s.order = append(s.order, p.Name)
	}
	s.mu.Unlock()
	v.adopt(ctx, p)
	v.token = s.tree.Add(v)
}

// stop stops a plugin and waits until it is gone.
func (s *Supervisor) stop(v *service) {
	if err := s.tree.RemoveAndWait(v.token, s.Timing.Grace+killTimeout); err != nil && !errors.Is(err, suture.ErrSupervisorNotStarted) {
		s.Log.Error("plugin not stopped cleanly", "plugin", v.entry().Name, "error", err)
	}
}

func (s *Supervisor) forget(v *service) {
	name := v.entry().Name
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plugins[name] == v {
		delete(s.plugins, name)
	}
}

// services are the plugins in the file's order.
func (s *Supervisor) services() []*service {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*service, 0, len(s.plugins))
	for _, name := range s.order {
		if v := s.plugins[name]; v != nil {
			out = append(out, v)
		}
	}
	return out
}

func (s *Supervisor) find(name string) (*service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.plugins[name]; v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("%w: %q", plugin.ErrUnknown, clip(name))
}
