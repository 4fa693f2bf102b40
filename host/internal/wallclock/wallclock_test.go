package wallclock

import (
	"testing"
	"time"
)

func TestDrift(t *testing.T) {
	wall, gone := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), time.Duration(0)
	c := New(func() time.Time { return wall })
	c.Steady = func() time.Duration { return gone }
	for _, step := range []struct {
		what     string
		set, by  time.Duration // the wall clock is set by one, then both go on by the other
		expected time.Duration
	}{
		{"time goes by", 0, time.Hour, 0},
		{"set ahead", 24 * time.Hour, time.Minute, 24 * time.Hour},
		{"set back", -36 * time.Hour, time.Minute, -12 * time.Hour},
		{"and on", 0, 100 * time.Hour, -12 * time.Hour},
	} {
		wall, gone = wall.Add(step.set+step.by), gone+step.by
		if got := c.Drift(); got != step.expected {
			t.Errorf("%s: %s, want %s", step.what, got, step.expected)
		}
	}
}

// A moment keeps its distance from now, whatever the wall clock was set to meanwhile.
func TestAt(t *testing.T) {
	began := time.Now()
	moment := began.Add(time.Minute) // by the steady clock
	now := began.Add(time.Hour)
	if got := At(moment, now); !got.Equal(moment) {
		t.Errorf("of a clock that was not set: %s, want %s", got, moment)
	}
	if read := moment.Round(0).Add(-time.Hour); !At(read, now).Equal(read) {
		t.Error("a moment of the wall clock was changed")
	}
}
