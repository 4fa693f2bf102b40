// Package wallclock tells how far the wall clock was set while a process runs, by the
// steady clock, which nobody can set.
package wallclock

import "time"

// At is when a moment was by the wall clock of now, to which time.Now has set it: one
// that is noted by the steady clock drifts away from the wall clock, which is kept right.
// A moment without a steady clock's reading stays as it is.
func At(moment, now time.Time) time.Time { return now.Add(moment.Sub(now)) }

// Clock compares the two clocks. Its functions are for who tests with others; nothing
// in it changes while it is used.
type Clock struct {
	Now    func() time.Time     // the wall clock
	Steady func() time.Duration // since New; it goes on whatever the wall clock is set to
	zero   time.Time            // the wall clock at New
}

// New begins to compare; now is the wall clock.
func New(now func() time.Time) *Clock {
	began := time.Now()
	return &Clock{Now: now, Steady: func() time.Duration { return time.Since(began) }, zero: now().Round(0)}
}

// Drift is how far the wall clock was set ahead since New, and less than 0 if it was
// set back. It is never exactly 0: clocks are kept right, a little at a time.
func (c *Clock) Drift() time.Duration {
	return c.Now().Round(0).Sub(c.zero) - c.Steady() // Round: without the steady clock that Go keeps beside it
}
