// Package steady notes moments by the clock that nobody can set.
package steady

import (
	"sync/atomic"
	"time"
)

// started is what moments are measured from.
var started = time.Now()

// Moment is a time that one goroutine notes and others read. It is of the steady
// clock: a wall clock that is set must neither end a connection nor keep a dead
// one alive.
type Moment struct{ since atomic.Int64 }

// Note makes the moment now.
func (m *Moment) Note() { m.since.Store(int64(time.Since(started))) }

// Time is the moment that was noted last.
func (m *Moment) Time() time.Time { return started.Add(time.Duration(m.since.Load())) }

// Take tells how long ago the moment was, at least 1 ns, and forgets it;
// false = none was noted since the last Take.
func (m *Moment) Take() (time.Duration, bool) {
	at := m.since.Swap(0)
	return max(1, time.Since(started)-time.Duration(at)), at != 0
}
