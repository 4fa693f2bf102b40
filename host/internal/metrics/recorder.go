package metrics

import (
	"context"
	"log/slog"
	"sync"
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

	mu      sync.Mutex // guards what follows
	begun   time.Time  // the stretch that is not written down yet; zero = nobody records
	before  map[int64]hub.ChannelTally
	writing []tally.Minute // the stretch before it, while it is being written down
	writes  uint64         // counts beginnings and ends of that
}

// Serve records until ctx ends. Close must be called after it.
func (r *Recorder) Serve(ctx context.Context) error {
	r.begin()
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

func (r *Recorder) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = r.Now()
}

// untilMinute is how long the minute lasts that the stretch began in.
func (r *Recorder) untilMinute() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.begun.Truncate(time.Minute).Add(time.Minute).Sub(r.Now())
	return min(max(left, 0), time.Minute) // the clock may have been set
}

// Close records what Serve has not, of a minute that is not over.
func (r *Recorder) Close(ctx context.Context) {
	r.mu.Lock()
	begun := r.begun
	r.mu.Unlock()
	if !begun.IsZero() {
		r.record(ctx)
	}
}

// record writes down the stretch since the last time.
func (r *Recorder) record(ctx context.Context) {
	at, rows := r.cut()
	// Also when there is nothing: what is too old goes.
	if err := r.Store.SaveMinutes(ctx, rows); err != nil && ctx.Err() == nil {
		r.Log.Warn("a minute of the statistics is lost", "minute", at, "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = nil
	r.writes++
}

// cut ends the stretch and begins another one.
func (r *Recorder) cut() (at time.Time, rows []tally.Minute) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at = r.begun.Truncate(time.Minute)
	r.begun = r.Now()
	now := map[int64]hub.ChannelTally{}
	sum := tally.Minute{Channel: tally.AllChannels, At: at}
	for _, t := range r.Hub.TakePeaks() {
		now[t.Key] = t
		m := since(r.before[t.Key], t)
		if m == (tally.Minute{Channel: t.Key}) {
			continue
		}
		m.At = at
		rows = append(rows, m)
		join(&sum, &m)
	}
	r.before = now
	if len(rows) > 0 {
		rows = append(rows, sum)
	}
	r.writing = rows
	r.writes++
	return at, rows
}

// join counts a channel's minute among those of all.
func join(sum, m *tally.Minute) {
	sum.Add(m)
	sum.Queue += m.Queue
}

// Minutes reads the minutes of a channel as the store does, and what happened since
// the last that is there: so what failed a moment ago is counted.
func (r *Recorder) Minutes(ctx context.Context, channel int64, first, past time.Time) ([]tally.Minute, error) {
	for {
		open, written, writes := r.open(channel)
		rows, err := r.Store.Minutes(ctx, channel, first, past)
		if err != nil {
			return nil, err
		}
		if r.wrote() != writes {
			continue // what was open may be among the rows by now
		}
		out := rows[:0]
		for _, m := range rows {
			if !m.At.Equal(written) { // some of it may be there already
				out = append(out, m)
			}
		}
		for _, m := range open {
			if !m.At.Before(first) && m.At.Before(past) {
				out = append(out, m)
			}
		}
		return out, nil
	}
}

func (r *Recorder) wrote() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

// open is what the store does not have of a channel, or of all. written is the minute that
// is being written down, of which it may have a part; zero = none is.
func (r *Recorder) open(channel int64) (rows []tally.Minute, written time.Time, writes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun.IsZero() {
		return nil, time.Time{}, r.writes
	}
	for _, m := range r.writing {
		if m.Channel == channel {
			rows, written = append(rows, m), m.At
		}
	}
	now := tally.Minute{Channel: channel, At: r.begun.Truncate(time.Minute)}
	for _, t := range r.Hub.Tallies() {
		if channel == tally.AllChannels || channel == t.Key {
			m := since(r.before[t.Key], t)
			join(&now, &m)
		}
	}
	return append(rows, now), written, r.writes
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
