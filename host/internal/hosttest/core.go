package hosttest

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// Core is a store with a hub on it: a host that nobody can reach, for tests that are
// a port, an agent or an operator themselves.
type Core struct {
	T *testing.T // the test that made it

	Dir    string // the data directory
	Shared string // a directory whose files may be sent by their paths

	Store  *sqlite.Store
	Files  *attach.Store
	Roster *agent.Roster
	Hub    *hub.Hub
	Log    *Recorder

	addr string // where a host is reached, once it is
}

// Open makes a core that ends with the test.
func Open(t *testing.T, change ...func(*Setup)) *Core {
	t.Helper()
	s := settings(t, change)
	c := open(t, s)
	if err := c.Roster.Load(t.Context(), c.Store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

func settings(t *testing.T, change []func(*Setup)) *Setup {
	s := &Setup{Agents: map[string]hub.Agent{}, Typing: time.Hour}
	for _, c := range change {
		c(s)
	}
	if s.Dir == "" {
		s.Dir = t.TempDir()
	}
	if s.Bridge.SilenceTimeout == 0 { // who does not read while the test does something else is there still
		s.Bridge.SilenceTimeout = 10 * await.Limit
	}
	if s.Bridge.RegisterTimeout == 0 { // a slow machine is no slow adapter
		s.Bridge.RegisterTimeout = await.Limit
	}
	if s.Steady == nil {
		s.Steady = new(SteadyClock)
	}
	if s.Agents["echo"] == nil {
		s.Agents["echo"] = &agent.Echo{Assets: "http://pontoon.test/assets/", Pause: 100 * time.Millisecond}
	}
	return s
}

// open makes a core whose roster is empty.
func open(t *testing.T, s *Setup) *Core {
	t.Helper()
	c := &Core{T: t, Dir: s.Dir, Shared: t.TempDir(), Log: new(Recorder)}
	log := slog.New(c.Log)
	s.Store.Log, s.Bridge.Log = log, log
	if s.Store.Names == nil {
		s.Store.Names = attach.Names
	}
	c.Roster = agent.NewRoster(log)
	if s.Whole {
		s.prepare(c.Roster)
	}
	var err error
	if c.Store, err = sqlite.Open(t.Context(), blank.Dir(t, s.Dir), s.Store); err != nil {
		t.Fatal(err)
	}
	if c.Files, err = attach.Open(s.Dir, attach.Options{Base: func() string { return "http://" + c.addr }, Log: log, Named: c.Store.Named, Files: []string{c.Shared}}); err != nil {
		t.Fatal(err)
	}
	c.Store.SetFiles(c.Files)
	c.Roster.Register("echo", agent.Kind{Make: func(ledger.Agent) (hub.Agent, error) { return &agent.Echo{}, nil }})
	for name, k := range s.Kinds {
		c.Roster.Register(name, k)
	}
	var store hub.Ledger = c.Store
	if s.Ledger != nil {
		store = s.Ledger(store)
	}
	c.Hub = hub.New(hub.Options{
		Store: store, Attachments: c.Files, Agents: both{s.Agents, c.Roster}, Commands: command.New(), Log: log,
		Steady: s.Steady.Now, After: s.Steady.After, Now: s.Store.Now,
		TypingDelay: s.Typing, RecoverGrace: s.Grace, AckTimeout: s.Ack, TTL: s.TTL, Rate: s.Rate, AwayRetry: s.Retry,
	})
	return c
}

// close ends the core and waits for it.
func (c *Core) close() {
	await.Done(c.T, "the hub ends: does an agent of the test still wait?", c.Hub.Close)
	c.Roster.Close()
	c.Store.SetFiles(nil)
	if err := errors.Join(c.Store.Close(), c.Files.Close()); err != nil {
		c.T.Error(err)
	}
}

// both is the roster of rows with agents that a test makes beside it.
type both struct {
	hub.Fixed
	rows *agent.Roster
}

func (b both) Agent(name string) (hub.Agent, bool) {
	if a, ok := b.Fixed[name]; ok {
		return a, true
	}
	return b.rows.Agent(name)
}

func (b both) Names() []string {
	all := append(b.Fixed.Names(), b.rows.Names()...)
	slices.Sort(all)
	return slices.Compact(all)
}
