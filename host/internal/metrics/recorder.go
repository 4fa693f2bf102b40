package metrics

import (
	"context"
	"log/slog"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
)

// Recorder writes down once a minute what happened in it, for pictures.
type Recorder struct {
	Store Ledger
	Hub   *hub.Hub
	Log   *slog.Logger
	Now   func() time.Time

	begun  time.Time // the stretch that is not written down yet
	before map[int64]hub.ChannelTally
}

// Serve records until ctx ends. Close must be called after it.
func (r *Recorder) Serve(ctx context.Context) error {
	r.begun = r.Now()
	for {
		next := time.NewTimer(r.untilMinute())
		select {
		case <-ctx.Done():
			next.Stop()
			return nil
		case <-next.C:
			r.record(ctx)
		}
	}
}

// untilMinute is how long the minute lasts that the stretch began in.
func (r *Recorder) untilMinute() time.Duration {
	left := r.begun.Truncate(time.Minute).Add(time.Minute).Sub(r.Now())
	return min(max(left, 0), time.Minute) // the clock may have been set
}

// Close records what Serve has not, of a minute that is not over.
func (r *Recorder) Close(ctx context.Context) {
	if !r.begun.IsZero() {
		r.record(ctx)
	}
}

// record writes down the stretch since the last time.
func (r *Recorder) record(ctx context.Context) {
	at := r.begun.Truncate(time.Minute)
	r.begun = r.Now()
	now := map[int64]hub.ChannelTally{}
	sum := tally.Minute{Channel: tally.AllChannels, At: at}
	rows := []tally.Minute{}
	for _, t := range r.Hub.TakePeaks() {
		now[t.Key] = t
		m := since(r.before[t.Key], t)
		if m == (tally.Minute{Channel: t.Key}) {
			continue
		}
		m.At = at
		rows = append(rows, m)
		sum.Add(&m)
		sum.Queue += m.Queue
	}
	r.before = now
	if len(rows) > 0 {
		rows = append(rows, sum)
	}
	// Also when there is nothing: what is too old goes.
	if err := r.Store.SaveMinutes(ctx, rows); err != nil && ctx.Err() == nil {
		r.Log.Warn("a minute of the statistics is lost", "minute", at, "error", err)
	}
}

// since is what happened in a channel from before to now.
func since(before, now hub.ChannelTally) tally.Minute {
	m := tally.Minute{
		Channel: now.Key, Received: int64(now.Received - before.Received), Sent: int64(now.Sent - before.Sent),
		Refused: int64(now.Refused - before.Refused + now.Limited - before.Limited), Queue: int64(now.Peak),
		Latency: now.Latency.Since(&before.Latency),
	}
	for i, o := range hub.Outcomes {
		if o.Reason != "" {
			m.Failed += int64(now.Outcomes[i] - before.Outcomes[i])
		}
	}
	return m
}
