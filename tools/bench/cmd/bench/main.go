// Command bench measures a Pontoon host: what messages cost, what it keeps when it is
// killed, and what one that misbehaves costs all others.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/tools/bench"
)

// options are those of all measurements.
type options struct {
	json bool
	exe  string // the host's program; "" = pontoon, beside this one
	dir  string
}

// program is the host that is measured.
func (o *options) program() (string, error) {
	if o.exe != "" {
		return filepath.Abs(o.exe)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	host := filepath.Join(filepath.Dir(self), "pontoon")
	if _, err := os.Stat(host); err != nil {
		return "", fmt.Errorf("%w: build it there (make build), or name it by --pontoon", err)
	}
	return host, nil
}

// errFound ends a measurement that found what must not be; its report says what.
var errFound = errors.New("found what must not be: see the report")

func main() {
	if status, ok := bench.Role(os.Args, os.Stdout, os.Stderr); ok {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := benchCommand(&options{}).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func benchCommand(o *options) *cobra.Command {
	var c bench.LoadConfig
	var shape bench.Scenario
	var seconds float64
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure what messages cost beside a bare WebSocket echo", Args: cobra.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
		Long: "Start a host on a fresh data directory and a server that only gives WebSocket frames back, and put the same\n" +
			"load on both in turns. Quote ratios of one run: absolute numbers say as much of the machine. Load never\n" +
			"leaves this machine.\n\nWithout flags it measures the paths that users run, and prints what each is to reach. Exits with 1 if a message\n" +
			"is lost, doubled or out of order; a goal that is not met does not change the exit status.",
		Example: "  bin/bench\n  bin/bench --conns 500 --window 1 --rounds 7\n  bin/bench --conns 50 --rate 5000\n" +
			"  bin/bench --target ws://127.0.0.1:8080 --token T",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Scenarios = scenarios(cmd, shape, len(c.Tokens))
			c.Duration, c.Dir = time.Duration(seconds*float64(time.Second)), o.dir
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Load(cmd.Context(), c)
				return verdict{&r, r.Clean(), r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.IntVar(&shape.Conns, "conns", 50, "connections")
	f.IntVar(&shape.Window, "window", 1, "messages in flight on each connection")
	f.IntVar(&shape.Conversations, "conversations", 1, "conversations on each connection")
	f.BoolVar(&shape.Turns, "turns", false, "ask for an answer in a turn of its own: the agent is reached only after the commit of the question")
	f.StringVar(&shape.Agent, "agent", "", "who answers: an agent in a process of its own that dials in (websocket) or is dialled (webhook, agui); without it the built-in echo")
	f.IntVar(&shape.Acks, "acks", 0, "acknowledge, and take so many messages of a conversation ahead of that (0 = speak protocol 1.0)")
	f.IntVar(&shape.Size, "size", 200, "bytes of a frame")
	f.Float64Var(&shape.Rate, "rate", 0, "messages a second over all connections, however slow the answers are; latency counts from when a message was due (0 = closed loop)")
	f.Float64Var(&seconds, "seconds", 2, "length of one measurement, and its bound with --messages")
	f.IntVar(&c.Messages, "messages", 0, "messages of one measurement (0 = as many as fit in --seconds)")
	f.IntVar(&c.Rounds, "rounds", 5, "rounds of each scenario")
	f.BoolVar(&c.NoRaw, "no-raw", false, "leave the bare echo out")
	f.StringVar(&c.Target, "target", "", "url of a running bridge to measure, on a loopback address")
	f.StringArrayVar(&c.Tokens, "token", nil, "token for it; one for each connection")
	f.IntVar(&c.PID, "pid", 0, "its process, to tell its processor time")
	f.StringVar(&c.Profile, "profile", "", "directory for profiles of the host, written at the end: cpu.pprof and allocs.pprof")
	all := cmd.PersistentFlags()
	all.StringVar(&o.dir, "dir", "", "where data directories are made and removed (default: the system's for temporary files)")
	all.StringVar(&o.exe, "pontoon", "", "the host's program (default: pontoon, beside this one)")
	all.BoolVar(&o.json, "json", false, "print one JSON value and nothing else")
	cmd.AddCommand(benchIdle(o), benchKill(o), benchStorm(o), benchFair(o), benchModes(o), benchStream(o), benchTokens(o), benchDrain(o), benchSDK(o), benchMemory(o), benchDrafts(o), benchHTTP(o))
	return cmd
}

// scenarios are the default ones, unless the flags describe one. With tokens,
// the default ones have as many connections.
func scenarios(cmd *cobra.Command, shape bench.Scenario, tokens int) []bench.Scenario {
	f := cmd.Flags()
	for _, name := range []string{"conns", "window", "rate", "conversations", "turns", "acks", "agent"} {
		if f.Changed(name) {
			if tokens > 0 && !f.Changed("conns") {
				shape.Conns = tokens
			}
			if shape.Turns && !f.Changed("size") {
				shape.Size += bench.TurnBytes
			}
			if shape.Acks > 0 && !f.Changed("size") {
				shape.Size += bench.IDBytes
			}
			return []bench.Scenario{shape}
		}
	}
	var all []bench.Scenario
	for _, s := range bench.DefaultScenarios {
		if tokens > 0 && s.Agent != "" {
			continue // who answers there, the tokens' channels say
		}
		if f.Changed("size") {
			s.Size = shape.Size
		}
		if tokens > 0 {
			s.Conns = min(s.Conns, tokens)
		}
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

func benchIdle(o *options) *cobra.Command {
	var c bench.IdleConfig
	cmd := &cobra.Command{
		Use: "idle", Short: "Measure what idle adapters cost, and how fast all come back", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = o.dir
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Idle(cmd.Context(), c)
				return verdict{&r, true, r.Print}, err
			})
		},
	}
	cmd.Flags().IntVar(&c.Adapters, "adapters", 5000, "adapters, each on a channel of its own")
	cmd.Flags().DurationVar(&c.Settle, "settle", 5*time.Second, "wait before each look at the host's memory")
	return cmd
}

func benchKill(o *options) *cobra.Command {
	var c bench.KillConfig
	var acks bool
	cmd := &cobra.Command{
		Use: "kill", Short: "Kill a host under load again and again, and look for what it lost", Args: cobra.NoArgs,
		Long: "Send bursts of messages, kill the host with SIGKILL at a random moment, start it again on the same data and\n" +
			"compare its history with what the clients saw. Every message whose answer arrived must be stored with it,\n" +
			"exactly once. With --acks the clients speak protocol 1.1, acknowledge, outlive the host and go on with the\n" +
			"next one. Exits with 1 if something acknowledged is lost, doubled or out of order.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = o.dir
			if acks {
				return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
					r, err := bench.KillAcks(cmd.Context(), c)
					return verdict{&r, r.OK(), r.Print}, err
				})
			}
			c.Ahead = 0
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Kill(cmd.Context(), c)
				return verdict{&r, r.OK(), r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&acks, "acks", false, "adapters that acknowledge")
	f.IntVar(&c.Ahead, "in-flight", 1, "messages of a conversation that they take before they acknowledge the first")
	f.IntVar(&c.Rounds, "rounds", 10, "kills under load")
	f.IntVar(&c.Conns, "conns", 8, "connections")
	f.IntVar(&c.Window, "window", 32, "messages in flight on each connection")
	f.IntVar(&c.Conversations, "conversations", 3, "conversations on each connection")
	f.IntVar(&c.Size, "size", 200, "bytes of a frame")
	return cmd
}

func benchModes(o *options) *cobra.Command {
	var c bench.ModesConfig
	cmd := &cobra.Command{
		Use: "modes", Short: "Measure one adapter as a plugin and over a WebSocket", Args: cobra.NoArgs,
		Long: "Start a host, and put the same load of one SDK adapter on it in turns: run by the host as a plugin, and\n" +
			"connected by WebSocket.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = o.dir
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Modes(cmd.Context(), c)
				return verdict{&r, r.Clean(), r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&c.Windows, "window", []int{1, 64}, "messages in flight")
	f.IntVar(&c.Size, "size", 100, "bytes of text")
	f.IntVar(&c.Rounds, "rounds", 5, "rounds of each")
	f.DurationVar(&c.Duration, "duration", time.Second, "length of one measurement; short, since one session may send 20,000 frames a second for longer")
	return cmd
}

func benchTokens(o *options) *cobra.Command {
	var c bench.TokensConfig
	cmd := &cobra.Command{
		Use: "tokens", Short: "Measure what the host adds before users see an agent's first word", Args: cobra.NoArgs,
		Long: "Start a host, and put agents of each kind behind an adapter that shows streams and behind an AG-UI client, one\n" +
			"question at a time: how long until the agent has it, and from its first token until the user has that.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = o.dir
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Tokens(cmd.Context(), c)
				return verdict{&r, true, r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Samples, "samples", 300, "questions of each")
	return cmd
}

func benchStream(o *options) *cobra.Command {
	var c bench.StreamConfig
	cmd := &cobra.Command{
		Use: "stream", Short: "Measure a plugin's connection beside a bare gRPC stream", Args: cobra.NoArgs,
		Long: "Start two children as plugins, with mutual TLS, and let them give frames back in turns: one through the SDK's\n" +
			"connection, one through nothing but the gRPC stream below it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBench(cmd, o, nil, &c.Progress, func() (verdict, error) {
				r, err := bench.Streams(cmd.Context(), c)
				return verdict{&r, r.Clean(), r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&c.Windows, "window", []int{1, 64}, "frames in flight")
	f.IntVar(&c.Size, "size", 200, "bytes of a frame")
	f.IntVar(&c.Rounds, "rounds", 9, "rounds of each")
	f.DurationVar(&c.Duration, "duration", time.Second, "length of one measurement")
	return cmd
}

// verdict is a report, whether all is well in it, and how people read it.
type verdict struct {
	report any
	ok     bool
	print  func(io.Writer) error
}

// runBench fills in what every measurement needs, runs it and shows its report.
// exe is nil for one that starts no host.
func runBench(cmd *cobra.Command, o *options, exe *string, progress *bench.Progress, run func() (verdict, error)) (err error) {
	if exe != nil {
		if *exe, err = o.program(); err != nil {
			return err
		}
	}
	if !o.json {
		*progress = func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) }
	}
	v, err := run()
	if err != nil {
		return err
	}
	if o.json {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(v.report)
	} else {
		err = v.print(cmd.OutOrStdout())
	}
	if err == nil && !v.ok {
		return errFound
	}
	return err
}
