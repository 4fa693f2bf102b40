package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/bench"
	sdkplugin "github.com/pontoon-bridge/pontoon/sdk/plugin"
)

func benchCommand(o *clientOptions) *cobra.Command {
	var c bench.LoadConfig
	var shape bench.Scenario
	var seconds float64
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure what messages cost beside a bare WebSocket echo", Args: cobra.NoArgs,
		Long: "Start a host on a fresh data directory and a server that only gives WebSocket frames back, and put the same\n" +
			"load on both in turns. Quote ratios of one run: absolute numbers say as much of the machine. Load never\n" +
			"leaves this machine.",
		Example: "  pontoon bench\n  pontoon bench --conns 500 --window 1 --rounds 7\n  pontoon bench --conns 50 --rate 5000\n" +
			"  pontoon bench --target ws://127.0.0.1:8080 --token T",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Scenarios = scenarios(cmd, shape, len(c.Tokens))
			c.Duration = time.Duration(seconds * float64(time.Second))
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
	cmd.PersistentFlags().StringVar(&c.Dir, "dir", "", "where data directories are made and removed (default: the system's for temporary files)")
	cmd.AddCommand(benchIdle(o, &c.Dir), benchKill(o, &c.Dir), benchStorm(o, &c.Dir), benchFair(o, &c.Dir), benchModes(o, &c.Dir), benchDeep(o, &c.Dir),
		benchStream(o), benchTokens(o), benchAdapter(), benchStreamEcho(), benchCulprit(), &cobra.Command{
			Use: "raw-echo", Short: "Give every WebSocket frame back", Args: cobra.NoArgs, Hidden: true,
			RunE: func(cmd *cobra.Command, _ []string) error { return bench.ServeRaw(cmd.Context(), cmd.OutOrStdout()) },
		})
	return cmd
}

// scenarios are the default ones, unless the flags describe one. With tokens,
// the default ones have as many connections.
func scenarios(cmd *cobra.Command, shape bench.Scenario, tokens int) []bench.Scenario {
	f := cmd.Flags()
	for _, name := range []string{"conns", "window", "rate", "conversations", "turns"} {
		if f.Changed(name) {
			if tokens > 0 && !f.Changed("conns") {
				shape.Conns = tokens
			}
			if shape.Turns && !f.Changed("size") {
				shape.Size += bench.TurnBytes
			}
			return []bench.Scenario{shape}
		}
	}
	var all []bench.Scenario
	for _, s := range bench.DefaultScenarios {
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

func benchIdle(o *clientOptions, dir *string) *cobra.Command {
	var c bench.IdleConfig
	cmd := &cobra.Command{
		Use: "idle", Short: "Measure what idle adapters cost, and how fast all come back", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = *dir
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

func benchKill(o *clientOptions, dir *string) *cobra.Command {
	var c bench.KillConfig
	var acks bool
	cmd := &cobra.Command{
		Use: "kill", Short: "Kill a host under load again and again, and look for what it lost", Args: cobra.NoArgs,
		Long: "Send bursts of messages, kill the host with SIGKILL at a random moment, start it again on the same data and\n" +
			"compare its history with what the clients saw. Every message whose answer arrived must be stored with it,\n" +
			"exactly once. With --acks the clients speak protocol 1.1, acknowledge, outlive the host and go on with the\n" +
			"next one. Exits with 1 if something acknowledged is lost, doubled or out of order.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = *dir
			if acks {
				return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
					r, err := bench.KillAcks(cmd.Context(), c)
					return verdict{&r, r.OK(), r.Print}, err
				})
			}
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Kill(cmd.Context(), c)
				return verdict{&r, r.OK(), r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&acks, "acks", false, "adapters that acknowledge")
	f.IntVar(&c.Rounds, "rounds", 10, "kills under load")
	f.IntVar(&c.Conns, "conns", 8, "connections")
	f.IntVar(&c.Window, "window", 32, "messages in flight on each connection")
	f.IntVar(&c.Conversations, "conversations", 3, "conversations on each connection")
	f.IntVar(&c.Size, "size", 200, "bytes of a frame")
	return cmd
}

func benchModes(o *clientOptions, dir *string) *cobra.Command {
	var c bench.ModesConfig
	cmd := &cobra.Command{
		Use: "modes", Short: "Measure one adapter as a plugin and over a WebSocket", Args: cobra.NoArgs,
		Long: "Start a host, and put the same load of one SDK adapter on it in turns: run by the host as a plugin, and\n" +
			"connected by WebSocket.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = *dir
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

func benchDeep(o *clientOptions, dir *string) *cobra.Command {
	var c bench.DeepConfig
	cmd := &cobra.Command{
		Use: "deep", Short: "Measure what a message costs when many are stored", Args: cobra.NoArgs,
		Long: "Store many messages, then put the same load on that database and on new ones in turns. 10 million take\n" +
			"about 2.3 GB in --dir, which are removed afterwards.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFlags(oneOf("ids", c.IDs, bench.IDsNone, bench.IDsOrdered, bench.IDsRandom)); err != nil {
				return err
			}
			c.Dir = *dir
			var exe string // it has no other process
			return runBench(cmd, o, &exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Deep(cmd.Context(), c)
				return verdict{&r, true, r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Stored, "stored", 10_000_000, "messages stored beforehand")
	f.IntVar(&c.Conversations, "conversations", 50, "conversations that they belong to")
	f.StringVar(&c.IDs, "ids", bench.IDsNone, "platform ids of the questions: none, ordered or random")
	f.IntVar(&c.Pairs, "pairs", 10_000, "questions with their answers of one measurement")
	f.IntVar(&c.Rounds, "rounds", 15, "rounds")
	return cmd
}

func benchTokens(o *clientOptions) *cobra.Command {
	var c bench.TokensConfig
	cmd := &cobra.Command{
		Use: "tokens", Short: "Measure what the host adds before users see an agent's first word", Args: cobra.NoArgs,
		Long: "Start a host, and put agents of each kind behind an adapter that shows streams and behind an AG-UI client, one\n" +
			"question at a time: how long until the agent has it, and from its first token until the user has that.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Tokens(cmd.Context(), c)
				return verdict{&r, true, r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Samples, "samples", 300, "questions of each")
	f.StringVar(&c.Dir, "dir", "", "where the data directory is made and removed (default: the system's for temporary files)")
	return cmd
}

func benchStream(o *clientOptions) *cobra.Command {
	var c bench.StreamConfig
	cmd := &cobra.Command{
		Use: "stream", Short: "Measure a plugin's connection beside a bare gRPC stream", Args: cobra.NoArgs,
		Long: "Start two children as plugins, with mutual TLS, and let them give frames back in turns: one through the SDK's\n" +
			"connection, one through nothing but the gRPC stream below it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
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

func benchStreamEcho() *cobra.Command {
	return &cobra.Command{
		Use: "stream-echo WAY", Short: "The far end of 'bench stream'", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error { return bench.ServeStream(cmd.Context(), args[0]) },
	}
}

func benchAdapter() *cobra.Command {
	return &cobra.Command{
		Use: "adapter", Short: "The load of 'bench modes'", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := sdkplugin.Start(cmd.Context(), "bench", &bench.Adapter{}, append([]string{"pontoon bench adapter"}, args...), os.Getenv, cmd.ErrOrStderr()); code != 0 {
				return exitError(code)
			}
			return nil
		},
	}
}

// verdict is a report, whether all is well in it, and how people read it.
type verdict struct {
	report any
	ok     bool
	print  func(io.Writer) error
}

// runBench fills in what every measurement needs, runs it and shows its report.
func runBench(cmd *cobra.Command, o *clientOptions, exe *string, progress *func(string), run func() (verdict, error)) (err error) {
	if *exe, err = os.Executable(); err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	if !o.json {
		*progress = func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) }
	}
	v, err := run()
	if errors.Is(err, bench.ErrNotLoopback) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if o.json {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(v.report)
	} else {
		err = v.print(cmd.OutOrStdout())
	}
	if err == nil && !v.ok {
		return exitError(1)
	}
	return err
}
