package grpcconn

import (
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
)

// A write hangs if so many looks in a row have seen it: transport.WriteTimeout in all.
const (
	watchLooks = 10
	watchEvery = transport.WriteTimeout / watchLooks
)

// watch finds writes that hang, one at a time. A timer that is set for every
// write would cost more than all else that Stream.Write does; this one runs on
// while there are writes, and looks.
type watch struct {
	hangs func() // called once, and nothing is watched any more

	writes atomic.Uint64 // odd: one is under way
	awake  atomic.Bool   // a look will come

	// of look
	last  uint64 // what writes was when it was odd
	times int    // that it was seen since
}

func (w *watch) begin() {
	w.writes.Add(1)
	w.wake()
}

func (w *watch) end() { w.writes.Add(1) }

func (w *watch) wake() {
	if !w.awake.Load() && !w.awake.Swap(true) {
		time.AfterFunc(watchEvery, w.look)
	}
}

func (w *watch) look() {
	now := w.writes.Load()
	switch {
	case now%2 == 0: // an idle stream is not looked at
		w.times = 0
		w.awake.Store(false)
		if w.writes.Load() != now { // that write may have seen us awake
			w.wake()
		}
		return
	case now != w.last:
		w.last, w.times = now, 1
	default:
		w.times++
	}
	if w.times > watchLooks {
		w.hangs()
		return
	}
	time.AfterFunc(watchEvery, w.look)
}
