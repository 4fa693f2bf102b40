package main

import "testing"

func TestHeapPace(t *testing.T) {
	const mib = 1 << 20
	p := heapPace{percent: restGC}
	for i, step := range []struct {
		allocated, live uint64
		want            int
	}{
		{1 * mib, 4 * mib, restGC},
		{100 * mib, 4 * mib, 1500}, // to 64 MiB
		{3 * mib, 4 * mib, 1500},   // neither busy nor at rest
		{0, 4 * mib, 1500},
		{0, 4 * mib, 1500},
		{100 * mib, 16 * mib, 300}, // busy again: the rest does not count
		{0, 16 * mib, 300},
		{0, 16 * mib, 300},
		{0, 16 * mib, restGC},
		{100 * mib, 200 * mib, restGC}, // large anyway
		{100 * mib, 0, 6300},
	} {
		if got := p.next(step.allocated, step.live); got != step.want {
			t.Errorf("step %d: found %d %%, expected %d", i, got, step.want)
		}
	}
}
