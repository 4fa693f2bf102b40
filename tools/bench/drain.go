package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// DrainConfig is what Drain runs.
type DrainConfig struct {
	Exe           string
	Dir           string // where the host's data directory is made; "" = the system's
	Queued        int    // messages of one measurement
	Conversations []int
	InFlight      []int // messages of a conversation that the adapter takes ahead
	Size          int   // bytes of a frame
	Rounds        int
	Duration      time.Duration // of one measurement of the bare echo
	Progress      Progress
}

// Bounds of a drain.
const (
	maxQueued = 1_000_000 // what a channel's queue may be allowed
	// maxAhead bounds what the bare echo has in flight on the connection beside.
	maxAhead = 512
	// drainPatience is how long a queue may stand still before the rest counts as lost.
	drainPatience = 20 * time.Second
)

func (c *DrainConfig) validate() error {
	if err := checkSpan(c.Rounds, c.Duration); err != nil {
		return err
	}
	if c.Queued < 1 || c.Queued > maxQueued {
		return fmt.Errorf("queued: found %d, expected 1 to %d", c.Queued, maxQueued)
	}
	if len(c.Conversations) == 0 || len(c.InFlight) == 0 {
		return fmt.Errorf("found %d conversations and %d in flight, expected at least one of each", len(c.Conversations), len(c.InFlight))
	}
	for _, s := range c.scenarios() {
		if s.Acks < 1 || s.Conversations > c.Queued {
			return fmt.Errorf("%d conversations, %d in flight: expected at least one in flight and a message for each conversation", s.Conversations, s.Acks)
		}
		if err := s.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (c *DrainConfig) scenarios() []Scenario {
	var all []Scenario
	for _, conversations := range c.Conversations {
		for _, ahead := range c.InFlight {
			all = append(all, Scenario{
				Conns: 1, Window: min(conversations*ahead, maxAhead), Conversations: conversations, Size: c.Size, Acks: ahead,
				Label: fmt.Sprintf("%s queued in %d conversations, acks (%d)", Number(float64(c.Queued), 0), conversations, ahead),
			})
		}
	}
	return all
}

// drained is what a full queue must come to, by the conversations that it is of: one
// has a commit between any 16 messages, of many the commits are shared.
func drained(s Scenario) []goal {
	if s.Acks < 16 {
		return nil
	}
	if s.Conversations < 16 {
		return []goal{throughputOf(0.05)}
	}
	return []goal{throughputOf(0.2)}
}

// Drain lets messages wait for an adapter that acknowledges, attaches it, and measures
// until it has all of them; in turns with the bare echo, with as many frames in flight.
func Drain(ctx context.Context, c DrainConfig) (r LoadReport, err error) {
	if err := c.validate(); err != nil {
		return r, err
	}
	d, err := startDuel(ctx, c.Exe, c.Dir)
	if err != nil {
		return r, err
	}
	defer d.stop()
	r = LoadReport{Machine: DescribeMachine(d.dir), Rounds: c.Rounds, Seconds: c.Duration.Seconds(), Messages: c.Queued, Base: "RAW"}
	run := 0
	for _, s := range c.scenarios() {
		one, err := inTurns(ctx, s, c.Rounds, c.Progress,
			way{"host", func(ctx context.Context, _ int) (Sample, error) {
				run++
				return d.drain(ctx, s, run, c.Queued)
			}},
			way{"raw", func(ctx context.Context, _ int) (Sample, error) {
				run++
				return measure(ctx, d.bare(), s, run, span{c.Duration, 0, grace})
			}})
		if err != nil {
			return r, fmt.Errorf("%s: %w", s.Name(), err)
		}
		r.Scenarios, r.Goals = append(r.Scenarios, one), slices.Concat(r.Goals, one.judge(drained(s)...))
	}
	return r, nil
}

// drain fills the queue of a fresh channel and measures how it empties. Latency counts
// from the moment of attaching.
func (d *duel) drain(ctx context.Context, s Scenario, run, n int) (Sample, error) {
	prefix := fmt.Sprintf("drain-%d", run)
	tokens, err := provisionAs(ctx, d.host, prefix, 1, backlogChannel(n, "echo"))
	if err != nil {
		return Sample{}, err
	}
	b, err := fillBacklog(ctx, d.hosted(tokens...), s, run, n)
	if err != nil {
		return Sample{}, fmt.Errorf("fill the queue: %w", err)
	}
	if found, err := d.rest.waiting(ctx, channelName(prefix, 0)); err != nil || found != n {
		return Sample{}, fmt.Errorf("found %d messages in the queue, expected %d: %w", found, n, err)
	}
	before, began := usageOf(d.host.pid()), now()
	if err := b.attach(ctx, run); err != nil {
		return Sample{}, err
	}
	defer b.peer.close()
	if err := b.take(n, drainPatience); err != nil {
		return Sample{}, fmt.Errorf("after %d of %d answers: %w", b.peer.answered, n, err)
	}
	return sampleOf(talliesOf([]*peer{b.peer}), now()-began, before, usageOf(d.host.pid())), nil
}
