package console

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// frame is the size of a chart in its own units, and where in it the plot is; left is
// where it begins if the labels before it leave room. The browser scales it to its
// column, which is about as wide, so that text stays readable.
type frame struct {
	width, height, left, right, top, bottom int
	marks                                   time.Duration // between those of an hour's axis
}

var (
	full  = frame{340, 160, 30, 324, 8, 134, 15 * time.Minute} // of the page of pictures
	small = frame{280, 124, 30, 264, 8, 100, 30 * time.Minute} // of pages about something else
)

const mostTicks = 4 // of the values' axis, beside 0

// unit is what the labels of one axis are in: all in the same.
type unit struct {
	size float64
	name string
}

// ofCounts is the unit of an axis of numbers up to top.
func ofCounts(top float64) unit {
	switch {
	case top >= 1e6:
		return unit{1e6, "M"}
	case top >= 1e4:
		return unit{1e3, "k"}
	}
	return unit{1, ""}
}

// ofDelays is the unit of an axis of durations up to top seconds.
func ofDelays(top float64) unit {
	switch {
	case top >= 2*3600:
		return unit{3600, " h"}
	case top >= 120:
		return unit{60, " min"}
	case top >= 1 || top == 0:
		return unit{1, " s"}
	case top >= 1e-3:
		return unit{1e-3, " ms"}
	}
	return unit{1e-6, " µs"}
}

// label is a tick, at v of the unit.
func (u unit) label(v float64) string {
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + u.name
}

// Sizes of letters at 11 units, the size of labels, in DejaVu Sans: few are wider.
const (
	letter     = 7.1
	wideLetter = 11 // an m
	labelGap   = 8
	clockHalf  = 27 // half of 10:15 PM
)

// beside moves the left edge of the plot so that the labels fit before it.
func (f frame) beside(labels []notch) frame {
	for _, n := range labels {
		m := strings.Count(n.Label, "m") + strings.Count(n.Label, "M")
		wide := letter*float64(utf8.RuneCountInString(n.Label)-m) + wideLetter*float64(m)
		f.left = max(f.left, int(math.Ceil(wide))+labelGap)
	}
	return f
}

// chart is one picture: some series over the same time.
type chart struct {
	ID, Title string
	About     string // what it shows, in a sentence with its numbers
	Series    []series
	Y         []notch
	X         []notch
	frame     frame
}

// series is one line of a chart.
type series struct {
	Name, Sum string
	Class     string
	Line      string // the path's d
	Area      string // what is below it; "" = not filled
	Dots      []dot  // values that stand alone
}

// dot is a point of a series.
type dot struct{ X, Y float64 }

// notch is a mark of an axis.
type notch struct {
	At    float64
	Label string
	Time  time.Time // of the time axis
}

// line is what a chart is told of a series: values in order, NaN = none.
type line struct {
	name, sum, class string
	filled           bool
	values           []float64
}

// drawn makes the pictures of s.
func (f frame) drawn(s api.Statistics) []chart {
	perMinute := 60 / float64(max(s.Step, 1))
	counts := func(of func(api.StatPoint) int64, scale float64) []float64 {
		return each(s.Points, func(p api.StatPoint) float64 { return float64(of(p)) * scale })
	}
	delays := func(of func(api.StatPoint) *float64) []float64 {
		return each(s.Points, func(p api.StatPoint) float64 {
			if d := of(p); d != nil {
				return *d
			}
			return math.NaN()
		})
	}
	t := s.Total
	return []chart{
		f.draw("messages", "Messages per minute", s, ofCounts,
			line{"received", digits(t.Received), "s1", true, counts(func(p api.StatPoint) int64 { return p.Received }, perMinute)},
			line{"sent", digits(t.Sent), "s2", false, counts(func(p api.StatPoint) int64 { return p.Sent }, perMinute)}),
		f.draw("latency", "Delivery latency", s, ofDelays,
			line{"19 in 20 below", delayOf(t.P95), "s2", false, delays(func(p api.StatPoint) *float64 { return p.P95 })},
			line{"half below", delayOf(t.P50), "s1", false, delays(func(p api.StatPoint) *float64 { return p.P50 })}),
		f.draw("queue", "Longest queue", s, ofCounts,
			line{"waiting", digits(t.Queue), "s1", true, counts(func(p api.StatPoint) int64 { return p.Queue }, 1)}),
		f.draw("errors", "Errors per minute", s, ofCounts,
			line{"failed or expired", digits(t.Failed), "s3", true, counts(func(p api.StatPoint) int64 { return p.Failed }, perMinute)},
			line{"refused", digits(t.Refused), "s2", false, counts(func(p api.StatPoint) int64 { return p.Refused }, perMinute)}),
	}
}

func each(points []api.StatPoint, of func(api.StatPoint) float64) []float64 {
	out := make([]float64, len(points))
	for i, p := range points {
		out[i] = of(p)
	}
	return out
}

func (f frame) draw(id, title string, s api.Statistics, in func(top float64) unit, lines ...line) chart {
	c := chart{ID: "chart-" + id, Title: title}
	top, whole := 0.0, true
	var said []string
	for _, l := range lines {
		for _, v := range l.values {
			if v > top { // not NaN
				top = v
			}
			whole = whole && (math.IsNaN(v) || v == math.Trunc(v))
		}
		said = append(said, l.name+" "+l.sum)
	}
	c.About = fmt.Sprintf("%s, %s to %s UTC: %s.", title, s.From.UTC().Format("2006-01-02 15:04"), s.To.UTC().Format("15:04"), strings.Join(said, ", "))
	u := in(top)
	values := scale(top/u.size, whole)
	highest := values[len(values)-1] * u.size
	y := func(v float64) float64 { return float64(f.bottom) - v/highest*float64(f.bottom-f.top) }
	for _, v := range values {
		c.Y = append(c.Y, notch{At: y(v * u.size), Label: u.label(v)})
	}
	f = f.beside(c.Y)
	c.frame = f
	c.X = f.timeTicks(s.From.Time, s.To.Time)
	for _, l := range lines {
		c.Series = append(c.Series, series{Name: l.name, Sum: l.sum, Class: l.class})
		drawn := &c.Series[len(c.Series)-1]
		drawn.Line, drawn.Area, drawn.Dots = f.paths(l.values, y, l.filled)
	}
	return c
}

// scale is where the ticks of the values' axis are, from 0 to what is no less than
// top. whole keeps them at whole numbers.
func scale(top float64, whole bool) []float64 {
	if top <= 0 || math.IsInf(top, 0) || math.IsNaN(top) {
		return []float64{0, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(top/mostTicks)))
	for _, by := range []float64{1, 2, 5, 10} {
		if top/(step*by) <= mostTicks {
			step *= by
			break
		}
	}
	if whole {
		step = max(1, step)
	}
	out := []float64{0}
	for v := 0.0; v < top*(1-1e-9); {
		v = step * float64(len(out))
		out = append(out, v)
	}
	return out
}

// timeTicks are the marks of the time axis: at round times.
func (f frame) timeTicks(from, to time.Time) []notch {
	every := f.marks
	if to.Sub(from) > 2*time.Hour {
		every = 4 * time.Hour
	}
	var out []notch
	for at := from.UTC().Truncate(every); !at.After(to); at = at.Add(every) {
		if at.Before(from) {
			continue
		}
		x := float64(f.left) + float64(at.Sub(from))/float64(to.Sub(from))*float64(f.right-f.left)
		if x+clockHalf > float64(f.width) {
			break // it would be cut off
		}
		out = append(out, notch{At: x, Label: at.Format("15:04"), Time: at})
	}
	return out
}

// paths draw a series: its line, which has a gap where there is no value, and the
// area below it; and a dot where one value stands alone, which a line would not show.
func (f frame) paths(values []float64, y func(float64) float64, filled bool) (line, area string, dots []dot) {
	if len(values) == 0 {
		return "", "", nil
	}
	none := func(i int) bool { return i < 0 || i >= len(values) || math.IsNaN(values[i]) }
	left, bottom := float64(f.left), short(float64(f.bottom))
	step := float64(f.right-f.left) / float64(len(values))
	var l, a strings.Builder
	open := false
	for i, v := range values {
		if math.IsNaN(v) {
			open = false
			continue
		}
		x := left + (float64(i)+0.5)*step
		if none(i-1) && none(i+1) {
			dots = append(dots, dot{x, y(v)})
		} else if !open {
			fmt.Fprintf(&l, "M%s %s", short(x), short(y(v)))
			open = true
		} else {
			fmt.Fprintf(&l, "L%s %s", short(x), short(y(v)))
		}
		if filled {
			fmt.Fprintf(&a, "L%s %s", short(x), short(y(v)))
		}
	}
	if a.Len() > 0 {
		first, last := short(left+step/2), short(left+(float64(len(values))-0.5)*step)
		area = "M" + first + " " + bottom + a.String() + "L" + last + " " + bottom + "Z"
	}
	return l.String(), area, dots
}

// short writes a coordinate.
func short(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// delay is a duration in seconds for people.
func delay(s float64) string {
	switch {
	case s == 0:
		return "0"
	case s < 0.001:
		return strconv.FormatFloat(math.Round(s*1e6), 'f', -1, 64) + " µs"
	case s < 1:
		return strconv.FormatFloat(s*1e3, 'g', 3, 64) + " ms"
	case s < 120:
		return strconv.FormatFloat(s, 'g', 3, 64) + " s"
	}
	return strconv.FormatFloat(s/60, 'g', 3, 64) + " min"
}

func delayOf(s *float64) string {
	if s == nil {
		return "–"
	}
	return delay(*s)
}

func digits(n int64) string { return strconv.FormatInt(n, 10) }

// silent reports that nothing happened at all.
func silent(p api.StatPoint) bool {
	return p.Received+p.Sent+p.Failed+p.Refused+p.Queue == 0 && p.P50 == nil
}

// stretches names what a table's row lasts.
func stretches(s api.Statistics) string {
	if s.Step == 60 {
		return "minute"
	}
	return fmt.Sprintf("%d minutes", s.Step/60)
}

// ofWhat says whose pictures they are.
func ofWhat(s api.Statistics) string {
	if s.Channel == "" {
		return "All channels"
	}
	return "Channel " + s.Channel
}

// viewBox is the attribute of that name.
func (f frame) viewBox() string { return fmt.Sprintf("0 0 %d %d", f.width, f.height) }

// by writes a coordinate that is d away from one of the frame.
func by(at, d int) string { return strconv.Itoa(at + d) }

// clockOf is a time that app.js shows in the browser's zone, by hours and minutes.
func clockOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }
