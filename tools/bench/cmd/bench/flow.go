package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/tools/bench"
)

func benchDrain(o *options) *cobra.Command {
	var c bench.DrainConfig
	cmd := &cobra.Command{
		Use: "drain", Short: "Measure how fast an adapter that comes back gets what waits for it", Args: cobra.NoArgs,
		Long: "Let messages wait for an adapter that acknowledges, attach it and measure until it has all of them, in turns with\n" +
			"a bare echo that has as many frames in flight. Exits with 1 if one is lost, doubled or out of order.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = o.dir
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Drain(cmd.Context(), c)
				return verdict{&r, r.Clean(), r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Queued, "queued", 10_000, "messages that wait")
	f.IntSliceVar(&c.Conversations, "conversations", []int{1, 100}, "conversations that they are of")
	f.IntSliceVar(&c.InFlight, "in-flight", []int{1, 16}, "messages of a conversation that the adapter takes before it acknowledges the first")
	f.IntVar(&c.Size, "size", 200+bench.IDBytes, "bytes of a frame")
	f.IntVar(&c.Rounds, "rounds", 5, "rounds of each")
	f.DurationVar(&c.Duration, "duration", time.Second, "length of one measurement of the bare echo")
	return cmd
}

func benchSDK(o *options) *cobra.Command {
	var c bench.SDKConfig
	cmd := &cobra.Command{
		Use: "sdk", Short: "Measure adapters of the Go SDK beside the generator's own client", Args: cobra.NoArgs,
		Long: "Start a host, and put the same load on it in turns: by adapters of the SDK, and by the client of all other loads.\n" +
			"Both speak protocol 1.1 and acknowledge; each conversation has one message in flight.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = o.dir
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.SDK(cmd.Context(), c)
				return verdict{&r, r.Clean(), r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Conns, "conns", 50, "connections")
	f.IntVar(&c.Conversations, "conversations", 16, "conversations on each connection")
	f.IntVar(&c.Acks, "acks", 16, "messages of a conversation that an adapter takes ahead of its acknowledgement")
	f.IntVar(&c.Size, "size", 200+bench.IDBytes, "bytes of a frame")
	f.IntVar(&c.Rounds, "rounds", 5, "rounds of each")
	f.DurationVar(&c.Duration, "duration", 2*time.Second, "length of one measurement")
	return cmd
}

func benchMemory(o *options) *cobra.Command {
	var c bench.MemoryConfig
	cmd := &cobra.Command{
		Use: "memory", Short: "Measure a host's memory, and its start, with much that waits", Args: cobra.NoArgs,
		Long: "Let messages wait for an adapter, and turns for an agent that is away, and start hosts on that disk in turns with\n" +
			"hosts on one without. Exits with 1 if something that waited is lost, doubled or out of order.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = o.dir
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.HostMemory(cmd.Context(), c)
				return verdict{&r, r.Clean(), r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Queued, "queued", 1_000_000, "messages that wait in one channel (0 = leave them out)")
	f.IntVar(&c.Turns, "turns", 10_000, "turns that wait for an agent, each of a conversation of its own (0 = leave them out)")
	f.IntVar(&c.Taken, "taken", 1000, "messages that an adapter takes after each start")
	f.IntVar(&c.Size, "size", 200+bench.IDBytes, "bytes of a frame")
	f.IntVar(&c.Rounds, "rounds", 5, "starts of each")
	f.DurationVar(&c.Settle, "settle", 2*time.Second, "wait before looks at the host's memory")
	return cmd
}

func benchDrafts(o *options) *cobra.Command {
	var c bench.DraftsConfig
	cmd := &cobra.Command{
		Use: "drafts", Short: "Measure answers that are shown while they are made", Args: cobra.NoArgs,
		Long: "Let an agent answer many users at once in drafts, for adapters that show streams and for adapters that edit, in\n" +
			"turns with a bare echo to which as many frames are written in the same way. Exits with 1 if an answer is lost,\n" +
			"doubled or wrong, or if a draft is shown behind a later one.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Dir = o.dir
			return runBench(cmd, o, &c.Exe, &c.Progress, func() (verdict, error) {
				r, err := bench.Drafts(cmd.Context(), c)
				return verdict{&r, r.Clean(), r.Print}, err
			})
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Streams, "streams", 50, "answers at once, each for an adapter of its own")
	f.IntVar(&c.Drafts, "drafts", 100, "drafts of an answer")
	f.DurationVar(&c.Every, "every", 20*time.Millisecond, "between two drafts, where they are not written as fast as the agent can")
	f.DurationVar(&c.EditInterval, "edit-interval", 150*time.Millisecond, "what adapters that edit ask for in their profile")
	f.IntVar(&c.Rounds, "rounds", 5, "rounds of each")
	return cmd
}
