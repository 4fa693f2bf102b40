package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
)

// Plugins are the adapters that the host runs as processes. Errors are those of
// package plugin, and those that say what was found.
type Plugins interface {
	pluginsSeen
	pluginsRun
	pluginsFile
}

// pluginsSeen is what is known of plugins.
type pluginsSeen interface {
	List() []plugin.Status // in the order of plugins.yaml
	Status(name string) (plugin.Status, error)
	// Logs returns up to n of the newest kept lines after seq, oldest first, and a
	// channel that is closed when there are more.
	Logs(name string, after int64, n int) ([]plugin.Line, <-chan struct{}, error)
	// Users names the plugins that use each secret of the secret store.
	Users() map[string][]string
}

// pluginsRun starts and stops plugins.
type pluginsRun interface {
	Restart(name string) error
	Enable(ctx context.Context, name string) error
	Disable(ctx context.Context, name string) error
	// Changed is told of every change of the row of a plugin's channel.
	Changed(row ledger.Channel)
	// Settle waits until what was last asked of the plugin has come about, or ctx ends.
	Settle(ctx context.Context, name string)
	// Settled reports whether no plugin's first start is under way; else it names one.
	Settled() (ok bool, waiting string)
}

// pluginsFile is what plugins.yaml and the programs that it names say now.
type pluginsFile interface {
	Reload(ctx context.Context) (plugin.Changes, error)
	// Verify checks a plugin's program as a start would: nil if it may run.
	Verify(name string) (found string, err error)
}

// Plugin is one adapter of plugins.yaml, its process and its channel.
type Plugin struct {
	Name          string   `json:"name"`
	State         string   `json:"state" enum:"disabled,starting,running,backoff,quarantined,stopping"`
	Reason        string   `json:"reason" doc:"Why it is not running, or last was not"`
	Since         Time     `json:"since" doc:"When the state began"`
	PID           int      `json:"pid" doc:"0 = no process"`
	Restarts      int      `json:"restarts" doc:"Since the host started"`
	NextStartAt   *Time    `json:"next_start_at" nullable:"true"`
	Command       []string `json:"command" doc:"As the file has it: nothing filled in"`
	Pinned        bool     `json:"pinned" doc:"Whether the file has its sha256"`
	SHA256        string   `json:"sha256" doc:"Of what runs, or ran last, if pinned"`
	MemoryLimit   int64    `json:"memory_limit" doc:"Bytes"`
	LimitBy       string   `json:"limit_by" doc:"What enforces the limit: cgroup, rlimit or none; empty = it never ran"`
	ProcessLimit  int      `json:"process_limit" doc:"Processes and threads"`
	Sandbox       string   `json:"sandbox" doc:"How tight it is: full, partial, none (the kernel has no Landlock), off; empty = it never ran"`
	SandboxWanted string   `json:"sandbox_wanted" enum:"auto,require,off" doc:"What its entry says"`
	SandboxOpen   []string `json:"sandbox_open" doc:"What the sandbox leaves open"`
	Landlock      int      `json:"landlock" doc:"Version of the kernel's Landlock that keeps it; 0 = none"`
	User          string   `json:"user" doc:"Whom it runs as; empty = the host's user"`
	Source        string   `json:"source" doc:"FILE:LINE of its entry"`
	ChannelID     string   `json:"channel_id" doc:"Empty while it has none"`
	Health        Health   `json:"health"`
}

type pluginList struct {
	Plugins    []Plugin `json:"plugins"`
	NextCursor string   `json:"next_cursor,omitempty"`
}

// PluginRef names a plugin.
type PluginRef struct {
	Name string `path:"name" maxLength:"64"`
}

// Reloaded is what reading plugins.yaml again changed, by name.
type Reloaded struct {
	Added     []string `json:"added"`
	Removed   []string `json:"removed"`
	Changed   []string `json:"changed"`
	Unchanged []string `json:"unchanged"`
}

// Verified is what a check of a plugin's program gave.
type Verified struct {
	OK     bool   `json:"ok"`
	Found  string `json:"found"`
	Reason string `json:"reason" doc:"Why it may not run"`
}

func (s *server) plugins() {
	if s.Plugins == nil {
		return
	}
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/plugins", "list-plugins", "Adapters of plugins.yaml, in its order", 200, 422)), s.listPlugins)
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/plugins/{name}", "get-plugin", "One plugin", 200, 404)), s.getPlugin)
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/plugins/{name}/logs", "list-plugin-logs", "Newest lines that a plugin wrote, oldest first; with Accept: text/event-stream or follow=true it goes on", 200, 404, 422)), s.pluginLogs)
	huma.Register(s.api, opens(auth.ScopeManage, byChannel, operation("POST", "/plugins/{name}/verify", "verify-plugin", "Check a plugin's program as a start would", 200, 404)), s.verifyPlugin)
	huma.Register(s.api, opens(auth.ScopeManage, wholeHost, operation("POST", "/plugins/_reload", "reload-plugins", "Read plugins.yaml again; an invalid file changes nothing", 200, 422)), s.reloadPlugins)
	for verb, op := range map[string]struct {
		about string
		do    func(context.Context, string) error
	}{
		"restart": {"Stop and start a plugin, also out of quarantine", func(_ context.Context, name string) error { return s.Plugins.Restart(name) }},
		"enable":  {"Start a plugin, also after restarts", s.Plugins.Enable},
		"disable": {"Stop a plugin, also after restarts", s.Plugins.Disable},
	} {
		huma.Register(s.api, opens(auth.ScopeManage, byChannel, operation("POST", "/plugins/{name}/"+verb, verb+"-plugin", op.about, 200, 404, 409)), s.operatePlugin(verb, op.do))
	}
}

func (s *server) showPlugin(ctx context.Context, st plugin.Status) (Plugin, error) {
	p := Plugin{
		Name: st.Name, State: string(st.State), Reason: st.Reason, Since: timeOf(st.Since), PID: st.Pid, Restarts: st.Restarts,
		NextStartAt: when(st.NextStart), Command: orEmpty(st.Command), Pinned: st.Pinned, SHA256: st.SHA256,
		MemoryLimit: st.Memory, LimitBy: st.LimitBy, ProcessLimit: st.Processes, Source: st.Source,
		Sandbox: st.Sandbox, SandboxWanted: st.Wanted, SandboxOpen: orEmpty(st.Open), Landlock: st.Landlock, User: st.User,
	}
	row, err := s.Store.Channel(ctx, st.Name)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && row.Kind != plugin.Kind {
		state := p.State
		p.Health.Process = &state
		return p, nil
	}
	if err != nil {
		return p, s.fault(err, "plugin "+st.Name)
	}
	shown, err := s.show(ctx, row)
	p.ChannelID, p.Health = shown.ID, shown.Health
	return p, err
}

func (s *server) listPlugins(ctx context.Context, in *Page) (*body[pluginList], error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	h := holderOf(ctx)
	all := slices.DeleteFunc(s.Plugins.List(), func(st plugin.Status) bool { return !s.seesNamed(ctx, h, st.Name) })
	from := min(int(after), len(all))
	part := all[from:min(from+in.Limit, len(all))]
	out := pluginList{Plugins: make([]Plugin, len(part))}
	for i, st := range part {
		if out.Plugins[i], err = s.showPlugin(ctx, st); err != nil {
			return nil, err
		}
	}
	if from+len(part) < len(all) {
		out.NextCursor = in.next(len(part), func() int64 { return int64(from + len(part)) })
	}
	return &body[pluginList]{out}, nil
}

func (s *server) getPlugin(ctx context.Context, in *PluginRef) (*body[Plugin], error) {
	if err := s.findPlugin(ctx, in.Name); err != nil {
		return nil, err
	}
	st, err := s.Plugins.Status(in.Name)
	if err != nil {
		return nil, s.pluginFault(err, in.Name)
	}
	shown, err := s.showPlugin(ctx, st)
	return &body[Plugin]{shown}, err
}

// findPlugin is nil if the plugin is there, and there for who makes the request.
func (s *server) findPlugin(ctx context.Context, name string) error {
	_, err := s.Plugins.Status(name)
	if err == nil && !s.seesNamed(ctx, holderOf(ctx), name) {
		err = plugin.ErrUnknown
	}
	if err != nil {
		return s.pluginFault(err, name)
	}
	return nil
}

// pluginFault turns the supervisor's errors into problems.
func (s *server) pluginFault(err error, name string) error {
	switch {
	case errors.Is(err, plugin.ErrUnknown):
		return huma.Error404NotFound("plugin " + clip(name) + ": not found in plugins.yaml")
	case errors.Is(err, plugin.ErrByFile), errors.Is(err, plugin.ErrDisabled):
		return huma.Error409Conflict("plugin " + name + ": " + err.Error())
	}
	return s.fault(err, "plugin "+name)
}

func (s *server) operatePlugin(verb string, do func(context.Context, string) error) func(context.Context, *PluginRef) (*body[Plugin], error) {
	return func(ctx context.Context, in *PluginRef) (*body[Plugin], error) {
		if err := s.findPlugin(ctx, in.Name); err != nil {
			return nil, err
		}
		if err := do(ctx, in.Name); err != nil {
			return nil, s.pluginFault(err, in.Name)
		}
		if verb == "restart" { // the others are changes of the channel, which are noted with it
			if err := s.Store.Note(ctx, s.by(ctx, "plugin.restart", in.Name, nil)); err != nil {
				return nil, s.fault(err, "audit log")
			}
		}
		return s.settledPlugin(ctx, in)
	}
}

// How long an answer waits for a plugin to stop or start, and how often it looks
// whether the stream of one that has stopped is gone too.
const (
	settleTime = 3 * time.Second
	settlePoll = 5 * time.Millisecond
)

// settledPlugin is getPlugin once what was asked of the plugin has come about; if
// that takes longer than settleTime, as it is then: stopping or starting.
func (s *server) settledPlugin(ctx context.Context, in *PluginRef) (*body[Plugin], error) {
	wait, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	s.Plugins.Settle(wait, in.Name)
	for {
		found, err := s.getPlugin(ctx, in)
		if err != nil || found.Body.State != string(plugin.Disabled) || !found.Body.Health.Attached {
			return found, err
		}
		select {
		case <-wait.Done():
			return found, nil
		case <-time.After(settlePoll):
		}
	}
}

func (s *server) verifyPlugin(ctx context.Context, in *PluginRef) (*body[Verified], error) {
	if err := s.findPlugin(ctx, in.Name); err != nil {
		return nil, err
	}
	found, err := s.Plugins.Verify(in.Name)
	if errors.Is(err, plugin.ErrUnknown) {
		return nil, s.pluginFault(err, in.Name)
	}
	v := Verified{OK: err == nil, Found: found}
	if err != nil {
		v.Reason = err.Error()
	}
	return &body[Verified]{v}, nil
}

func (s *server) reloadPlugins(ctx context.Context, _ *struct{}) (*body[Reloaded], error) {
	c, err := s.Plugins.Reload(context.WithoutCancel(ctx)) // half a reload would be worse
	if err != nil {
		var lines []error
		for line := range strings.Lines(err.Error()) {
			lines = append(lines, &huma.ErrorDetail{Message: strings.TrimSpace(line), Location: "plugins.yaml"})
		}
		return nil, quiet(http.StatusUnprocessableEntity, "plugins.yaml refused, nothing changed", lines...)
	}
	out := Reloaded{orEmpty(c.Added), orEmpty(c.Removed), orEmpty(c.Changed), orEmpty(c.Unchanged)}
	if err := s.Store.Note(ctx, s.by(ctx, "plugins.reload", "plugins.yaml", out)); err != nil {
		return nil, s.fault(err, "audit log")
	}
	return &body[Reloaded]{out}, nil
}

// owner is where plugins.yaml says that the channel is a plugin's; "" if it no
// longer does.
func (s *server) owner(row ledger.Channel) string {
	if s.Plugins == nil || row.Kind != plugin.Kind {
		return ""
	}
	st, err := s.Plugins.Status(row.Name)
	if err != nil {
		return ""
	}
	return st.Source
}

// process is the state of the channel's process; nil = the host runs none.
func (s *server) process(row ledger.Channel) *string {
	if s.Plugins == nil || row.Kind != plugin.Kind {
		return nil
	}
	st, err := s.Plugins.Status(row.Name)
	if err != nil {
		return nil
	}
	state := string(st.State)
	return &state
}

// pluginsSettled is nil once no plugin's first start is under way.
func (s *server) pluginsSettled() error {
	if s.Plugins == nil {
		return nil
	}
	if ok, waiting := s.Plugins.Settled(); !ok {
		return errors.New("plugins not settled: " + waiting + " is starting")
	}
	return nil
}
