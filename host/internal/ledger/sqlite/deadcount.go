package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

const (
	// deadCheap is how long a count may take that is made anew each time.
	deadCheap = 10 * time.Millisecond
	// deadRest is how much longer than it took a count holds that took longer.
	deadRest = 9
)

// deadCounter keeps a count that was dear for as long as it is worth it, so that
// pages which ask again and again take a tenth of a reader at most.
type deadCounter struct {
	mu    sync.Mutex // held while one counts; the others take what it found
	found ledger.DeadCounts
	until time.Time
	most  int // that are looked at; 0 = MaxDeadCounted
}

// CountDead counts the dead letters. While there are tens of thousands of them the
// count may be some seconds old.
func (s *Store) CountDead(ctx context.Context) (ledger.DeadCounts, error) {
	c := &s.deadCounter
	c.mu.Lock()
	defer c.mu.Unlock()
	began := time.Now()
	if began.Before(c.until) {
		return c.found, nil
	}
	found, err := countDead(ctx, s.readDB, cmp.Or(c.most, ledger.MaxDeadCounted))
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
func countDead(ctx context.Context, d *sql.DB, most int) (ledger.DeadCounts, error) {
	out := ledger.DeadCounts{Of: map[ledger.Dying]int64{}}
	rows, err := d.QueryContext(ctx, "SELECT channel, coalesce(reason, ''), coalesce(direction = 1 OR reason <> ?, 0), count(*) FROM ("+
		"SELECT channel, direction, reason FROM message WHERE state IN (5, 6) ORDER BY id DESC LIMIT ?) "+
		"GROUP BY 1, 2, 3", string(ledger.ReasonRejected), most)
	if err != nil {
		return out, failed("count dead letters", err)
	}
	defer func() { _ = rows.Close() }()
	looked := int64(0)
	for rows.Next() {
		var of ledger.Dying
		var dead bool
		var n int64
		if err := rows.Scan(&of.Channel, &of.Reason, &dead, &n); err != nil {
			return out, failed("count dead letters", err)
		}
		if looked += n; dead {
			out.Of[of] = n
		}
	}
	if err := rows.Err(); err != nil {
		return out, failed("count dead letters", err)
	}
	out.Whole = looked < int64(most)
	return out, nil
}
