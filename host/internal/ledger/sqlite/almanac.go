package sqlite

import (
	"log/slog"
	"time"
)

// Of a clock that is set ahead while the host runs.
const (
	smallLead   = time.Minute    // less is the clock being kept right
	doubtedJump = 24 * time.Hour // how long it stands before it is believed
)

// almanac is the wall clock as those believe it who delete by age: one that is
// set ahead by mistake would cost messages, so it counts only once it has stood
// for a day. One that is set back counts at once: it deletes less. One goroutine
// uses it.
type almanac struct {
	log    *slog.Logger
	now    func() time.Time
	steady func() time.Duration // goes on, whatever the wall clock is set to

	trusted time.Time     // the wall clock when steady was zero, as far as it is believed
	since   time.Duration // of the jump that is not believed yet; 0 = none
}

func newAlmanac(log *slog.Logger, now func() time.Time) *almanac {
	began := time.Now()
	a := &almanac{log: log, now: now, steady: func() time.Duration { return time.Since(began) }}
	a.trusted = now().Round(0)
	return a
}

// today is the time by which ages are counted.
func (a *almanac) today() time.Time {
	gone := a.steady()
	seen := a.now().Round(0) // without the steady clock that Go keeps beside it
	believed := a.trusted.Add(gone)
	switch ahead := seen.Sub(believed); {
	case ahead <= smallLead, a.since != 0 && gone-a.since >= doubtedJump:
		a.trusted, a.since = seen.Add(-gone), 0
		return seen
	case a.since == 0:
		a.since = max(gone, 1)
		a.log.Warn("the clock was set ahead: messages are not deleted by it for a day", "by", ahead.Round(time.Second).String())
	}
	return believed
}
