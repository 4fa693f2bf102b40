package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Goal is what a scenario must reach, and whether it did: the median counts.
type Goal struct {
	Load    string  `json:"load"`
	Measure string  `json:"measure"`
	AtMost  bool    `json:"at_most"` // else at least
	Limit   float64 `json:"limit"`
	Found   Spread  `json:"found"`
	Met     bool    `json:"met"`
}

type goal struct {
	measure string
	atMost  bool
	limit   float64
	found   func(TargetReport) *Spread
}

func throughputOf(limit float64) goal { return throughputTo("raw", limit) }

// throughputTo is throughputOf beside another base.
func throughputTo(base string, limit float64) goal {
	return goal{"throughput ÷ " + base, false, limit, func(t TargetReport) *Spread { return t.Ratio }}
}

func cpuOf(limit float64) goal {
	return goal{"server CPU µs a message", true, limit, func(t TargetReport) *Spread { return t.ServerCPU }}
}

// goals of the default scenarios.
var goals = map[Scenario][]goal{
	acked(50, 16, 1):                      {throughputOf(0.25), cpuOf(40)},
	acked(50, 16, 20):                     {throughputOf(0.40), cpuOf(25)},
	answeredBy("websocket", 16, 0):        {throughputOf(0.15), cpuOf(60)},
	answeredBy("websocket", 1, pacedRate): {cpuOf(250), {"p50 µs", true, 1200, func(t TargetReport) *Spread { return &t.P50 }}},

	shape(1, 1, 1, false):  {{"p50 ÷ one fsync", true, 1.8, func(t TargetReport) *Spread { return t.SyncRatio }}},
	shape(50, 1, 1, false): {throughputOf(0.23)},
	shape(50, 16, 1, false): {
		throughputOf(0.35),
		cpuOf(12),
		// The same on any machine: where the 12 were set, a bare echo took 3.7.
		{"server CPU ÷ raw", true, 3.2, func(t TargetReport) *Spread { return t.CPURatio }},
	},
	shape(50, 16, 20, false): {throughputOf(0.25)},
	shape(50, 16, 1, true):   {throughputOf(0.28)},
	shape(50, 16, 20, true):  {throughputOf(0.45)},
}

// judgeGoals says of each goal whether the host reached it. What could not be
// measured has none.
func judgeGoals(all []ScenarioReport) []Goal {
	var out []Goal
	for _, s := range all {
		out = append(out, s.judge(goals[s.Scenario]...)...)
	}
	return out
}

// judge compares the first target with goals.
func (s *ScenarioReport) judge(goals ...goal) []Goal {
	var out []Goal
	for _, g := range goals {
		if found := g.found(s.Targets[0]); found != nil {
			out = append(out, NewGoal(s.Name(), g.measure, g.atMost, g.limit, *found))
		}
	}
	return out
}

// NewGoal compares what was found with a limit.
func NewGoal(load, measure string, atMost bool, limit float64, found Spread) Goal {
	met := found.Median >= limit
	if atMost {
		met = found.Median <= limit
	}
	return Goal{load, measure, atMost, limit, found, met}
}

// fewRounds is below what a median is to be judged by.
const fewRounds = 5

// PrintGoals writes the goals as a table for people; nothing if there are none.
func PrintGoals(w io.Writer, all []Goal, rounds int) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(tab, "GOAL\tMEASURE\tLIMIT\tMEDIAN\tMIN\tMAX\t")
	for _, g := range all {
		sign, met := "≥", "met"
		if g.AtMost {
			sign = "≤"
		}
		if !g.Met {
			met = "NOT MET"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s %g\t%s\t%s\t%s\t%s\n", g.Load, g.Measure, sign, g.Limit,
			Number(g.Found.Median, 2), Number(g.Found.Min, 2), Number(g.Found.Max, 2), met)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	if rounds < fewRounds {
		fmt.Fprintf(w, "The medians are of %d rounds: judge by %d or more.\n", rounds, fewRounds)
	}
	return nil
}
