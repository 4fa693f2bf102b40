// Package tally counts how long things take and how large they are: histograms of
// fixed buckets, cheap enough for each message.
package tally

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
)

// Buckets is how many a histogram has; the last has no upper bound.
const Buckets = 20

// Bounds are the upper bounds of a histogram's buckets but the last, ascending.
type Bounds [Buckets - 1]int64

// Delays are for durations, in nanoseconds: from a commit on a fast disk to an
// adapter that was away for minutes.
var Delays = Bounds{
	100e3, 200e3, 500e3,
	1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6,
	1e9, 2e9, 5e9, 10e9, 30e9, 60e9, 300e9,
}

// Sizes are for numbers of things that are done together.
var Sizes = Bounds{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096}

func (b *Bounds) bucket(v int64) int {
	for i, bound := range b {
		if v <= bound {
			return i
		}
	}
	return Buckets - 1
}

// Counts is what a histogram holds. Whoever shares one guards it.
type Counts struct {
	N   [Buckets]uint64 // values in each bucket, not cumulative
	Sum int64
}

// Observe counts a value; one below 0 counts as 0.
func (c *Counts) Observe(b *Bounds, v int64) {
	v = max(v, 0)
	c.N[b.bucket(v)]++
	c.Sum += v
}

// Total is how many values were counted.
func (c Counts) Total() (n uint64) {
	for _, v := range c.N {
		n += v
	}
	return n
}

// Add counts what o counted too.
func (c *Counts) Add(o *Counts) {
	for i := range c.N {
		c.N[i] += o.N[i]
	}
	c.Sum += o.Sum
}

// Since is what was counted after before, which are counts of the same histogram.
func (c Counts) Since(before *Counts) Counts {
	for i := range c.N {
		c.N[i] -= before.N[i]
	}
	c.Sum -= before.Sum
	return c
}

// Quantile is the value below which the part q of all lies, as far as the
// buckets tell; false = nothing was counted. In the last bucket it is its lower
// bound.
func (c Counts) Quantile(b *Bounds, q float64) (v int64, ok bool) {
	total := c.Total()
	if total == 0 {
		return 0, false
	}
	rank := q * float64(total)
	below := 0.0
	low := int64(0)
	for i, n := range c.N[:Buckets-1] {
		if here := float64(n); n > 0 && below+here >= rank {
			return low + int64((rank-below)/here*float64(b[i]-low)), true
		}
		below += float64(n)
		low = b[i]
	}
	return low, true
}

// Append writes the counts: the sum and each bucket, as varints.
func (c *Counts) Append(to []byte) []byte {
	to = binary.AppendVarint(to, c.Sum)
	for _, n := range c.N {
		to = binary.AppendUvarint(to, n)
	}
	return to
}

// maxCount bounds a bucket that is read, so that sums of many don't overflow.
const maxCount = 1 << 40

// Parse reads what Append wrote, and nothing else.
func Parse(from []byte) (Counts, error) {
	var c Counts
	sum, n := binary.Varint(from)
	if n <= 0 || sum < 0 {
		return Counts{}, fmt.Errorf("counts: no sum at byte 0 of %d", len(from))
	}
	c.Sum = sum
	at := n
	for i := range c.N {
		v, n := binary.Uvarint(from[at:])
		if n <= 0 || v > maxCount {
			return Counts{}, fmt.Errorf("counts: no bucket %d at byte %d of %d", i, at, len(from))
		}
		c.N[i] = v
		at += n
	}
	if at != len(from) {
		return Counts{}, fmt.Errorf("counts: %d bytes behind the last bucket", len(from)-at)
	}
	return c, nil
}

// Histogram is Counts that many may use at once. The zero value counts Delays.
type Histogram struct {
	sizes bool
	n     [Buckets]atomic.Uint64
	sum   atomic.Int64
}

// OfSizes makes a histogram that counts Sizes. It is called before the first value.
func (h *Histogram) OfSizes() { h.sizes = true }

// Bounds are those of its buckets.
func (h *Histogram) Bounds() *Bounds {
	if h.sizes {
		return &Sizes
	}
	return &Delays
}

// Observe counts a value; one below 0 counts as 0.
func (h *Histogram) Observe(v int64) {
	v = max(v, 0)
	h.n[h.Bounds().bucket(v)].Add(1)
	h.sum.Add(v)
}

// Took counts the time since began.
func (h *Histogram) Took(began time.Time) { h.Observe(int64(time.Since(began))) }

// Counts is what it holds now.
func (h *Histogram) Counts() (c Counts) {
	for i := range h.n {
		c.N[i] = h.n[i].Load()
	}
	c.Sum = h.sum.Load()
	return c
}
