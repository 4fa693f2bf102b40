package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/tools/bench"
)

func benchHTTP(o *options) *cobra.Command {
	var c bench.HTTPConfig
	var seconds float64
	cmd := &cobra.Command{
		Use: "http", Short: "Measure what goes over HTTP beside programs that do nothing else", Args: cobra.NoArgs,
		Long: "Start a host for each row, and put the same load in turns on it and on a bare program: agents that are dialled\n" +
			"(webhook, agui) beside Go's own client of the same agent, runs of AG-UI (run) beside a bare server of the same\n" +
			"events, POST of messages (send) beside a bare handler of the same framework. events tells what readers of the\n" +
			"event stream cost; bridle, browsers and agents by Socket.IO, has nothing to be compared with.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Duration, c.Dir = time.Duration(seconds*float64(time.Second)), o.dir
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.HTTP(cmd.Context(), c)
				return verdict{&r, r.Clean(), r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.Rows, "only", nil, "rows to measure, of "+strings.Join(bench.RowNames(), ", ")+" (default: all)")
	f.Float64Var(&seconds, "seconds", 2, "length of one measurement, and its bound with --messages")
	f.IntVar(&c.Messages, "messages", 0, "messages of one measurement (0 = as many as fit in --seconds)")
	f.IntVar(&c.Rounds, "rounds", 5, "rounds of each load")
	f.StringVar(&c.Profile, "profile", "", "directory for profiles of the hosts, written at the end of each row")
	return cmd
}
