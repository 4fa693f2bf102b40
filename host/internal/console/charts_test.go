package console

import (
	"encoding/xml"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

func TestScale(t *testing.T) {
	for _, c := range []struct {
		top   float64
		whole bool
		want  []float64
	}{
		{0, true, []float64{0, 1}}, {math.NaN(), false, []float64{0, 1}}, {1, true, []float64{0, 1}}, {3, true, []float64{0, 1, 2, 3}},
		{7, true, []float64{0, 2, 4, 6, 8}}, {100, true, []float64{0, 50, 100}}, {0.4, false, []float64{0, 0.1, 0.2, 0.30000000000000004, 0.4}},
		{123456, true, []float64{0, 50000, 100000, 150000}}, {0.00007, false, []float64{0, 0.00002, 0.00004, 0.00006000000000000001, 0.00008}},
	} {
		got := scale(c.top, c.whole)
		if len(got) != len(c.want) {
			t.Errorf("%v: %v, want %v", c.top, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9*math.Abs(c.want[i]) {
				t.Errorf("%v: %v, want %v", c.top, got, c.want)
				break
			}
		}
	}
}

func FuzzScale(f *testing.F) {
	f.Add(3.0, true)
	f.Add(math.Inf(1), false)
	f.Fuzz(func(t *testing.T, top float64, whole bool) {
		if top > 1e15 || top > 0 && top < 1e-12 {
			top = 1
		}
		got := scale(top, whole)
		if len(got) < 2 || len(got) > mostTicks+2 || got[0] != 0 || top > got[len(got)-1]*(1+1e-6) {
			t.Errorf("%v: %v", top, got)
		}
	})
}

func TestTimeTicks(t *testing.T) {
	from := time.Date(2026, 3, 4, 11, 7, 0, 0, time.UTC)
	for length, want := range map[time.Duration][]string{
		time.Hour:      {"11:15", "11:30", "11:45", "12:00"},
		24 * time.Hour: {"12:00", "16:00", "20:00", "00:00", "04:00", "08:00"},
	} {
		var got []string
		for _, tick := range full.timeTicks(from, from.Add(length)) {
			got = append(got, tick.Label)
			if tick.At < float64(full.left) || tick.At > float64(full.right) {
				t.Errorf("%s is at %v", tick.Label, tick.At)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", length, got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	same := func(v float64) float64 { return v }
	f := frame{left: 46, right: 412, bottom: 164}
	if l, a, d := f.paths([]float64{1, 2, math.NaN(), 3}, same, false); l != "M91.8 1L183.3 2" || a != "" || !reflect.DeepEqual(d, []dot{{366.25, 3}}) {
		t.Errorf("line %q, area %q, dots %v", l, a, d)
	}
	if l, a, d := f.paths(nil, same, true); l != "" || a != "" || d != nil {
		t.Errorf("of nothing: %q, %q, %v", l, a, d)
	}
	if _, a, d := f.paths([]float64{1}, same, true); a != "M229 164L229 1L229 164Z" || len(d) != 1 {
		t.Errorf("area %q, dots %v", a, d)
	}
}

// TestAxis: the labels of an axis are round, in one unit, and have room before it.
func TestAxis(t *testing.T) {
	for _, c := range []struct {
		top  float64
		in   func(float64) unit
		want string
	}{
		{0, ofCounts, "0 1"}, {0, ofDelays, "0 1 s"}, {3, ofCounts, "0 1 2 3"}, {12_345, ofCounts, "0 5k 10k 15k"}, {2.5e6, ofCounts, "0 1M 2M 3M"},
		{0.00012, ofDelays, "0 50 µs 100 µs 150 µs"}, {0.2, ofDelays, "0 50 ms 100 ms 150 ms 200 ms"}, {1.5, ofDelays, "0 0.5 s 1 s 1.5 s"},
		{110, ofDelays, "0 50 s 100 s 150 s"}, {300, ofDelays, "0 2 min 4 min 6 min"}, {8000, ofDelays, "0 1 h 2 h 3 h"},
	} {
		s := busyHour()
		values := make([]float64, len(s.Points))
		values[3] = c.top
		drawn := small.draw("x", "X", s, c.in, line{values: values})
		var got []string
		for _, n := range drawn.Y {
			got = append(got, n.Label)
			if room := float64(drawn.frame.left - labelGap); room < 6.4*float64(len([]rune(n.Label))) {
				t.Errorf("%s has %v units before the axis", n.Label, room)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("up to %v: %q, want %q", c.top, got, c.want)
		}
	}
}

func TestDelay(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.00012: "120 µs", 0.015: "15 ms", 1.5: "1.5 s", 300: "5 min"} {
		if got := delay(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// slowHour is an hour in which messages took minutes, and few were delivered.
func slowHour() api.Statistics {
	s := busyHour()
	s.Channel = ""
	for i := range s.Points {
		p := &s.Points[i]
		if p.P50 = nil; i == 20 || i == 22 || i > 55 {
			low := 200.0
			p.P50, p.Received = &low, 1_250_000
		}
		p.P95 = p.P50
	}
	return s
}

// busyHour is an hour in which something happened.
func busyHour() api.Statistics {
	to := time.Date(2026, 3, 4, 12, 7, 0, 0, time.UTC)
	s := api.Statistics{Channel: "a", Window: windowHour, Step: 60, From: api.Time{Time: to.Add(-time.Hour)}, To: api.Time{Time: to}}
	for i := range 60 {
		p := api.StatPoint{At: api.Time{Time: s.From.Add(time.Duration(i) * time.Minute)}}
		if i >= 10 && i != 40 {
			p.Received = int64(30 + 25*math.Sin(float64(i)/7))
			p.Sent, p.Queue = p.Received-int64(i%5), int64(max(0, i-45))
			low, high := 0.012+0.004*math.Sin(float64(i)/5), 0.05+0.03*math.Cos(float64(i)/9)
			p.P50, p.P95 = &low, &high
		}
		if i%17 == 0 {
			p.Failed, p.Refused = 2, 1
		}
		s.Points = append(s.Points, p)
		s.Total.Received += p.Received
		s.Total.Sent += p.Sent
		s.Total.Failed += p.Failed
		s.Total.Refused += p.Refused
		s.Total.Queue = max(s.Total.Queue, p.Queue)
	}
	s.Total.P50, s.Total.P95 = s.Points[20].P50, s.Points[20].P95
	return s
}

func rendered(t *testing.T, s api.Statistics) string {
	t.Helper()
	var b strings.Builder
	if err := charts(s).Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCharts: well-formed, named, the same in a table, and no style that the policy
// forbids.
func TestCharts(t *testing.T) {
	page := rendered(t, busyHour())
	if n := strings.Count(page, `role="img"`); n != 4 {
		t.Errorf("%d pictures", n)
	}
	if strings.Contains(page, "style=") || strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Errorf("found a style or what is no number in\n%s", page)
	}
	for _, want := range []string{
		`<title id="chart-messages-title">Messages per minute</title>`, "2026-03-04 11:07 to 12:07 UTC: received ",
		`data-clock="2026-03-04T11:15:00Z">11:15</text>`, "<th scope=\"col\">Longest queue</th>", `hx-trigger="every 60s"`, "metrics?channel=a&amp;window=day",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	for rest := page; ; {
		at := strings.Index(rest, "<svg")
		if at < 0 {
			break
		}
		end := strings.Index(rest, "</svg>") + len("</svg>")
		if err := xml.Unmarshal([]byte(rest[at:end]), new(struct{})); err != nil {
			t.Errorf("%v in %s", err, rest[at:end])
		}
		rest = rest[end:]
	}
}

func TestChartsOfNothing(t *testing.T) {
	s := busyHour()
	s.Channel, s.Total = "", api.StatPoint{}
	if page := rendered(t, s); !strings.Contains(page, "send a test message") || strings.Contains(page, "<svg") {
		t.Errorf("found\n%s", page)
	}
}

// TestPicturesPage: what is asked for goes to the API as it is, and what that
// refuses is said.
func TestPicturesPage(t *testing.T) {
	var asked []string
	operate := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v1/channels"):
			_, _ = w.Write([]byte(`{"channels":[{"name":"a"},{"name":"b"}]}`))
		case r.FormValue("window") == "year":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"status":422,"title":"Unprocessable Entity","detail":"expected hour or day"}`))
		default:
			_, _ = w.Write([]byte(`{"channel":"a","window":"day","step_seconds":600,"total":{},"points":[]}`))
		}
	})
	h := New(Options{API: operate, Log: slog.New(slog.DiscardHandler), Version: "test", Now: time.Now})
	page := func(path string) (int, string) {
		r := httptest.NewRequest("GET", path, nil)
		r = r.WithContext(auth.WithHolder(r.Context(), auth.Operator()))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	code, text := page(Path + "metrics?channel=a&window=day")
	if code != http.StatusOK || !strings.Contains(text, `<option value="a" selected>`) || !strings.Contains(text, `<option value="day" selected>`) {
		t.Errorf("%d %s", code, text)
	}
	if code, text := page(Path + "metrics/charts?channel=a&window=day"); code != http.StatusOK || strings.Contains(text, "<html") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := page(Path + "metrics?window=year"); code != http.StatusUnprocessableEntity || !strings.Contains(text, "expected hour or day") {
		t.Errorf("%d %s", code, text)
	}
	if asked[0] != "/api/v1/statistics?channel=a&window=day" {
		t.Errorf("asked for %q", asked)
	}
}
