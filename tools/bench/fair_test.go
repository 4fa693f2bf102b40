package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
)

// Every culprit does its worst, and nobody loses a message by it. What it costs
// them is for a longer run to say.
func TestFair(t *testing.T) {
	r, err := Fair(t.Context(), FairConfig{
		Exe: exe(t), Culprits: CulpritNames, Dir: t.TempDir(), Conns: 2, Rate: 200, Rounds: 1, Duration: 200 * time.Millisecond, History: 2000, Audited: 50, Queued: 300, Progress: func(line string) { t.Log(line) },
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
		checkDeeds(t, c)
	}
	if len(r.Goals) != len(CulpritNames)-1 || r.Goals[0].Load == culpritNobody || !strings.Contains(text.String(), "p99 with ÷ without") {
		t.Errorf("found %d goals, expected one for each culprit that does something", len(r.Goals))
	}
}

// checkDeeds looks whether a culprit's load arrived where it is meant to.
func checkDeeds(t *testing.T, c CulpritReport) {
	t.Helper()
	did := c.Did
	ok := true
	switch c.Name {
	case culpritFloodAcks:
		ok = did.Back > 0 && did.Own.Refused > 0
	case culpritSlow, culpritSlowBeside:
		ok = did.Held > agentwire.Window && did.Held <= slowTurns && did.Back == did.Acts
	case culpritFloodAgent:
		ok = did.Held == agentwire.Window && did.Back > 0
	case culpritDrain:
		ok = did.Own == Count{Sent: 300, Answered: 300} && len(did.Took) == 1
	case culpritExport:
		ok = did.Back >= 50
	}
	if !ok {
		t.Errorf("%s: did %+v", c.Name, did)
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
		"audit":       func(c *FairConfig) { c.Audited = -1 },
		"queued":      func(c *FairConfig) { c.Queued = 0 },
	} {
		c := FairConfig{Exe: "none", Conns: 1, Rate: 1, Rounds: 1, Duration: time.Second, History: 2, Queued: 1}
		change(&c)
		if _, err := Fair(t.Context(), c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: found error %v, expected one that names it", name, err)
		}
	}
}
