package main

import "testing"

func TestHeapPace(t *testing.T) {
	const mib = 1 << 20
	p := heapPace{percent: restGC}
	for i, step := range []struct {
		allocated, live uint64
		want            int
		give            bool
	}{
		{1 * mib, 4 * mib, restGC, false},
		{100 * mib, 4 * mib, restGC, false}, // a burst, perhaps
		{3 * mib, 4 * mib, restGC, false},
		{100 * mib, 4 * mib, restGC, false},
		{100 * mib, 4 * mib, 1500, false}, // to 64 MiB
		{3 * mib, 4 * mib, 1500, false},   // neither busy nor at rest
		{0, 4 * mib, 1500, false},
		{0, 4 * mib, 1500, false},
		{100 * mib, 16 * mib, 300, false}, // busy again: the rest does not count
		{0, 16 * mib, 300, false},
		{0, 16 * mib, 300, false},
		{0, 16 * mib, restGC, true},
		{1 * mib, 16 * mib, restGC, false}, // not worth it
		{1 * mib, 16 * mib, restGC, false},
		{9 * mib / 8, 16 * mib, restGC, false},
		{100 * mib, 200 * mib, restGC, false},
		{100 * mib, 200 * mib, restGC, false},
		{100 * mib, 200 * mib, restGC, false}, // large anyway
		{100 * mib, 0, 6300, false},
	} {
		if got, give := p.next(step.allocated, step.live); got != step.want || give != step.give {
			t.Errorf("step %d: found %d %%, %v, expected %d, %v", i, got, give, step.want, step.give)
		}
	}
}
