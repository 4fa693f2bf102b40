package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// built is where program puts what it builds.
var built string

// program builds pontoon, once, without the race detector, as it is measured.
var program = sync.OnceValues(func() (string, error) {
	exe := filepath.Join(built, "pontoon.exe")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", exe, "../../host/cmd/pontoon")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build pontoon: %w\n%s", err, out)
	}
	return exe, nil
})

func exe(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) {
	if status, ok := Role(os.Args, os.Stdout, os.Stderr); ok {
		os.Exit(status)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if built, err = os.MkdirTemp("", "pontoon-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(built) }()
	code := m.Run()
	if code == 0 {
		code = leaks.Code()
	}
	return code
}

func quick(t *testing.T, scenarios ...Scenario) LoadConfig {
	return LoadConfig{Exe: exe(t), Dir: t.TempDir(), Scenarios: scenarios, Rounds: 2, Messages: 80, Duration: await.Limit, Progress: func(line string) { t.Log(line) }}
}

func TestLoadLosesNothing(t *testing.T) {
	c := quick(t,
		Scenario{Conns: 1, Window: 1, Conversations: 1, Size: 200},
		Scenario{Conns: 4, Window: 4, Conversations: 3, Size: 1500},
		Scenario{Conns: 2, Conversations: 2, Size: 300, Window: 1, Rate: 400},
		Scenario{Conns: 2, Window: 4, Conversations: 2, Size: 300, Turns: true},
	)
	r, err := Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Clean() || len(r.Scenarios) != len(c.Scenarios) {
		t.Errorf("report is not clean: %+v", r)
	}
	for _, s := range r.Scenarios {
		if len(s.Targets) != 2 {
			t.Fatalf("%s: found %d targets, expected the host and raw", s.Name(), len(s.Targets))
		}
		for _, target := range s.Targets {
			checkFigures(t, s.Name()+" "+target.Name, target)
		}
		if closed := s.Rate == 0; closed != (s.Targets[0].Ratio != nil) || s.Targets[1].Ratio != nil {
			t.Errorf("%s: ratios %v and %v, expected one for the host in a closed loop", s.Name(), s.Targets[0].Ratio, s.Targets[1].Ratio)
		}
	}
	if g := r.Goals; len(g) != 1 || g[0].Load != "1×1" || g[0].Found.Median <= 0 || g[0].Met != (g[0].Found.Median <= g[0].Limit) {
		t.Errorf("goals: %+v, expected that of 1×1 beside the disk", g)
	}
	var b strings.Builder
	if err := r.Print(&b); err != nil || !strings.Contains(b.String(), "4×4") || !strings.Contains(b.String(), "p50 ÷ one fsync") {
		t.Errorf("table: %v\n%s", err, b.String())
	}
	t.Log(b.String())
}

func checkFigures(t *testing.T, name string, r TargetReport) {
	t.Helper()
	if r.Total.Sent == 0 || r.Total.Answered != r.Total.Sent || len(r.Samples) != 2 {
		t.Errorf("%s: %+v in %d rounds", name, r.Total, len(r.Samples))
	}
	for i, s := range r.Samples {
		if s.Throughput <= 0 || s.P50 <= 0 || s.P50 > s.P90 || s.P90 > s.P99 || s.P99 > s.Max {
			t.Errorf("%s, round %d: figures make no sense: %+v", name, i, s)
		}
	}
	if runtime.GOOS == "linux" && r.ServerCPU == nil {
		t.Errorf("%s: processor time of the server is not known", name)
	}
	if r.Throughput.Min > r.Throughput.Median || r.Throughput.Median > r.Throughput.Max {
		t.Errorf("%s: spread %+v", name, r.Throughput)
	}
}

func TestLoadOfAGivenNumberOfMessagesOnATarget(t *testing.T) {
	host, err := startHost(t.Context(), exe(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer host.stop()
	tokens, err := provision(t.Context(), host, "target", 3)
	if err != nil {
		t.Fatal(err)
	}
	c := quick(t, Scenario{Conns: 3, Window: 2, Conversations: 1, Size: 250})
	c.Target, c.Tokens, c.PID = host.url, tokens, host.pid()
	c.NoRaw, c.Messages, c.Rounds = true, 100, 1
	r, err := Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Scenarios[0].Targets; len(got) != 1 || got[0].Name != "target" || got[0].Total != (Count{Sent: 100, Answered: 100}) {
		t.Errorf("found %+v, expected 100 messages answered by the target", got)
	}
	c.Tokens = []string{"not-a-token-of-this-host", "b", "c"}
	if _, err := Load(t.Context(), c); !errors.Is(err, errNotRegistered) || !strings.Contains(err.Error(), wire.RefusedInvalidToken) {
		t.Errorf("wrong token: found %v, expected the host's refusal", err)
	}
}

func TestLoadIsRefused(t *testing.T) {
	ok := Scenario{Conns: 1, Window: 1, Conversations: 1, Size: 200}
	for name, change := range map[string]func(*LoadConfig){
		"errOtherMachine":   func(c *LoadConfig) { c.Target = "ws://192.0.2.1:8080" },
		"errOtherName":      func(c *LoadConfig) { c.Target = "wss://example.org/api/v1/channels/bridge/ws" },
		"errLooksLikeLocal": func(c *LoadConfig) { c.Target = "ws://127.0.0.1.example.org" },
		"errScheme":         func(c *LoadConfig) { c.Target = "ftp://127.0.0.1" },
		"errFewTokens":      func(c *LoadConfig) { c.Target, c.Tokens = "ws://127.0.0.1:1", nil },
		"errSmallFrame":     func(c *LoadConfig) { c.Scenarios[0].Size = 10 },
		"errNoRounds":       func(c *LoadConfig) { c.Rounds = 0 },
		"errEndless":        func(c *LoadConfig) { c.Duration = 24 * time.Hour },
		"errFlood":          func(c *LoadConfig) { c.Scenarios[0].Window = 1 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			c := LoadConfig{Exe: exe(t), Scenarios: []Scenario{ok}, Rounds: 1, Duration: time.Second, Tokens: []string{"token"}}
			change(&c)
			if _, err := Load(t.Context(), c); err == nil {
				t.Error("expected an error")
			} else if strings.Contains(name, "Other") != errors.Is(err, ErrNotLoopback) && name != "errLooksLikeLocal" {
				t.Errorf("found %v", err)
			}
		})
	}
	if err := loopbackOnly("tcp", "192.0.2.1:80", nil); err == nil {
		t.Error("a name that resolves to another machine is dialed")
	}
	if err := loopbackOnly("tcp6", "[::1]:80", nil); err != nil {
		t.Error(err)
	}
}

// The plugins of whoever started a measurement are no part of it: a host that read this
// file would not start.
func TestHostRunsNoForeignPlugins(t *testing.T) {
	program, dir := exe(t), t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("plugins.yaml", []byte("plugins: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("data", 0o700); err != nil {
		t.Fatal(err)
	}
	host, err := startHost(t.Context(), program, "data")
	if err != nil {
		t.Fatal(err)
	}
	host.stop()
}

func TestIdle(t *testing.T) {
	r, err := Idle(t.Context(), IdleConfig{Exe: exe(t), Dir: t.TempDir(), Adapters: 30})
	if err != nil {
		t.Fatal(err)
	}
	if r.Adapters != 30 || r.Connect <= 0 || r.Storm <= 0 || runtime.GOOS == "linux" && (r.Before.RSS <= 0 || r.Attached.RSS <= 0) {
		t.Errorf("report makes no sense: %+v", r)
	}
	if err := r.Print(t.Output()); err != nil {
		t.Error(err)
	}
	if _, err := Idle(t.Context(), IdleConfig{Exe: exe(t), Adapters: maxConns + 1}); err == nil {
		t.Error("too many adapters are accepted")
	}
}

func TestKill(t *testing.T) {
	r, err := Kill(t.Context(), KillConfig{Exe: exe(t), Dir: t.TempDir(), Rounds: 2, Conns: 3, Window: 8})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || r.Rounds != 2 || r.Kills != 3 || r.Sent < r.Answered+r.Unanswered {
		t.Errorf("report: %+v", r)
	}
	if err := r.Print(t.Output()); err != nil {
		t.Error(err)
	}
}
