package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// DraftsConfig is what Drafts runs.
type DraftsConfig struct {
	Exe          string
	Dir          string // where the host's data directory is made; "" = the system's
	Streams      int    // answers at once, each for an adapter of its own
	Drafts       int    // of an answer
	Every        time.Duration
	EditInterval time.Duration // what adapters that edit ask for
	Rounds       int
	Progress     Progress
}

// Bounds of drafts.
const (
	maxStreams = 64 // what an agent answers at once
	maxDrafts  = 10_000
	maxPace    = 10 * time.Second
	// readerLate is by how many ms an interval may seem too short: who reads one frame
	// late, on a machine with other work, finds the next one early.
	readerLate = 3
)

func (c *DraftsConfig) validate() error {
	for _, v := range []struct {
		what             string
		found, low, high int
	}{
		{"rounds", c.Rounds, 1, maxRounds},
		{"streams", c.Streams, 1, maxStreams},
		{"drafts", c.Drafts, 1, maxDrafts},
		{"every", int(c.Every), 1, int(maxPace)},
		{"edit interval", int(c.EditInterval.Milliseconds()), 1, int(maxPace.Milliseconds())},
	} {
		if v.found < v.low || v.found > v.high {
			return fmt.Errorf("%s: found %d, expected %d to %d", v.what, v.found, v.low, v.high)
		}
	}
	return nil
}

// draftsLoad is one way in which answers are shown while they are made.
type draftsLoad struct {
	DraftsConfig
	name  string
	pace  time.Duration // between two drafts of an answer; 0 = as fast as the agent writes
	edits bool          // the adapters only edit; else they show streams
}

func (c DraftsConfig) loads() []draftsLoad {
	return []draftsLoad{
		{c, "streams, drafts at once", 0, false},
		{c, fmt.Sprintf("streams, a draft each %s", c.Every), c.Every, false},
		{c, fmt.Sprintf("edits, a draft each %s", c.Every), c.Every, true},
	}
}

func (l *draftsLoad) scenario() Scenario {
	return Scenario{Conns: l.Streams, Window: 1, Conversations: 1, Label: fmt.Sprintf("%d×%d %s", l.Streams, l.Drafts, l.name)}
}

// DraftsReport tells what becomes of drafts. In the table of its LoadReport a frame is
// one that arrives at an adapter, and processor time is that of a draft that was written.
type DraftsReport struct {
	LoadReport
	Paces []DraftsPace `json:"paces"`
}

// DraftsPace is how often an adapter got a frame of one answer. Times are in ms.
type DraftsPace struct {
	Load      string  `json:"load"`
	Taken     Spread  `json:"drafts_taken_per_second"` // that the agent could write, shown or not
	Ratio     Spread  `json:"drafts_taken_ratio"`      // to those of the bare echo
	First     Spread  `json:"smallest_behind_first_ms"`
	Smallest  Spread  `json:"smallest_ms"` // between two frames that are neither the first nor the last
	Usual     Spread  `json:"median_ms"`   // likewise
	Last      Spread  `json:"smallest_before_last_ms"`
	Asked     float64 `json:"asked_ms"` // by the profile; 0 = nothing
	Intervals int     `json:"intervals"`
}

// Drafts measures answers that are shown while they are made, in turns with a bare echo
// to which the same frames are written in the same way.
func Drafts(ctx context.Context, c DraftsConfig) (r DraftsReport, err error) {
	if err := c.validate(); err != nil {
		return r, err
	}
	d, err := startDuel(ctx, c.Exe, c.Dir)
	if err != nil {
		return r, err
	}
	defer d.stop()
	r.LoadReport = LoadReport{Machine: DescribeMachine(d.dir), Rounds: c.Rounds, Messages: c.Streams * c.Drafts, Base: "RAW"}
	for i, l := range c.loads() {
		if err := r.add(ctx, d, l, i); err != nil {
			return r, fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return r, nil
}

// add measures one way, with an agent and channels of its own.
func (r *DraftsReport) add(ctx context.Context, d *duel, l draftsLoad, number int) error {
	agent := fmt.Sprintf("drafts-%d", number)
	key, err := d.rest.newAgent(ctx, agent, "websocket", map[string]any{})
	if err != nil {
		return err
	}
	child, err := spawnAgent(ctx, key, "websocket", d.host.url, fmt.Sprint(l.Drafts), l.pace.String())
	if err != nil {
		return err
	}
	defer child.stop()
	if err := d.rest.present(ctx, agent); err != nil {
		return err
	}
	tokens, err := provisionAs(ctx, d.host, agent, l.Streams, map[string]any{"agent": agent})
	if err != nil {
		return err
	}
	var shown, bare []draftsRun
	s := l.scenario()
	one, err := inTurns(ctx, s, l.Rounds, l.Progress,
		way{"host", func(ctx context.Context, round int) (Sample, error) {
			run, err := l.show(ctx, d.hosted(tokens...), round)
			shown = append(shown, run)
			return run.Sample, err
		}},
		way{"raw", func(ctx context.Context, _ int) (Sample, error) {
			run, err := l.showBare(ctx, d.bare())
			bare = append(bare, run)
			return run.Sample, err
		}})
	if err != nil {
		return err
	}
	pace := l.paceOf(s.Name(), shown, bare)
	r.Scenarios, r.Paces = append(r.Scenarios, one), append(r.Paces, pace)
	r.Goals = slices.Concat(r.Goals, l.judge(&one, pace))
	return nil
}

// Goals of drafts.
const (
	leastTaken = 0.4 // drafts taken ÷ raw, as fast as the agent writes
	pacedTaken = 0.9 // likewise at its pace: nobody holds it back
	pacedShown = 0.3 // frames arriving ÷ raw: one in 50 ms, of those that are written each 20 ms
)

// judge compares with the goals. What is shown has none where the agent writes as fast as
// it can: the host shows one frame in 50 ms at most, on purpose.
func (l *draftsLoad) judge(s *ScenarioReport, p DraftsPace) []Goal {
	taken := func(least float64) Goal { return NewGoal(p.Load, "drafts taken ÷ raw", false, least, p.Ratio) }
	if l.pace == 0 {
		return []Goal{taken(leastTaken)}
	}
	if !l.edits {
		return append(s.judge(goal{"frames arriving ÷ raw", false, pacedShown, func(t TargetReport) *Spread { return t.Ratio }}), taken(pacedTaken))
	}
	goals := []Goal{taken(pacedTaken)}
	for _, g := range []struct {
		what  string
		found Spread
	}{{"behind the first frame", p.First}, {"between two edits", p.Smallest}, {"before the last edit", p.Last}} {
		goals = append(goals, exactly(NewGoal(p.Load, "ms "+g.what+", smallest of all", false, p.Asked-readerLate, g.found)))
	}
	return goals
}

// exactly is a goal that every round must meet, not the median alone: a profile's limit
// is the platform's, which refuses what comes too soon.
func exactly(g Goal) Goal {
	g.Met = g.Found.Min >= g.Limit
	return g
}

func (l *draftsLoad) paceOf(name string, shown, bare []draftsRun) DraftsPace {
	over := func(get func(i int) float64) Spread {
		v := make([]float64, len(shown))
		for i := range v {
			v[i] = get(i)
		}
		return SpreadOf(v)
	}
	p := DraftsPace{
		Load:     name,
		Taken:    over(func(i int) float64 { return shown[i].taken }),
		Ratio:    over(func(i int) float64 { return shown[i].taken / bare[i].taken }),
		Smallest: over(func(i int) float64 { return smallest(shown[i].between) }),
		Usual:    over(func(i int) float64 { return medianOf(shown[i].between) }),
		First:    over(func(i int) float64 { return smallest(shown[i].first) }),
		Last:     over(func(i int) float64 { return smallest(shown[i].last) }),
	}
	if l.edits {
		p.Asked = float64(l.EditInterval.Milliseconds())
	}
	for _, run := range shown {
		p.Intervals += len(run.first) + len(run.between) + len(run.last)
	}
	return p
}

// smallest of intervals; 0 = there are none.
func smallest(ms []float64) float64 {
	if len(ms) == 0 {
		return 0
	}
	return slices.Min(ms)
}

func medianOf(ms []float64) float64 {
	if len(ms) == 0 {
		return 0
	}
	return SpreadOf(slices.Clone(ms)).Median
}

// Print writes the report for people.
func (r *DraftsReport) Print(w io.Writer) error {
	if err := r.LoadReport.Print(w); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nDrafts that the agent could write, shown or not; ms between two frames of one answer")
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(tab, "LOAD\tDRAFTS/S\tRATIO TO RAW\tSMALLEST MS\tMEDIAN\tBEHIND FIRST, SMALLEST\tBEFORE LAST, SMALLEST\tINTERVALS")
	for _, p := range r.Paces {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", p.Load, p.Taken.Show(0), p.Ratio.Show(2),
			p.Smallest.Show(1), p.Usual.Show(1), p.First.Show(1), p.Last.Show(1), p.Intervals)
	}
	return tab.Flush()
}
