package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// While messages come fast, the collector runs when the heap has reached
// busyHeap: what is alive is a few megabytes, and a heap of twice as much would
// be collected dozens of times a second. A host that is at rest gives memory
// back, also what a burst took such as 5,000 adapters that attach: the collector
// runs when enough was allocated, not when time passes. What such a burst leaves
// in a large heap lies scattered, and can't be given back: so the heap grows only
// for what lasts.
const (
	busyHeap = 64 << 20 // bytes
	busyRate = 8 << 20  // allocated bytes a second from which on the host is busy …
	calmRate = 2 << 20  // … and below which it is at rest …
	calmFor  = 3        // … after so many seconds of it
	busyFor  = 3        // seconds that it must be busy, with no rest between
	giveBack = 8 << 20  // allocated bytes that make it worth while
	restGC   = 100      // percent, Go's own default
)

// heapPace decides how far the heap may grow.
type heapPace struct {
	percent int    // in force
	calm    int    // seconds of rest
	busy    int    // seconds that were busy since the last rest
	owed    uint64 // allocated since memory was given back
}

// next is told what was allocated within a second and what is alive, in bytes.
// give says that memory is to be given back to the system now.
func (p *heapPace) next(allocated, live uint64) (percent int, give bool) {
	p.owed += allocated
	switch {
	case allocated >= busyRate:
		p.calm = 0
		if p.busy++; p.busy >= busyFor {
			p.percent = max(restGC, int(busyHeap*100/max(live, 1<<20))-100)
		}
	case allocated >= calmRate:
		p.calm = 0
	default:
		if p.calm++; p.calm >= calmFor {
			p.percent, p.busy = restGC, 0
			if give = p.owed >= giveBack; give {
				p.owed = 0
			}
		}
	}
	return p.percent, give
}

// serveHeap paces the collector until ctx ends, unless the environment has
// settled it. A GOMEMLIMIT counts in any case.
func serveHeap(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	found := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	p := heapPace{percent: restGC}
	before := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		metrics.Read(found)
		allocs, live := found[0].Value.Uint64(), found[1].Value.Uint64()
		was := p.percent
		now, give := p.next(allocs-before, live)
		before = allocs
		if now != was {
			debug.SetGCPercent(now)
		}
		if give {
			debug.FreeOSMemory()
		}
	}
}
