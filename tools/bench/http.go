package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// HTTPConfig is what HTTP runs.
type HTTPConfig struct {
	Exe      string
	Dir      string   // where the hosts' data directories are made; "" = the system's
	Rows     []string // of RowNames; none = all
	Rounds   int
	Duration time.Duration // of one measurement
	Messages int           // of one measurement, if greater than 0; Duration bounds it then
	Profile  string        // directory for the hosts' profiles, one below it for each row; "" = none
	Progress Progress

	smaller func(Scenario) Scenario // makes a test of a load; nil = the load as it is
}

// row is one way over HTTP into the host or out of it.
type row struct {
	name  string
	loads []load
	env   []string // of its host
	open  func(context.Context, *httpBed, Scenario) ([]way, error)
}

// load is one load of a row, and what it must reach.
type load struct {
	Scenario
	goals []goal
}

// over is a load of clients over HTTP with a conversation each, by its name in the report.
func over(name string, conns, window int) Scenario {
	s := shape(conns, window, 1, false)
	s.Label = fmt.Sprintf("%s, %d×%d", name, conns, window)
	return s
}

func rows() []row {
	bare := func(limit float64) goal { return throughputTo("bare", limit) }
	hook := func(window int) load {
		s := over("webhook agent", 50, window)
		s.Agent = "webhook"
		return load{s, []goal{bare(0.5), cpuOf(150)}}
	}
	agui := over("AG-UI agent", 200, 1)
	agui.Agent = "agui"
	events := shape(20, 1, 1, false)
	events.Rate, events.Readers, events.Label = 500, 100, "events, 20 at 500/s, 100 readers"
	one, many := over("Bridle, one agent", 50, 1), over("Bridle, 50 agents", 50, 1)
	one.Agents, many.Agents = 1, 50
	return []row{
		{"webhook", []load{hook(1), hook(16)}, nil, openDialed},
		{"agui", []load{{agui, []goal{bare(0.4)}}}, nil, openDialed},
		{"run", []load{{over("AG-UI runs", 48, 1), []goal{bare(0.4)}}}, nil, openRuns},
		{"send", []load{{over("POST messages", 16, 1), []goal{bare(0.4)}}}, nil, openSends},
		{"events", []load{{events, []goal{{"host CPU µs a reader and event", true, 5, func(t TargetReport) *Spread { return t.ReaderCPU }}}}}, nil, openEvents},
		{"bridle", []load{{one, nil}, {many, nil}}, bridleEnv(), openBridle},
	}
}

// RowNames are what HTTP can measure.
func RowNames() (names []string) {
	for _, r := range rows() {
		names = append(names, r.name)
	}
	return names
}

func (c *HTTPConfig) validate() error {
	for _, name := range c.Rows {
		if !slices.Contains(RowNames(), name) {
			return fmt.Errorf("row: found %.40q, expected one of %s", name, strings.Join(RowNames(), ", "))
		}
	}
	limits := LoadConfig{Scenarios: DefaultScenarios, Rounds: c.Rounds, Duration: c.Duration, Messages: c.Messages}
	return limits.validate()
}

// HTTP measures the ways over HTTP into the host and out of it, in turns with a program
// that does nothing else: agents that the host dials, runs of AG-UI, messages that are
// posted, readers of events, and Bridle, which has no other server to be compared with.
func HTTP(ctx context.Context, c HTTPConfig) (LoadReport, error) {
	if err := c.validate(); err != nil {
		return LoadReport{}, err
	}
	dir, err := os.MkdirTemp(c.Dir, "pontoon-bench-")
	if err != nil {
		return LoadReport{}, fmt.Errorf("make data directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	report := LoadReport{Machine: DescribeMachine(dir), Rounds: c.Rounds, Seconds: c.Duration.Seconds(), Messages: c.Messages, Base: "BARE"}
	for _, r := range rows() {
		if len(c.Rows) > 0 && !slices.Contains(c.Rows, r.name) {
			continue
		}
		for i, l := range r.loads {
			s := l.Scenario
			if c.smaller != nil {
				s = c.smaller(s)
			}
			one, err := c.measure(ctx, r, s, filepath.Join(dir, fmt.Sprintf("%s-%d", r.name, i)))
			if err != nil {
				return LoadReport{}, fmt.Errorf("%s: %w", s.Name(), err)
			}
			report.Scenarios, report.Goals = append(report.Scenarios, one), append(report.Goals, one.judge(l.goals...)...)
		}
	}
	return report, nil
}

// httpBed is the host of one load, and what stands beside it.
type httpBed struct {
	HTTPConfig
	host  *child
	api   *rest
	runs  int
	stops []func() // last in, first out
}

// measure runs one load of a row against a host of its own.
func (c *HTTPConfig) measure(ctx context.Context, r row, s Scenario, dir string) (ScenarioReport, error) {
	b := &httpBed{HTTPConfig: *c}
	defer b.stop()
	if b.Profile != "" {
		b.Profile = filepath.Join(b.Profile, filepath.Base(dir))
		if err := os.MkdirAll(b.Profile, 0o700); err != nil {
			return ScenarioReport{}, fmt.Errorf("make directory of profiles: %w", err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return ScenarioReport{}, fmt.Errorf("make data directory: %w", err)
	}
	profile, err := profiled(b.Profile)
	if err != nil {
		return ScenarioReport{}, err
	}
	if b.host, err = spawnHostWith(r.env, c.Exe, dir, profile...); err != nil {
		return ScenarioReport{}, err
	}
	if err := b.host.readyOrKill(ctx); err != nil {
		return ScenarioReport{}, err
	}
	b.atEnd(b.host.stop)
	if b.api, err = b.host.rest(); err != nil {
		return ScenarioReport{}, err
	}
	b.atEnd(b.api.close)
	ways, err := r.open(ctx, b, s)
	if err != nil {
		return ScenarioReport{}, err
	}
	return inTurns(ctx, s, c.Rounds, c.Progress, ways...)
}

func (b *httpBed) atEnd(stop func()) { b.stops = append(b.stops, stop) }

func (b *httpBed) stop() {
	for _, stop := range slices.Backward(b.stops) {
		stop()
	}
}

// run is the number of the next measurement, which is in all of its ids.
func (b *httpBed) run() int {
	b.runs++
	return b.runs
}

func (b *httpBed) span() span { return span{b.Duration, b.Messages, grace} }

// adapters makes channels with their agent, and is what load of adapters is put on.
func (b *httpBed) adapters(ctx context.Context, prefix, agent string, n int) (target, error) {
	tokens, err := provisionAs(ctx, b.host, prefix, n, map[string]any{"agent": agent})
	return target{"host", b.host.bridge(), tokens, b.host.pid()}, err
}
