package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Every culprit does its worst, and nobody loses a message by it. What it costs
// them is for a longer run to say.
func TestFair(t *testing.T) {
	r, err := Fair(t.Context(), FairConfig{
		Exe: exe(t), Culprits: CulpritNames, Dir: t.TempDir(), Conns: 2, Rate: 200, Rounds: 1, Duration: 200 * time.Millisecond, History: 2000, Progress: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	if !r.Clean() {
		t.Errorf("report is not clean: %+v", r)
	}
	for i, c := range r.Culprits {
		if c.Name != CulpritNames[i] || c.Ratio.Median <= 0 || c.With.Total.Answered == 0 || !strings.Contains(text.String(), c.Name) {
			t.Errorf("culprit %d: found %+v", i, c)
		}
	}
}

func TestFairRefuses(t *testing.T) {
	for name, change := range map[string]func(*FairConfig){
		"rounds":      func(c *FairConfig) { c.Rounds = 0 },
		"history":     func(c *FairConfig) { c.History = 1 },
		"rate":        func(c *FairConfig) { c.Rate = -1 },
		"duration":    func(c *FairConfig) { c.Duration = 0 },
		"culprit":     func(c *FairConfig) { c.Culprits = []string{"me"} },
		"connections": func(c *FairConfig) { c.Conns = 0 },
	} {
		c := FairConfig{Exe: "none", Conns: 1, Rate: 1, Rounds: 1, Duration: time.Second, History: 2}
		change(&c)
		if _, err := Fair(t.Context(), c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: found error %v, expected one that names it", name, err)
		}
	}
}
