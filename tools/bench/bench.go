// Package bench measures a host from outside, through its own protocol: what a
// message costs beside a bare WebSocket echo in the same round (Load), what an
// idle adapter costs (Idle), and whether what was answered survives a kill (Kill).
// Two measure a part alone: the store when much is stored (Deep), and a plugin's
// connection beside a bare gRPC stream (Streams).
package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Bounds of one run: load is for this machine, and ends.
const (
	maxConns    = 20_000
	maxRounds   = 1000
	maxDuration = 10 * time.Minute
	maxMessages = 10_000_000 // of one measurement
	maxRate     = 1_000_000
	maxAcks     = 64        // what the protocol allows
	maxSize     = 128 << 10 // an answer is longer, and must not be split
	maxInFlight = 512 << 10 // bytes of one connection: they must fit the sockets' buffers
)

// Scenario is one shape of load.
type Scenario struct {
	Conns         int     `json:"connections"`
	Window        int     `json:"in_flight"`     // of each connection; without meaning in an open loop
	Conversations int     `json:"conversations"` // of each connection
	Size          int     `json:"frame_bytes"`
	Turns         bool    `json:"turns,omitempty"`   // the agent is reached only after the commit of the question
	Acks          int     `json:"acks,omitempty"`    // the adapter acknowledges, and has so many messages of a conversation in flight; 0 = it does not
	Agent         string  `json:"agent,omitempty"`   // the kind of the agent that answers, see AgentKinds; "" = the built-in echo
	Agents        int     `json:"agents,omitempty"`  // of a kind, among which the connections are divided; 0 = one
	Readers       int     `json:"readers,omitempty"` // of the event stream beside the load
	Rate          float64 `json:"rate,omitempty"`    // open loop: frames a second over all connections; 0 = closed loop
	Label         string  `json:"label,omitempty"`   // its name, where the shape alone does not say what is measured
}

// DefaultScenarios are what a bare run measures: first the paths that adapters and
// agents really take, then what the built-in echo shows of the host alone, over
// protocol 1.0.
var DefaultScenarios = []Scenario{
	acked(50, 16, 1), acked(50, 16, 20),
	answeredBy("websocket", 16, 0), answeredBy("websocket", 1, pacedRate), answeredBy("webhook", 16, 0),
	shape(1, 1, 1, false), shape(50, 1, 1, false), shape(50, 16, 1, false), shape(50, 16, 20, false), shape(50, 16, 1, true), shape(50, 16, 20, true),
}

// pacedRate is a load at which the host has time to rest, in messages a second.
const pacedRate = 800

// How much longer a frame is that asks for a turn, and one with an id.
const (
	TurnBytes = 8
	IDBytes   = len(`"message_id":"",`) + idLen
)

func shape(conns, window, conversations int, turns bool) Scenario {
	s := Scenario{Conns: conns, Window: window, Conversations: conversations, Size: 200, Turns: turns}
	if turns {
		s.Size += TurnBytes
	}
	return s
}

// acked is a shape of adapters that acknowledge, and take 16 of a conversation ahead.
func acked(conns, window, conversations int) Scenario {
	s := shape(conns, window, conversations, false)
	s.Acks, s.Size = 16, s.Size+IDBytes
	return s
}

// answeredBy is 50 connections with 800 conversations of an agent in a process of its
// own: more than it may have turns at once. With a rate the loop is open.
func answeredBy(kind string, window int, rate float64) Scenario {
	s := shape(50, window, 16, false)
	s.Agent, s.Rate = kind, rate
	return s
}

// Name is the scenario in a table.
func (s Scenario) Name() string {
	if s.Label != "" {
		return s.Label
	}
	name := fmt.Sprintf("%d×%d", s.Conns, s.Window)
	if s.Rate > 0 {
		name = fmt.Sprintf("%d at %g/s", s.Conns, s.Rate)
	}
	if s.Conversations > 1 {
		name += fmt.Sprintf(", %d conversations", s.Conns*s.Conversations)
	}
	if s.Turns {
		name += ", agent after commit"
	}
	if s.Agent != "" {
		name += ", " + s.Agent + " agent"
	}
	if s.Acks > 0 {
		name += fmt.Sprintf(", acks (%d)", s.Acks)
	}
	return name
}

func (s Scenario) validate() error {
	for _, v := range []struct {
		what             string
		found, low, high int
	}{
		{"connections", s.Conns, 1, maxConns},
		{"in flight", s.Window, 1, maxInFlight / max(s.Size, 1)},
		{"conversations", s.Conversations, 1, 100_000},
		{"frame size", s.Size, 1, maxSize},
		{"rate", int(s.Rate), 0, maxRate},
		{"acks", s.Acks, 0, maxAcks},
	} {
		if v.found < v.low || v.found > v.high {
			return fmt.Errorf("%s: found %d, expected %d to %d", v.what, v.found, v.low, v.high)
		}
	}
	if s.Agent != "" && !slices.Contains(AgentKinds, s.Agent) {
		return fmt.Errorf("agent: found %.40q, expected one of %s", s.Agent, strings.Join(AgentKinds, ", "))
	}
	_, err := newTemplate(0, 0, s) // names the least size
	return err
}

// LoadConfig is what Load runs.
type LoadConfig struct {
	Exe       string // the host's program
	Dir       string // where the host's data directory is made; "" = the system's
	Scenarios []Scenario
	Rounds    int
	Duration  time.Duration // of one measurement
	Messages  int           // of one measurement, if greater than 0; Duration bounds it then
	NoRaw     bool          // measure no raw server beside
	Profile   string        // directory for the own host's profiles; "" = none

	// Target is the url of a bridge to measure in place of an own host, on a
	// loopback address. Tokens are its credentials, one for each connection;
	// PID is its process, 0 = unknown.
	Target string
	Tokens []string
	PID    int

	Progress Progress // nil = silent
}

func (c *LoadConfig) validate() error {
	if err := checkSpan(c.Rounds, c.Duration); err != nil {
		return err
	}
	if c.Messages < 0 || c.Messages > maxMessages {
		return fmt.Errorf("messages: found %d, expected 0 to %d", c.Messages, maxMessages)
	}
	if len(c.Scenarios) == 0 {
		return errors.New("scenarios: found none, expected at least one")
	}
	for _, s := range c.Scenarios {
		if err := s.validate(); err != nil {
			return err
		}
		if c.Target != "" && len(c.Tokens) < s.Conns {
			return fmt.Errorf("tokens: found %d, expected %d: a connection with the token of another would replace it", len(c.Tokens), s.Conns)
		}
	}
	if c.Target == "" {
		return nil
	}
	_, err := loopbackURL(c.Target)
	return err
}

// ErrNotLoopback refuses a target beyond this machine.
var ErrNotLoopback = errors.New("load is sent to loopback addresses only")

// loopbackURL makes the WebSocket's url of what a user names.
func loopbackURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("target: found %q, expected ws://127.0.0.1:PORT", s)
	}
	switch u.Scheme {
	case "http":
		u.Scheme = "ws"
	case "https":
		u.Scheme = "wss"
	case "ws", "wss":
	default:
		return "", fmt.Errorf("target: found scheme %q, expected ws, wss, http or https", u.Scheme)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("target: found %s: %w", u.Hostname(), ErrNotLoopback)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = wire.Path
	}
	return u.String(), nil
}

// bed is the servers of one Load.
type bed struct {
	LoadConfig
	dir     string
	targets []target            // the one to measure, then the raw one
	behind  map[string][]string // tokens of the own host's channels, by the kind of their agent
	runs    int
}

// Load measures every scenario against the host and the raw server, in turns.
func Load(ctx context.Context, c LoadConfig) (LoadReport, error) {
	if err := c.validate(); err != nil {
		return LoadReport{}, err
	}
	b := &bed{LoadConfig: c}
	stop, err := b.start(ctx)
	defer stop()
	if err != nil {
		return LoadReport{}, err
	}
	report := LoadReport{Machine: DescribeMachine(b.dir), Rounds: c.Rounds, Seconds: c.Duration.Seconds(), Messages: c.Messages, Base: "RAW"}
	for _, s := range c.Scenarios {
		r, err := b.scenario(ctx, s)
		if err != nil {
			return LoadReport{}, fmt.Errorf("%s: %w", s.Name(), err)
		}
		report.Scenarios = append(report.Scenarios, r)
	}
	report.Goals = judgeGoals(report.Scenarios)
	return report, nil
}

// start brings the servers up; what it returns takes them down.
func (b *bed) start(ctx context.Context) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	if b.Target != "" {
		u, err := loopbackURL(b.Target)
		if err != nil {
			return stop, err
		}
		b.targets = append(b.targets, target{"target", u, b.Tokens, b.PID})
	} else {
		if b.dir, err = os.MkdirTemp(b.Dir, "pontoon-bench-"); err != nil {
			return stop, fmt.Errorf("make data directory: %w", err)
		}
		stops = append(stops, func() { _ = os.RemoveAll(b.dir) })
		profile, err := profiled(b.Profile)
		if err != nil {
			return stop, err
		}
		h, err := startHost(ctx, b.Exe, b.dir, profile...)
		if err != nil {
			return stop, err
		}
		stops = append(stops, h.stop)
		most := 0
		for _, s := range b.Scenarios {
			most = max(most, s.Conns)
		}
		tokens, err := provision(ctx, h, "bench", most)
		if err != nil {
			return stop, err
		}
		b.behind = map[string][]string{"": tokens}
		for _, kind := range AgentKinds {
			if !slices.ContainsFunc(b.Scenarios, func(s Scenario) bool { return s.Agent == kind }) {
				continue
			}
			agent, err := startAgent(ctx, h, kind)
			if err != nil {
				return stop, fmt.Errorf("%s agent: %w", kind, err)
			}
			stops = append(stops, agent.stop)
			if b.behind[kind], err = provisionAs(ctx, h, "bench-"+kind, most, map[string]any{"agent": agentName(kind)}); err != nil {
				return stop, err
			}
		}
		b.targets = append(b.targets, target{"host", h.bridge(), tokens, h.pid()})
	}
	if b.NoRaw {
		return stop, nil
	}
	raw, err := startRaw(ctx)
	if err != nil {
		return stop, err
	}
	stops = append(stops, raw.stop)
	b.targets = append(b.targets, target{"raw", raw.bridge(), nil, raw.pid()})
	return stop, nil
}

// sample measures target i once; the latency of single messages to an own host
// beside that of its disk.
func (b *bed) sample(ctx context.Context, i int, s Scenario) (Sample, error) {
	t := b.targets[i]
	if tokens := b.behind[s.Agent]; t.tokens != nil && tokens != nil {
		t.tokens = tokens
	}
	one, err := measure(ctx, t, s, b.runs, span{b.Duration, b.Messages, grace})
	if err != nil || i > 0 || b.dir == "" || s.Conns*s.Window > 1 {
		return one, err
	}
	took, err := syncTook(b.dir)
	if ratio := one.P50 / Micros(took); err == nil && took > 0 {
		one.SyncRatio = &ratio
	}
	return one, err
}

// compare notes the ratios to the bare echo of the same round; an open loop is as
// fast as its pace.
func (s *Sample) compare(raw Sample, open bool) {
	if raw.Throughput > 0 && !open {
		ratio := s.Throughput / raw.Throughput
		s.Ratio = &ratio
	}
	if s.ServerCPU != nil && raw.ServerCPU != nil && *raw.ServerCPU > 0 {
		ratio := *s.ServerCPU / *raw.ServerCPU
		s.CPURatio = &ratio
	}
}

// scenario measures the targets in turns.
func (b *bed) scenario(ctx context.Context, s Scenario) (ScenarioReport, error) {
	var ways []way
	for i, t := range b.targets {
		ways = append(ways, way{t.name, func(ctx context.Context, _ int) (Sample, error) {
			b.runs++
			return b.sample(ctx, i, s)
		}})
	}
	return inTurns(ctx, s, b.Rounds, b.Progress, ways...)
}
