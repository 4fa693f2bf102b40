package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/tools/bench"
)

func benchStorm(o *options) *cobra.Command {
	var c bench.StormConfig
	cmd := &cobra.Command{
		Use: "storm", Short: "Cut off all adapters at once, and look how they come back", Args: cobra.NoArgs,
		Long: "Attach adapters, cut all of them off and let all of them come back at once: after a reset, while the host still\n" +
			"believes in the connections before, and after a kill of the host. Each must be answered again. Exits with 1 if\n" +
			"not, or if a slot is left with a session that is gone.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = o.dir
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Storm(cmd.Context(), c)
				return verdict{&r, r.OK(), r.Print}, err
			})
		},
	}
	cmd.Flags().IntVar(&c.Adapters, "adapters", 5000, "adapters, each on a channel of its own")
	cmd.Flags().IntVar(&c.Rounds, "rounds", 3, "rounds of each way")
	return cmd
}

func benchFair(o *options) *cobra.Command {
	c := bench.FairConfig{}
	cmd := &cobra.Command{
		Use: "fair", Short: "Measure what one that misbehaves costs all others", Args: cobra.NoArgs,
		Long: "Measure adapters under a moderate load, in turns without and with one culprit beside them on the same host.\n" +
			"Printed are the ratios of their p99 and of their answers a second, and whether the p99 grew by a fifth at most.\n" +
			"Exits with 1 if a message is lost, doubled or out of order.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range c.Culprits {
				if !slices.Contains(bench.CulpritNames, name) {
					return fmt.Errorf("--culprit: found %.40q, expected one of %s", name, strings.Join(bench.CulpritNames, ", "))
				}
			}
			c.Dir = o.dir
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Fair(cmd.Context(), c)
				return verdict{&r, r.Clean(), r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.Culprits, "culprit", bench.CulpritNames, "who misbehaves: an adapter that floods (also with acks), that does not read (deaf), that repeats one message or that drains a long queue; a reader of history or of all the audit log (export), followers of events that do not read; an agent that is slow (others have the echo, or one that dials in) or that floods")
	f.IntVar(&c.Conns, "conns", 20, "adapters that are measured")
	f.Float64Var(&c.Rate, "rate", 2000, "their messages a second, over all of them (0 = closed loop: as many as are answered)")
	f.IntVar(&c.Window, "window", 16, "messages in flight on each connection, with --rate 0")
	f.IntVar(&c.Rounds, "rounds", 25, "rounds of each culprit: many short ones, since the disk has good and bad seconds")
	f.DurationVar(&c.Duration, "duration", 500*time.Millisecond, "length of one measurement")
	f.IntVar(&c.History, "history", 100_000, "messages of the channel whose history is read")
	f.IntVar(&c.Audited, "audited", 10_000, "lines of the audit log that is exported")
	f.IntVar(&c.Queued, "queued", 100_000, "messages that wait for the one that comes back")
	return cmd
}
