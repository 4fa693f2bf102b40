package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	Audited  int           // lines of the audit log that is exported, at least
	Queued   int           // messages that wait for the one that comes back
	Progress Progress
}

func (c *FairConfig) validate() error {
	for _, v := range []struct {
		what             string
		found, low, high int
	}{
		{"rounds", c.Rounds, 1, maxRounds},
		{"messages of history", c.History, 2, maxMessages},
		{"lines of the audit log", c.Audited, 0, maxAudited},
		{"queued messages", c.Queued, 1, maxQueued},
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
	return c.scenario().validate()
}

func (c *FairConfig) scenario() Scenario {
	return Scenario{Conns: c.Conns, Window: max(1, c.Window), Conversations: 1, Size: 200, Rate: c.Rate}
}

// culpritRate is how many frames a second the channel of the one that floods may
// take.
const culpritRate = 1000

// fairLimit is by how much a culprit may raise the others' p99.
const fairLimit = 1.2

// FairReport is what others noticed of each culprit.
type FairReport struct {
	Machine
	Scenario
	Rounds   int             `json:"rounds"`
	Seconds  float64         `json:"seconds"`
	Culprits []CulpritReport `json:"culprits"`
	Goals    []Goal          `json:"goals,omitempty"` // none in a closed loop, whose latency is that of its own load
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
// or out of order, and every culprit did what it is there for, nobody nothing. Its own messages may
// be refused.
func (r *FairReport) Clean() bool {
	for _, c := range r.Culprits {
		own := c.Did.Own
		own.Refused = 0
		if !c.Without.Total.Clean() || !c.With.Total.Clean() || (c.Did.Acts == 0) != (c.Name == culpritNobody) || !own.Clean() {
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
	others map[string]target // by the kind of the agent that answers them
	tokens []string          // of the culprits
	keys   map[string]string // of their agents, by the culprit's name
	agents map[string]*child // by their kind
	runs   int
}

// Fair measures adapters under a moderate load, in turns without and with one
// culprit beside them. Each culprit is a process of its own, which yields the
// processor to all others: what is measured is what the host does for it.
func Fair(ctx context.Context, c FairConfig) (r FairReport, err error) {
	if err := c.validate(); err != nil {
		return r, err
	}
	f := &fair{FairConfig: c, others: map[string]target{}, keys: map[string]string{}, agents: map[string]*child{}}
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
		if f.Rate > 0 && name != culpritNobody {
			r.Goals = append(r.Goals, NewGoal(name, "p99 with ÷ without", true, fairLimit, one.Ratio))
		}
	}
	return r, nil
}

func (f *fair) measure(ctx context.Context, t target, s Scenario, d span) (Sample, error) {
	f.runs++
	return measure(ctx, t, s, f.runs, d)
}

// compare measures in turns; what comes first changes with the round. One measurement
// before does not count: it finds everything new.
func (f *fair) compare(ctx context.Context, i int, name string) (CulpritReport, error) {
	r := CulpritReport{Name: name}
	others := f.others[culprits[name].others]
	var with, without []Sample
	var ratios, answers []float64
	if _, err := f.measure(ctx, others, f.scenario(), span{f.Duration, 0, grace}); err != nil {
		return r, err
	}
	for round := range f.Rounds {
		f.Progress.say(fmt.Sprintf("%s: round %d of %d", name, round+1, f.Rounds))
		for turn := range 2 {
			who := name
			if (turn+round)%2 == 0 {
				who = culpritNobody
			}
			s, did, err := f.beside(ctx, i, who, culprits[name].once, others)
			if err != nil {
				return r, err
			}
			if (turn+round)%2 == 0 {
				without = append(without, s)
				continue
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

// beside measures others while a culprit is at it, or nobody: both with a process that is
// started and a pause, since a host answers faster in the midst of a load than behind a
// rest. With one that is measured from its beginning (once) the rest is before it.
func (f *fair) beside(ctx context.Context, i int, name string, once bool, others target) (s Sample, did Deeds, err error) {
	f.runs += culpritRuns
	w := culpritWork{
		Name: name, URL: f.host.url, Bridge: f.host.bridge(), Token: f.tokens[i], Channel: channelName(name, 0), Data: f.dir,
		Key: f.keys[name], Run: f.runs - culpritRuns + 1, Queued: f.Queued,
	}
	if name == culpritDrain {
		if _, err := fillBacklog(ctx, w.target(), ackedCulprit(), w.Run, w.Queued); err != nil {
			return s, did, fmt.Errorf("fill the queue: %w", err)
		}
	}
	if once {
		wait(ctx, nil, f.Duration)
	}
	work, err := json.Marshal(w)
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
	if !once {
		wait(ctx, c.ended, f.Duration) // a flood may send much before its limit counts
	}
	if s, err = f.measure(ctx, others, f.scenario(), span{f.Duration, 0, grace}); err != nil {
		return s, did, err
	}
	if culprits[name].once {
		wait(ctx, c.ended, maxDuration)
	}
	c.stop()
	if err := json.Unmarshal([]byte(c.said.String()), &did); err != nil {
		return s, did, fmt.Errorf("culprit ended with: %s", c.said.String())
	}
	return s, did, f.held(ctx, name, &did)
}

// held asks the slow agent how many turns it had at once.
func (f *fair) held(ctx context.Context, name string, did *Deeds) error {
	if name != culpritSlow && name != culpritSlowBeside {
		return nil
	}
	slow := &rest{base: f.agents[slowAgent].url, http: http.DefaultClient}
	return slow.call(ctx, http.MethodGet, "", nil, &did.Held)
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
	fmt.Fprintln(tab, "CULPRIT\tP99 WITH ÷ WITHOUT\tANSWERS/S WITH ÷ WITHOUT\tP99 WITHOUT\tP99 WITH\tP50 WITHOUT\tP50 WITH\tHOST CPU WITHOUT\tHOST CPU WITH\tIT DID\tLOST\tTWICE\tDISORDER")
	for _, c := range r.Culprits {
		t := c.With.Total
		t.add(c.Did.Own)
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", c.Name, c.Ratio.Show(2), c.Answers.Show(2), c.Without.P99.Show(0), c.With.P99.Show(0),
			Number(c.Without.P50.Median, 0), Number(c.With.P50.Median, 0),
			c.Without.ServerCPU.Show(1), c.With.ServerCPU.Show(1), c.Did, t.Lost, t.Duplicated, t.Disordered)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	return PrintGoals(w, r.Goals, r.Rounds)
}
