package bench

import (
	"strings"
	"testing"
	"time"
)

// Whatever waits comes once and in order, of one conversation and of several.
func TestDrain(t *testing.T) {
	c := DrainConfig{
		Exe: exe(t), Dir: t.TempDir(), Queued: 300, Conversations: []int{1, 20}, InFlight: []int{1, 16}, Size: 300,
		Rounds: 1, Duration: 50 * time.Millisecond, Progress: func(line string) { t.Log(line) },
	}
	r, err := Drain(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Print(t.Output()); err != nil {
		t.Error(err)
	}
	if !r.Clean() || len(r.Scenarios) != 4 || len(r.Goals) != 2 {
		t.Errorf("found %d loads and %d goals: %+v", len(r.Scenarios), len(r.Goals), r)
	}
	for _, s := range r.Scenarios {
		if host := s.Targets[0]; host.Total != (Count{Sent: 300, Answered: 300}) || host.Throughput.Min <= 0 || host.Ratio == nil {
			t.Errorf("%s: found %+v, expected each of 300 messages once", s.Name(), host)
		}
	}
	c.Queued = 0
	if _, err := Drain(t.Context(), c); err == nil || !strings.Contains(err.Error(), "queued") {
		t.Errorf("nothing queued: found %v", err)
	}
}
