package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"
)

const (
	// MaxDeadCounted bounds what a count of dead letters looks at: at 5 µs each it
	// takes a quarter of a second.
	MaxDeadCounted = 50_000
	// deadCheap is how long a count may take that is made anew each time.
	deadCheap = 10 * time.Millisecond
	// deadRest is how much longer than it took a count holds that took longer.
	deadRest = 9
)

// Dying is a channel, by its key, and a reason why messages of it are dead.
type Dying struct {
	Channel int64
	Reason  Reason
}

// DeadCounts is how many dead letters there are. It must not be changed.
type DeadCounts struct {
	Of    map[Dying]int64
	Whole bool // all were counted; else there are more, older than the newest MaxDeadCounted
}

// ByChannel are the counts of channels, by their keys.
func (c DeadCounts) ByChannel() map[int64]int64 {
	out := map[int64]int64{}
	for d, n := range c.Of {
		out[d.Channel] += n
	}
	return out
}

// Total is the count of all.
func (c DeadCounts) Total() (n int64) {
	for _, of := range c.Of {
		n += of
	}
	return n
}

// deadCounter keeps a count that was dear for as long as it is worth it, so that
// pages which ask again and again take a tenth of a reader at most.
type deadCounter struct {
	mu    sync.Mutex // held while one counts; the others take what it found
	found DeadCounts
	until time.Time
	most  int // that are looked at; 0 = MaxDeadCounted
}

// CountDead counts the dead letters. While there are tens of thousands of them the
// count may be some seconds old.
func (s *Store) CountDead(ctx context.Context) (DeadCounts, error) {
	c := &s.deadCounter
	c.mu.Lock()
	defer c.mu.Unlock()
	began := time.Now()
	if began.Before(c.until) {
		return c.found, nil
	}
	found, err := countDead(ctx, s.readDB, cmp.Or(c.most, MaxDeadCounted))
	if err != nil {
		return found, err
	}
	if took := time.Since(began); took > deadCheap {
		c.found, c.until = found, time.Now().Add(deadRest*took)
	}
	return found, nil
}

// countDead reads the index of dead letters from its newest entry. What was refused
// on its way in stands there too, and is none.
func countDead(ctx context.Context, d *sql.DB, most int) (DeadCounts, error) {
	out := DeadCounts{Of: map[Dying]int64{}}
	rows, err := d.QueryContext(ctx, "SELECT channel, coalesce(reason, ''), coalesce(direction = 1 OR reason <> ?, 0), count(*) FROM ("+
		"SELECT channel, direction, reason FROM message WHERE state IN (5, 6) ORDER BY id DESC LIMIT ?) "+
		"GROUP BY 1, 2, 3", string(ReasonRejected), most)
	if err != nil {
		return out, fmt.Errorf("count dead letters: %w", err)
	}
	defer func() { _ = rows.Close() }()
	looked := int64(0)
	for rows.Next() {
		var of Dying
		var dead bool
		var n int64
		if err := rows.Scan(&of.Channel, &of.Reason, &dead, &n); err != nil {
			return out, fmt.Errorf("count dead letters: %w", err)
		}
		if looked += n; dead {
			out.Of[of] = n
		}
	}
	if err := rows.Err(); err != nil {
		return out, fmt.Errorf("count dead letters: %w", err)
	}
	out.Whole = looked < int64(most)
	return out, nil
}
