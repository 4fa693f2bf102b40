package bench

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"
)

// Sample is one measurement. Times are in microseconds.
type Sample struct {
	Throughput float64  `json:"frames_per_second"`
	Ratio      *float64 `json:"ratio,omitempty"`         // of throughput, to the base of the same round
	CPURatio   *float64 `json:"cpu_ratio,omitempty"`     // of the servers' processor time for a message, likewise
	SyncRatio  *float64 `json:"p50_to_fsync,omitempty"`  // of the median latency, to one fsync on the same disk in the same round
	ReaderCPU  *float64 `json:"reader_cpu_us,omitempty"` // of the server, of one event for one reader of the event stream
	P50        float64  `json:"p50_us"`
	P90        float64  `json:"p90_us"`
	P99        float64  `json:"p99_us"`
	Max        float64  `json:"max_us"`
	ServerCPU  *float64 `json:"server_cpu_us,omitempty"` // of one message; absent where it can't be told
	OwnCPU     float64  `json:"generator_cpu_us"`        // of one message
	Count
}

// Spread is a figure over the rounds.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// TargetReport is one server in one scenario.
type TargetReport struct {
	Name       string   `json:"name"`
	Throughput Spread   `json:"frames_per_second"`
	Ratio      *Spread  `json:"ratio,omitempty"`
	CPURatio   *Spread  `json:"cpu_ratio,omitempty"`
	SyncRatio  *Spread  `json:"p50_to_fsync,omitempty"`
	ReaderCPU  *Spread  `json:"reader_cpu_us,omitempty"`
	P50        Spread   `json:"p50_us"`
	P90        Spread   `json:"p90_us"`
	P99        Spread   `json:"p99_us"`
	Max        Spread   `json:"max_us"`
	ServerCPU  *Spread  `json:"server_cpu_us,omitempty"`
	OwnCPU     Spread   `json:"generator_cpu_us"`
	Total      Count    `json:"total"` // over all rounds, warm-up and all
	Samples    []Sample `json:"rounds"`
}

// ScenarioReport is one scenario with its targets: the one measured, then raw.
type ScenarioReport struct {
	Scenario
	Targets []TargetReport `json:"targets"`
}

// Machine is where it was measured.
type Machine struct {
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPUs     int    `json:"cpus"`
	Data     string `json:"data,omitempty"` // the directory; "" = not known
	InMemory bool   `json:"data_in_memory"` // on a file system that survives nothing
}

func DescribeMachine(dir string) Machine {
	return Machine{runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), dir, dir != "" && inMemory(dir)}
}

func (m Machine) String() string {
	s := fmt.Sprintf("%s/%s, %d CPUs", m.OS, m.Arch, m.CPUs)
	if m.Data != "" {
		s += ", data in " + m.Data
	}
	if m.InMemory {
		s += " (IN MEMORY: commits cost nothing here, choose another place with --dir)"
	}
	return s
}

// LoadReport is what Load measured.
type LoadReport struct {
	Machine
	Rounds    int              `json:"rounds"`
	Seconds   float64          `json:"seconds"`
	Messages  int              `json:"messages,omitempty"`
	Base      string           `json:"base"` // what ratios are to
	Scenarios []ScenarioReport `json:"scenarios"`
	Goals     []Goal           `json:"goals,omitempty"` // of the scenarios that have some
}

// Clean reports whether every message was answered once and in order.
func (r *LoadReport) Clean() bool {
	for _, s := range r.Scenarios {
		for _, t := range s.Targets {
			if !t.Total.Clean() {
				return false
			}
		}
	}
	return true
}

func summarize(name string, samples []Sample) TargetReport {
	r := TargetReport{Name: name, Samples: samples}
	over := func(get func(Sample) float64) Spread {
		all := make([]float64, len(samples))
		for i, s := range samples {
			all[i] = get(s)
		}
		return SpreadOf(all)
	}
	maybe := func(get func(Sample) *float64) *Spread {
		if slices.ContainsFunc(samples, func(s Sample) bool { return get(s) == nil }) {
			return nil
		}
		s := over(func(s Sample) float64 { return *get(s) })
		return &s
	}
	r.Throughput = over(func(s Sample) float64 { return s.Throughput })
	r.P50 = over(func(s Sample) float64 { return s.P50 })
	r.P90 = over(func(s Sample) float64 { return s.P90 })
	r.P99 = over(func(s Sample) float64 { return s.P99 })
	r.Max = over(func(s Sample) float64 { return s.Max })
	r.OwnCPU = over(func(s Sample) float64 { return s.OwnCPU })
	r.Ratio = maybe(func(s Sample) *float64 { return s.Ratio })
	r.CPURatio = maybe(func(s Sample) *float64 { return s.CPURatio })
	r.SyncRatio = maybe(func(s Sample) *float64 { return s.SyncRatio })
	r.ReaderCPU = maybe(func(s Sample) *float64 { return s.ReaderCPU })
	r.ServerCPU = maybe(func(s Sample) *float64 { return s.ServerCPU })
	for _, s := range samples {
		r.Total.add(s.Count)
	}
	return r
}

func SpreadOf(all []float64) Spread {
	slices.Sort(all)
	n := len(all)
	return Spread{all[0], (all[(n-1)/2] + all[n/2]) / 2, all[n-1]}
}

// Print writes the report as a table for people.
func (r *LoadReport) Print(w io.Writer) error {
	each := fmt.Sprintf("%gs", r.Seconds)
	if r.Seconds == 0 {
		each = Number(float64(r.Messages), 0) + " messages"
	}
	fmt.Fprintf(w, "%s\n%d rounds of %s, in turns; median (min–max) of the rounds; times in µs\n\n", r.Machine, r.Rounds, each)
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(tab, "LOAD\tWHO\tFRAMES/S\tRATIO TO "+r.Base+"\tSERVER CPU\tP50\tP90\tP99\tMAX\tLOST\tTWICE\tDISORDER")
	for _, s := range r.Scenarios {
		for i, t := range s.Targets {
			name := ""
			if i == 0 {
				name = s.Name()
			}
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", name, t.Name, t.Throughput.Show(0), t.Ratio.Show(2), t.ServerCPU.Show(1),
				Number(t.P50.Median, 0), Number(t.P90.Median, 0), Number(t.P99.Median, 0), Number(t.Max.Max, 0),
				t.Total.Lost, t.Total.Duplicated, t.Total.Disordered)
		}
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, s := range r.Scenarios {
		for _, t := range s.Targets {
			if c := t.Total; c.Refused+c.Lost+c.Stray > 0 {
				fmt.Fprintf(w, "\n%s, %s: of %d messages %d refused, %d lost, %d stray answers; first reason: %s\n", s.Name(), t.Name, c.Sent, c.Refused, c.Lost, c.Stray, c.Refusal)
			}
		}
	}
	return PrintGoals(w, r.Goals, r.Rounds)
}

func (s *Spread) Show(decimals int) string {
	if s == nil {
		return "–"
	}
	return fmt.Sprintf("%s (%s–%s)", Number(s.Median, decimals), Number(s.Min, decimals), Number(s.Max, decimals))
}

// Number writes 12345.6 as 12,346.
func Number(v float64, decimals int) string {
	s := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole := len(s)
	if decimals > 0 {
		whole -= decimals + 1
	}
	for i := whole - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if v < 0 {
		s = "-" + s
	}
	return s
}
