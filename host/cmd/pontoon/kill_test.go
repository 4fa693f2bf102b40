package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/torture"
	"github.com/pontoon-bridge/pontoon/tools/bench"
)

// What was answered before a SIGKILL is there after it, with adapters of
// protocol 1.0: `bench kill`.
func TestTortureKill(t *testing.T) {
	t.Parallel()
	r, err := bench.Kill(t.Context(), killConfig(t, 5))
	if err != nil {
		t.Fatal(err)
	}
	logReport(t, r.Print)
	torture.Report(t, torture.Row{
		Fault: "`kill -9`, protocol 1.0", Tried: fmt.Sprintf("%d kills, %d answered", r.Kills, r.Answered),
		Lost: r.Lost + r.Torn + r.Gaps, Duplicated: r.Duplicated, Disordered: r.Disordered,
	})
	if !r.OK() || r.Kills < 5 {
		t.Error("something that was answered is lost or changed")
	}
}

// Adapters that acknowledge lose nothing to a SIGKILL, either way, and get
// nothing twice but what they acknowledged last: `bench kill --acks`.
func TestTortureKillAcks(t *testing.T) {
	for _, ahead := range []int{1, 16} {
		t.Run(fmt.Sprintf("%d in flight", ahead), func(t *testing.T) {
			t.Parallel()
			killAcks(t, ahead)
		})
	}
}

func killAcks(t *testing.T, ahead int) {
	c := killConfig(t, 4)
	c.Ahead = ahead
	r, err := bench.KillAcks(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	logReport(t, r.Print)
	torture.Report(t, torture.Row{
		Fault: fmt.Sprintf("`kill -9`, adapters with `ack`, %d in flight", ahead), Tried: fmt.Sprintf("%d kills, %d asked; %d repeats dropped; %d answers sent again", r.Kills, r.Asked, r.Dropped, r.Again+r.Repeated),
		Lost: r.Lost + r.Unsettled, Duplicated: r.Duplicated + r.Overtaken, Disordered: r.Disordered,
		Recovery: spread(r.Recovery),
	})
	switch {
	case !r.OK() || r.Kills < 4:
		t.Error("the host did not keep its word")
	case r.Again == 0:
		t.Error("nothing was sent again: the test shows nothing")
	}
}

// All adapters are cut off and come back at once: `bench storm`.
func TestTortureStorm(t *testing.T) {
	t.Parallel()
	adapters := torture.Times(200, 5000)
	r, err := bench.Storm(t.Context(), bench.StormConfig{
		Exe: pontoonBinary, Dir: t.TempDir(), Adapters: adapters, Rounds: torture.Times(1, 3), Progress: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	logReport(t, r.Print)
	for _, way := range []struct {
		name  string
		after bench.Spread
	}{{"connections reset", r.Reset}, {"adapters come twice, the old ones replaced", r.Silent}, {"host killed", r.Killed}} {
		torture.Report(t, torture.Row{
			Fault: fmt.Sprintf("reconnect storm, %s", way.name), Tried: fmt.Sprintf("%d adapters, %d rounds", adapters, r.Rounds),
			Lost: r.Lost, Recovery: spread(way.after),
		})
	}
	if !r.OK() {
		t.Error("somebody did not come back, or a slot is stale")
	}
}

func killConfig(t *testing.T, rounds int) bench.KillConfig {
	return bench.KillConfig{Exe: pontoonBinary, Dir: t.TempDir(), Rounds: torture.Times(rounds, 100), Conns: torture.Times(4, 8), Progress: func(line string) { t.Log(line) }}
}

func logReport(t *testing.T, print func(io.Writer) error) {
	t.Helper()
	var text strings.Builder
	if err := print(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
}

// spread is the median and the longest, in seconds, as durations.
func spread(s bench.Spread) []time.Duration {
	return []time.Duration{time.Duration(s.Min * float64(time.Second)), time.Duration(s.Median * float64(time.Second)), time.Duration(s.Max * float64(time.Second))}
}
