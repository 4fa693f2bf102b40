package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// What counts as calm, and as worth a collection: a host that allocates less in
// a second does next to nothing; one that has allocated less altogether has
// little to give.
const (
	calmLook  = time.Second
	calmBytes = 1 << 20
	giveBytes = 8 << 20
)

// giveBack returns memory to the system once the host is calm after a burst,
// until ctx ends. The collector runs when enough was allocated and not when
// time passes, so that what 5,000 adapters take to attach would stay for long.
func giveBack(ctx context.Context) error {
	tick := time.NewTicker(calmLook)
	defer tick.Stop()
	last := allocated()
	given := last
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		total := allocated()
		calm := total-last < calmBytes
		last = total
		if calm && total-given >= giveBytes {
			debug.FreeOSMemory()
			last = allocated()
			given = last
		}
	}
}

// allocated is how many bytes the process has ever allocated.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
