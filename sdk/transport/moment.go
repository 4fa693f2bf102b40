package transport

import (
	"sync/atomic"
	"time"
)

// started is what moments are measured from.
var started = time.Now()

// moment is a time that one goroutine notes and others read. It is of the steady
// clock: a wall clock that is set must neither end a connection nor keep a dead
// one alive.
type moment struct{ since atomic.Int64 }

func (m *moment) note() { m.since.Store(int64(time.Since(started))) }

func (m *moment) time() time.Time { return started.Add(time.Duration(m.since.Load())) }
