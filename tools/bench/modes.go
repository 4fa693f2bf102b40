package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// ModesConfig is what Modes runs.
type ModesConfig struct {
	Exe      string
	Dir      string // where the host's data directory is made; "" = the system's
	Windows  []int  // messages in flight
	Size     int    // bytes of text
	Rounds   int
	Duration time.Duration // of one measurement
	Progress Progress
}

func (c *ModesConfig) validate() error {
	if err := checkSpan(c.Rounds, c.Duration); err != nil {
		return err
	}
	for _, w := range c.Windows {
		if w < 1 || w > 10_000 {
			return fmt.Errorf("in flight: found %d, expected 1 to 10000", w)
		}
	}
	return nil
}

// modesAdapter makes this program the adapter. It speaks protocol 1.0, whose
// Deliver does not wait for the disk: one goroutine then keeps a window full.
func modesAdapter() (*exec.Cmd, error) {
	return roleCommand(roleAdapter, "--protocol", wire.V10.String())
}

// modes is one host with an adapter of each mode.
type modes struct {
	ModesConfig
	dir   string
	host  *child
	rest  *rest
	token string
}

// Modes measures the same adapter as a plugin and over a WebSocket, in turns
// against one host.
func Modes(ctx context.Context, c ModesConfig) (LoadReport, error) {
	if err := c.validate(); err != nil {
		return LoadReport{}, err
	}
	m := &modes{ModesConfig: c}
	defer m.stop()
	if err := m.start(ctx); err != nil {
		return LoadReport{}, err
	}
	report := LoadReport{Machine: DescribeMachine(m.dir), Rounds: c.Rounds, Seconds: c.Duration.Seconds(), Base: "WEBSOCKET"}
	for _, window := range c.Windows {
		s := Scenario{Conns: 1, Window: window, Conversations: window, Size: c.Size}
		r, err := m.scenario(ctx, s)
		if err != nil {
			return LoadReport{}, fmt.Errorf("%s: %w", s.Name(), err)
		}
		report.Scenarios = append(report.Scenarios, r)
	}
	return report, nil
}

func (m *modes) start(ctx context.Context) error {
	var err error
	if m.dir, err = os.MkdirTemp(m.Dir, "pontoon-bench-"); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err := m.writePlugins(1, 0); err != nil {
		return err
	}
	if m.host, err = spawn(m.Exe, "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(m.dir, "data"), "--plugins", m.plugins()); err != nil {
		return err
	}
	m.host.data = filepath.Join(m.dir, "data")
	if err := m.host.readyOrKill(ctx); err != nil {
		m.host = nil
		return err
	}
	if m.rest, err = m.host.rest(); err != nil {
		return err
	}
	tokens, err := provision(ctx, m.host, "websocket", 1)
	if err != nil {
		return err
	}
	m.token = tokens[0]
	return nil
}

func (m *modes) stop() {
	if m.rest != nil {
		m.rest.close()
	}
	if m.host != nil {
		m.host.stop()
	}
	if m.dir != "" {
		_ = os.RemoveAll(m.dir)
	}
}

func (m *modes) plugins() string { return filepath.Join(m.dir, "plugins.yaml") }
func (m *modes) report() string  { return filepath.Join(m.dir, "report") }

func (m *modes) config(window int) ([]byte, error) {
	c := adapterConfig{Window: window, Millis: int(m.Duration.Milliseconds()), Size: m.Size, Report: m.report()}
	if m.host != nil {
		c.HostPID = m.host.pid()
	}
	return json.Marshal(c)
}

// writePlugins writes the file with a plugin, or none for window 0. JSON is YAML.
func (m *modes) writePlugins(window int, measurement int) error {
	type entry struct {
		Name    string          `json:"name"`
		Command []string        `json:"command"`
		Enabled bool            `json:"enabled"`
		Config  json.RawMessage `json:"config"`
	}
	cfg, err := m.config(window)
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	cmd, err := modesAdapter()
	if err != nil {
		return err
	}
	e := entry{fmt.Sprintf("plugin-%d", measurement), cmd.Args, measurement > 0, cfg}
	b, err := json.Marshal(map[string]any{"plugins": []entry{e}})
	if err != nil {
		return fmt.Errorf("encode plugins.yaml: %w", err)
	}
	return os.WriteFile(m.plugins(), b, 0o600)
}

// scenario measures both modes in turns.
func (m *modes) scenario(ctx context.Context, s Scenario) (ScenarioReport, error) {
	of := func(measure func(context.Context, int, int) (Sample, error)) func(context.Context, int) (Sample, error) {
		return func(ctx context.Context, round int) (Sample, error) {
			return measure(ctx, s.Window, s.Window*maxRounds+round+1)
		}
	}
	return inTurns(ctx, s, m.Rounds, m.Progress, way{"plugin", of(m.asPlugin)}, way{"websocket", of(m.byWebSocket)})
}

// asPlugin lets the host start the adapter by a reload, and stop it by another.
func (m *modes) asPlugin(ctx context.Context, window, measurement int) (Sample, error) {
	if err := m.writePlugins(window, measurement); err != nil {
		return Sample{}, err
	}
	var out any
	if err := m.rest.call(ctx, http.MethodPost, "/plugins/_reload", nil, &out); err != nil {
		return Sample{}, err
	}
	s, err := m.await(ctx, nil)
	if err != nil {
		return Sample{}, err
	}
	if err := m.writePlugins(1, 0); err != nil {
		return Sample{}, err
	}
	return s, m.rest.call(ctx, http.MethodPost, "/plugins/_reload", nil, &out)
}

func (m *modes) byWebSocket(ctx context.Context, window, _ int) (Sample, error) {
	cfg, err := m.config(window)
	if err != nil {
		return Sample{}, fmt.Errorf("encode configuration: %w", err)
	}
	var said tail
	cmd, err := modesAdapter()
	if err != nil {
		return Sample{}, err
	}
	cmd.Env = []string{"PONTOON_URL=" + m.host.url, "PONTOON_TOKEN=" + m.token, "PONTOON_CONFIG=" + string(cfg)}
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return Sample{}, fmt.Errorf("start adapter: %w", err)
	}
	ended := make(chan struct{})
	go func() { // awaited below
		_ = cmd.Wait() // how it ended is told by what it said
		close(ended)
	}()
	s, err := m.await(ctx, ended)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said.String())
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(stopTimeout):
		_ = cmd.Process.Kill()
		<-ended
	}
	return s, err
}

// await reads the adapter's report when it is there, and removes it.
func (m *modes) await(ctx context.Context, ended <-chan struct{}) (Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, m.Duration+startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return Sample{}, fmt.Errorf("adapter wrote no report: %w", ctx.Err())
		case <-ended:
			return Sample{}, errors.New("adapter ended without a report")
		case <-tick.C:
		}
		b, err := os.ReadFile(m.report())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return Sample{}, fmt.Errorf("read report: %w", err)
		}
		var s Sample
		if err := json.Unmarshal(b, &s); err != nil {
			return Sample{}, fmt.Errorf("read report: %w", err)
		}
		return s, os.Remove(m.report())
	}
}
