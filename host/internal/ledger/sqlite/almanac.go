package sqlite

import (
	"log/slog"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/wallclock"
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
	log   *slog.Logger
	clock *wallclock.Clock

	trusted time.Duration // of the clock's drift, what is believed
	since   time.Duration // of the jump that is not believed yet; 0 = none
}

func newAlmanac(log *slog.Logger, now func() time.Time) *almanac {
	return &almanac{log: log, clock: wallclock.New(now)}
}

// today is the time by which ages are counted.
func (a *almanac) today() time.Time {
	gone, seen := a.clock.Steady(), a.clock.Now().Round(0)
	drift := a.clock.Drift()
	ahead := drift - a.trusted
	switch {
	case ahead <= smallLead, a.since != 0 && gone-a.since >= doubtedJump:
		a.trusted, a.since = drift, 0
		return seen
	case a.since == 0:
		a.since = max(gone, 1)
		a.log.Warn("the clock was set ahead: messages are not deleted by it for a day", "by", ahead.Round(time.Second).String())
	}
	return seen.Add(-ahead)
}
