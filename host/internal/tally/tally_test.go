package tally

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	var c Counts
	if _, ok := c.Quantile(&Delays, 0.5); ok {
		t.Error("nothing has a median")
	}
	for range 90 {
		c.Observe(&Delays, int64(1500*time.Microsecond)) // between 1 and 2 ms
	}
	for range 10 {
		c.Observe(&Delays, int64(time.Hour))
	}
	c.Observe(&Delays, -5)
	for q, want := range map[float64][2]time.Duration{
		0.5: {time.Millisecond, 2 * time.Millisecond}, 0.95: {300 * time.Second, 300 * time.Second}, 0: {0, time.Millisecond},
	} {
		got, ok := c.Quantile(&Delays, q)
		if d := time.Duration(got); !ok || d < want[0] || d > want[1] {
			t.Errorf("quantile %v is %s, want between %s and %s", q, d, want[0], want[1])
		}
	}
	if c.Total() != 101 || c.Sum != int64(90*1500*time.Microsecond+10*time.Hour) {
		t.Errorf("counted %d, sum %d", c.Total(), c.Sum)
	}
}

func TestSinceAndAdd(t *testing.T) {
	var before, after Counts
	before.Observe(&Sizes, 3)
	after.Add(&before)
	after.Observe(&Sizes, 5000)
	since := after.Since(&before)
	if since.Total() != 1 || since.Sum != 5000 || since.N[Buckets-1] != 1 {
		t.Errorf("since: %+v", since)
	}
}

func TestBoundsAscend(t *testing.T) {
	for _, b := range []*Bounds{&Delays, &Sizes} {
		for i := range b[1:] {
			if b[i] >= b[i+1] {
				t.Errorf("bound %d is %d, the next %d", i, b[i], b[i+1])
			}
		}
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	h.OfSizes()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for v := range int64(100) {
				h.Observe(v)
			}
		})
	}
	wg.Wait()
	if c := h.Counts(); c.Total() != 800 || c.Sum != 8*4950 || c.N[0] != 16 {
		t.Errorf("counted %+v", c)
	}
	var d Histogram
	d.Took(time.Now().Add(-time.Minute))
	if c := d.Counts(); c.Total() != 1 || time.Duration(c.Sum) < time.Minute {
		t.Errorf("took %+v", c)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(100, func() { h.Observe(int64(time.Second)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestParseRefuses(t *testing.T) {
	whole := (&Counts{Sum: 300}).Append(nil)
	for name, b := range map[string][]byte{
		"nothing": nil, "cut": whole[:len(whole)-1], "more": append(bytes.Clone(whole), 0), "negative sum": append([]byte{1}, whole[2:]...),
		"too many": append(bytes.Clone(whole[:len(whole)-1]), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
	} {
		if c, err := Parse(b); err == nil {
			t.Errorf("%s: read as %+v", name, c)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add((&Counts{Sum: 300, N: [Buckets]uint64{1, 2, 3}}).Append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(c.Append(nil))
		if err != nil || again != c {
			t.Errorf("read as %+v, then %+v, %v", c, again, err)
		}
		for _, q := range []float64{0, 0.5, 0.95, 1} {
			if v, ok := c.Quantile(&Delays, q); ok && v < 0 {
				t.Errorf("quantile %v is %d", q, v)
			}
		}
	})
}
