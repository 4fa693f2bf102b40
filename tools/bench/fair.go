package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// FairConfig is what Fair runs.
type FairConfig struct {
	Exe      string
	Dir      string // where the host's data directory is made; "" = the system's
	Culprits []string
	Conns    int     // adapters that are measured
	Rate     float64 // of their messages a second, all together; 0 = as many as are answered
	Window   int     // messages that each has in flight where Rate is 0
	Rounds   int
	Duration time.Duration // of one measurement; two a round
	History  int           // messages of the channel whose history is read
	Progress func(line string)
}

func (c *FairConfig) validate() error {
	for _, v := range []struct {
		what             string
		found, low, high int
	}{
		{"rounds", c.Rounds, 1, maxRounds},
		{"messages of history", c.History, 2, maxMessages},
		{"rate", int(c.Rate), 0, maxRate},
	} {
		if v.found < v.low || v.found > v.high {
			return fmt.Errorf("%s: found %d, expected %d to %d", v.what, v.found, v.low, v.high)
		}
	}
	if c.Duration < time.Millisecond || c.Duration > maxDuration {
		return fmt.Errorf("duration: found %s, expected 1 ms to %s", c.Duration, maxDuration)
	}
	for _, name := range c.Culprits {
		if !slices.Contains(CulpritNames, name) {
			return fmt.Errorf("culprit: found %q, expected one of %s", name, strings.Join(CulpritNames, ", "))
		}
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	return c.scenario().validate()
}

func (c *FairConfig) scenario() Scenario {
	return Scenario{Conns: c.Conns, Window: max(1, c.Window), Conversations: 1, Size: 200, Rate: c.Rate}
}

// culpritRate is how many frames a second the channel of the one that floods may
// take.
const culpritRate = 1000

// FairReport is what others noticed of each culprit.
type FairReport struct {
	Machine
	Scenario
	Rounds   int             `json:"rounds"`
	Seconds  float64         `json:"seconds"`
	Culprits []CulpritReport `json:"culprits"`
}

// CulpritReport compares the others with and without one culprit.
type CulpritReport struct {
	Name    string       `json:"name"`
	Ratio   Spread       `json:"p99_ratio"`        // with ÷ without, of the same round
	Answers Spread       `json:"throughput_ratio"` // with ÷ without; says something where Rate is 0
	Without TargetReport `json:"without"`
	With    TargetReport `json:"with"`
	Did     Deeds        `json:"did"` // the culprit, over all rounds
}

// Clean reports whether none of the others' messages was lost, doubled, refused
// or out of order, and every culprit did what it is there for.
func (r *FairReport) Clean() bool {
	for _, c := range r.Culprits {
		if !c.Without.Total.Clean() || !c.With.Total.Clean() || c.Did.Acts == 0 {
			return false
		}
	}
	return len(r.Culprits) > 0
}

// fair is one host, its adapters and its culprits.
type fair struct {
	FairConfig
	dir    string
	host   *child
	target target
	tokens []string // of the culprits
	runs   int
}

// Fair measures adapters under a moderate load, in turns without and with one
// culprit beside them. Each culprit is a process of its own, which yields the
// processor to all others: what is measured is what the host does for it.
func Fair(ctx context.Context, c FairConfig) (r FairReport, err error) {
	if err := c.validate(); err != nil {
		return r, err
	}
	f := &fair{FairConfig: c}
	defer f.stop()
	if err := f.start(ctx); err != nil {
		return r, err
	}
	r = FairReport{Machine: DescribeMachine(f.dir), Scenario: c.scenario(), Rounds: c.Rounds, Seconds: c.Duration.Seconds()}
	for i, name := range f.Culprits {
		one, err := f.compare(ctx, i, name)
		if err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		r.Culprits = append(r.Culprits, one)
	}
	return r, nil
}

func (f *fair) start(ctx context.Context) (err error) {
	if f.dir, err = os.MkdirTemp(f.Dir, "pontoon-bench-"); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if f.host, err = startHost(ctx, f.Exe, f.dir); err != nil {
		return err
	}
	victims, err := provision(ctx, f.host, "other", f.Conns)
	if err != nil {
		return err
	}
	f.target = target{"others", f.host.bridge(), victims, f.host.pid()}
	f.Progress(fmt.Sprintf("making %d messages of history", f.History))
	fill := Scenario{Conns: 1, Window: 64, Conversations: 1, Size: 200}
	for _, name := range f.Culprits {
		settings := map[string]any{"agent": "echo"}
		if name == culpritFlood {
			settings["rate_limit"] = culpritRate
		}
		tokens, err := provisionAs(ctx, f.host, name, 1, settings)
		if err != nil {
			return err
		}
		f.tokens = append(f.tokens, tokens[0])
		if name != culpritHistory {
			continue
		}
		if _, err := f.measure(ctx, target{name, f.host.bridge(), tokens, 0}, fill, span{maxDuration, f.History / 2, grace}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fair) stop() {
	if f.host != nil {
		f.host.stop()
	}
	if f.dir != "" {
		_ = os.RemoveAll(f.dir)
	}
}

func (f *fair) measure(ctx context.Context, t target, s Scenario, d span) (Sample, error) {
	f.runs++
	return measure(ctx, t, s, f.runs, d)
}

// compare measures in turns; what comes first changes with the round.
func (f *fair) compare(ctx context.Context, i int, name string) (CulpritReport, error) {
	r := CulpritReport{Name: name}
	var with, without []Sample
	var ratios, answers []float64
	for round := range f.Rounds {
		f.Progress(fmt.Sprintf("%s: round %d of %d", name, round+1, f.Rounds))
		for turn := range 2 {
			if (turn+round)%2 == 0 {
				s, err := f.measure(ctx, f.target, f.scenario(), span{f.Duration, 0, grace})
				if err != nil {
					return r, err
				}
				without = append(without, s)
				continue
			}
			s, did, err := f.beside(ctx, i, name)
			if err != nil {
				return r, err
			}
			with = append(with, s)
			r.Did.add(did)
		}
		ratios = append(ratios, with[round].P99/without[round].P99)
		answers = append(answers, with[round].Throughput/without[round].Throughput)
	}
	r.Ratio, r.Answers = SpreadOf(ratios), SpreadOf(answers)
	r.With, r.Without = summarize("with", with), summarize("without", without)
	return r, nil
}

// beside measures while a culprit is at it.
func (f *fair) beside(ctx context.Context, i int, name string) (s Sample, did Deeds, err error) {
	work, err := json.Marshal(culpritWork{Name: name, URL: f.host.url, Bridge: f.host.bridge(), Token: f.tokens[i], Channel: channelName(name, 0), Data: f.dir})
	if err != nil {
		return s, did, fmt.Errorf("encode work: %w", err)
	}
	c, err := spawnRole(roleCulprit, string(work))
	if err != nil {
		return s, did, err
	}
	defer c.kill()
	if err := c.ready(ctx); err != nil {
		return s, did, err
	}
	wait(ctx, c.ended, f.Duration) // a flood may send much before its limit counts
	if s, err = f.measure(ctx, f.target, f.scenario(), span{f.Duration, 0, grace}); err != nil {
		return s, did, err
	}
	c.stop()
	if err := json.Unmarshal([]byte(c.said.String()), &did); err != nil {
		return s, did, fmt.Errorf("culprit ended with: %s", c.said.String())
	}
	return s, did, nil
}

// Print writes the report for people.
func (r *FairReport) Print(w io.Writer) error {
	load := fmt.Sprintf("%g messages a second together", r.Rate)
	if r.Rate == 0 {
		load = fmt.Sprintf("%d messages in flight each", r.Window)
	}
	fmt.Fprintf(w, "%s\n%d adapters, %s; %d rounds of 2 × %gs, in turns without and with; median (min–max); µs\n\n",
		r.Machine, r.Conns, load, r.Rounds, r.Seconds)
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(tab, "CULPRIT\tP99 WITH ÷ WITHOUT\tANSWERS/S WITH ÷ WITHOUT\tP99 WITHOUT\tP99 WITH\tP50 WITHOUT\tP50 WITH\tIT DID\tLOST\tTWICE\tDISORDER")
	for _, c := range r.Culprits {
		t := c.With.Total
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", c.Name, c.Ratio.Show(2), c.Answers.Show(2), c.Without.P99.Show(0), c.With.P99.Show(0),
			Number(c.Without.P50.Median, 0), Number(c.With.P50.Median, 0), c.Did, t.Lost, t.Duplicated, t.Disordered)
	}
	return tab.Flush()
}
