package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// MemoryConfig is what HostMemory runs.
type MemoryConfig struct {
	Exe      string
	Dir      string // where data directories are made; "" = the system's
	Queued   int    // messages that wait in one channel for its adapter; 0 = not measured
	Turns    int    // that wait for an agent that is away; 0 = not measured
	Taken    int    // messages that the adapter takes of the queue after each start
	Size     int    // bytes of a frame
	Rounds   int    // starts of each
	Settle   time.Duration
	Progress Progress
}

// Limits of what waits: a host must neither hold it all in memory nor read all of it
// before it serves.
const (
	maxResidentMB   = 300
	maxStartSeconds = 2 // more than without
	queueLanes      = 100
)

func (c *MemoryConfig) validate() error {
	for _, v := range []struct {
		what             string
		found, low, high int
	}{
		{"rounds", c.Rounds, 1, maxRounds},
		{"queued", c.Queued, 0, maxQueued},
		{"turns", c.Turns, 0, 100_000}, // conversations, one for each
		{"taken", c.Taken, 1, maxQueued},
		{"settle", int(c.Settle), 0, int(maxSettle)},
	} {
		if v.found < v.low || v.found > v.high {
			return fmt.Errorf("%s: found %d, expected %d to %d", v.what, v.found, v.low, v.high)
		}
	}
	if c.Queued+c.Turns == 0 {
		return errors.New("found neither messages nor turns that wait, expected some")
	}
	if c.Queued > 0 && c.Taken*c.Rounds > c.Queued {
		return fmt.Errorf("taken: found %d in each of %d rounds, expected at most the %d that are queued", c.Taken, c.Rounds, c.Queued)
	}
	return nil
}

// MemoryReport is what a host costs with much that waits, beside one with nothing.
type MemoryReport struct {
	Machine
	Rounds int          `json:"rounds"`
	Settle float64      `json:"settle_seconds"`
	Loads  []MemoryLoad `json:"loads"`
	Goals  []Goal       `json:"goals"`
	Total  Count        `json:"total"` // of what came after the starts
}

// MemoryLoad is one kind of what waits. The host's memory is in MB.
type MemoryLoad struct {
	Name     string      `json:"name"`
	Fill     float64     `json:"fill_seconds"` // until all was on the disk
	Database int64       `json:"database_bytes"`
	Without  MemorySteps `json:"without"`
	With     MemorySteps `json:"with"`
	Longer   Spread      `json:"start_longer_seconds"` // with it, in the same round
	Count    Count       `json:"count"`
}

// MemorySteps are what hosts cost that were started on the same data.
type MemorySteps struct {
	Start    Spread `json:"start_seconds"` // from the process's begin until it listens
	Started  Spread `json:"rss_started_mb"`
	Settled  Spread `json:"rss_settled_mb"`
	Attached Spread `json:"rss_attached_mb"` // after an adapter attached, and took some
}

// startLook is one start.
type startLook struct{ start, started, settled, attached float64 }

func (m *MemorySteps) of(all []startLook) {
	over := func(get func(startLook) float64) Spread {
		v := make([]float64, len(all))
		for i, l := range all {
			v[i] = get(l)
		}
		return SpreadOf(v)
	}
	m.Start = over(func(l startLook) float64 { return l.start })
	m.Started = over(func(l startLook) float64 { return l.started })
	m.Settled = over(func(l startLook) float64 { return l.settled })
	m.Attached = over(func(l startLook) float64 { return l.attached })
}

// most is the largest of the medians.
func (m *MemorySteps) most() Spread {
	most := m.Started
	for _, s := range []Spread{m.Settled, m.Attached} {
		if s.Median > most.Median {
			most = s
		}
	}
	return most
}

// Clean reports whether what waited came once and in order.
func (r *MemoryReport) Clean() bool { return r.Total.Clean() }

// HostMemory fills a host's disk with what waits, and starts hosts on it in turns with
// hosts on a disk without.
func HostMemory(ctx context.Context, c MemoryConfig) (r MemoryReport, err error) {
	if err := c.validate(); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(c.Dir, "pontoon-bench-")
	if err != nil {
		return r, fmt.Errorf("make data directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r = MemoryReport{Machine: DescribeMachine(dir), Rounds: c.Rounds, Settle: c.Settle.Seconds()}
	for i, load := range []*hoard{
		{n: c.Queued, agent: "echo", conversations: min(queueLanes, c.Queued), name: Number(float64(c.Queued), 0) + " messages queued in one channel"},
		{n: c.Turns, agent: agentName("websocket"), conversations: c.Turns, turns: true, name: Number(float64(c.Turns), 0) + " turns that wait for an agent"},
	} {
		if load.n == 0 {
			continue
		}
		load.MemoryConfig, load.dir = c, filepath.Join(dir, fmt.Sprint(i))
		one, err := load.measure(ctx)
		if err != nil {
			return r, fmt.Errorf("%s: %w", load.name, err)
		}
		r.Loads = append(r.Loads, one)
		r.Total.add(one.Count)
		r.Goals = append(r.Goals,
			NewGoal(one.Name, "resident MB", true, maxResidentMB, one.With.most()),
			NewGoal(one.Name, "start, seconds longer than without", true, maxStartSeconds, one.Longer))
	}
	return r, nil
}

// Print writes the report for people.
func (r *MemoryReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%d starts of each, in turns; median (min–max); resident memory in MB, %gs to settle\n\n", r.Machine, r.Rounds, r.Settle)
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(tab, "LOAD\tHOST\tSTART S\tRSS STARTED\tSETTLED\tATTACHED\tLOST\tTWICE\tDISORDER")
	for _, l := range r.Loads {
		for _, side := range []struct {
			name, host string
			MemorySteps
			counts string
		}{
			{l.Name, "with", l.With, fmt.Sprintf("%d\t%d\t%d", l.Count.Lost, l.Count.Duplicated, l.Count.Disordered)},
			{"", "without", l.Without, "\t\t"},
		} {
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", side.name, side.host,
				side.Start.Show(2), side.Started.Show(1), side.Settled.Show(1), side.Attached.Show(1), side.counts)
		}
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, l := range r.Loads {
		fmt.Fprintf(w, "\n%s: stored in %s s, %s MB on the disk; %d came after the starts\n", l.Name, Number(l.Fill, 1), Number(float64(l.Database)/(1<<20), 0), l.Count.Answered)
	}
	return PrintGoals(w, r.Goals, r.Rounds)
}
