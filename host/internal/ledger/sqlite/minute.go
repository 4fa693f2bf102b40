package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
)

const (
	// minuteStep is how many rows of minutes one transaction writes: commits of
	// messages wait for it.
	minuteStep = 50
	// minuteSweep is how many old ones it deletes, at most.
	minuteSweep = 200
)

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// SaveMinutes adds what happened in one minute to what is known of it, and forgets
// what is too old. It gives way to messages between its transactions, of which
// there is one if the channels are not many. Channels that were deleted meanwhile
// are left out.
func (s *Store) SaveMinutes(ctx context.Context, all []tally.Minute) error {
	before := minuteOf(s.now().Add(-tally.KeepMinutes))
	for steps := slices.Collect(slices.Chunk(all, minuteStep)); ; {
		var rows []tally.Minute
		if len(steps) > 0 {
			rows, steps = steps[0], steps[1:]
		}
		var swept int64
		var worked time.Duration
		err := s.changeBeside(func(q *db.Queries) error {
			began := time.Now()
			defer func() { worked = time.Since(began) }()
			for i := range rows {
				if err := putMinute(ctx, q, rows[i]); err != nil {
					return err
				}
			}
			var err error
			swept, err = q.DeleteMinutes(ctx, db.DeleteMinutesParams{Before: before, N: minuteSweep})
			return err
		})
		if err != nil {
			return fmt.Errorf("write minutes: %w", err)
		}
		if len(steps) == 0 && swept < minuteSweep {
			return nil
		}
		rest(ctx, worked)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func putMinute(ctx context.Context, q *db.Queries, m tally.Minute) error {
	at := minuteOf(m.At)
	known, err := q.MinuteOf(ctx, db.MinuteOfParams{Channel: m.Channel, At: at})
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return err
	default: // the host was started in it, or is about to end
		was, err := minute(known)
		if err != nil {
			return err
		}
		m.Add(&was)
		m.Queue = max(m.Queue, was.Queue)
	}
	return q.PutMinute(ctx, db.PutMinuteParams{
		Channel: m.Channel, At: at, Received: m.Received, Sent: m.Sent, Failed: m.Failed, Refused: m.Refused, Queue: m.Queue,
		Latency: m.Latency.Append(nil),
	})
}

func minute(r db.Minute) (tally.Minute, error) {
	latency, err := tally.Parse(r.Latency)
	if err != nil {
		return tally.Minute{}, fmt.Errorf("minute %d of channel %d: %w", r.At, r.Channel, err)
	}
	return tally.Minute{
		Channel: r.Channel, At: time.Unix(r.At*60, 0).UTC(), Received: r.Received, Sent: r.Sent, Failed: r.Failed, Refused: r.Refused, Queue: r.Queue,
		Latency: latency,
	}, nil
}

// Minutes reads the minutes of a channel, or of AllChannels, that begin from first
// on and before past, oldest first. One in which nothing happened is not there.
func (s *Store) Minutes(ctx context.Context, channel int64, first, past time.Time) ([]tally.Minute, error) {
	rows, err := s.read.Minutes(ctx, db.MinutesParams{Channel: channel, First: minuteOf(first), Past: minuteOf(past)})
	if err != nil {
		return nil, failed("read minutes", err)
	}
	out := make([]tally.Minute, len(rows))
	for i, r := range rows {
		if out[i], err = minute(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}
