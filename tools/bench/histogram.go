package bench

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets no wider than 1/64 of their value.
type histogram struct {
	buckets []uint32
	n       int
	max     time.Duration
}

const subBits = 6 // 64 buckets for each power of two

func bucketOf(ns uint64) int {
	if ns < 1<<subBits {
		return int(ns)
	}
	shift := bits.Len64(ns) - 1 - subBits
	return shift<<subBits + int(ns>>shift)
}

// bucketTop is the largest value of a bucket.
func bucketTop(b int) uint64 {
	if b < 1<<subBits {
		return uint64(b)
	}
	shift := b>>subBits - 1
	return (uint64(b-shift<<subBits)+1)<<shift - 1
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	b := bucketOf(uint64(d))
	if b >= len(h.buckets) {
		h.buckets = append(h.buckets, make([]uint32, b+64-len(h.buckets))...)
	}
	h.buckets[b]++
	h.n++
	h.max = max(h.max, d)
}

func (h *histogram) merge(o *histogram) {
	if len(o.buckets) > len(h.buckets) {
		h.buckets = append(h.buckets, make([]uint32, len(o.buckets)-len(h.buckets))...)
	}
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

// quantile is the duration that q of all do not exceed; 0 if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int(q*float64(h.n) + 0.999999)
	for b, n := range h.buckets {
		if rank -= int(n); n > 0 && rank <= 0 {
			return min(time.Duration(bucketTop(b)), h.max)
		}
	}
	return h.max
}
