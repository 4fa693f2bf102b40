package bench

import (
	"strings"
	"testing"
	"time"
)

func TestStreamsGiveEveryFrameBack(t *testing.T) {
	c := StreamConfig{Windows: []int{1, 64}, Size: 200, Rounds: 2, Duration: 100 * time.Millisecond, Progress: func(line string) { t.Log(line) }}
	r, err := Streams(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Scenarios) != len(c.Windows) {
		t.Fatalf("%d scenarios, want %d", len(r.Scenarios), len(c.Windows))
	}
	for _, s := range r.Scenarios {
		for _, target := range s.Targets {
			if target.Throughput.Min <= 0 || target.P50.Min <= 0 || target.Total.Sent == 0 {
				t.Errorf("%s %s has no figures: %+v", s.Name(), target.Name, target)
			}
		}
		if s.Targets[0].Ratio == nil {
			t.Errorf("%s has no ratio", s.Name())
		}
	}
}

func TestStreamsRefuse(t *testing.T) {
	good := StreamConfig{Windows: []int{1}, Size: 200, Rounds: 1, Duration: time.Second}
	for what, change := range map[string]func(*StreamConfig){
		"rounds":     func(c *StreamConfig) { c.Rounds = 0 },
		"duration":   func(c *StreamConfig) { c.Duration = 0 },
		"in flight":  func(c *StreamConfig) { c.Windows = []int{0} },
		"frame size": func(c *StreamConfig) { c.Size = 0 },
	} {
		c := good
		change(&c)
		if _, err := Streams(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), what+": found") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
