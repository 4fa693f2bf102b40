package hosttest

import (
	"sync"
	"sync/atomic"
	"time"
)

// WallClock is a wall clock that can be set.
type WallClock struct{ ahead atomic.Int64 }

// Now is its time.
func (c *WallClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Jump sets it forward, or back.
func (c *WallClock) Jump(d time.Duration) { c.ahead.Add(int64(d)) }

// SteadyClock measures how long ago something was, and calls what is due. It is the
// machine's, unless HeldClock made it: then time passes in Advance alone.
type SteadyClock struct {
	mu   sync.Mutex
	hand bool
	now  time.Time
	due  []*due
}

type due struct {
	at time.Time
	f  func() // nil = not any more
}

// HeldClock makes a steady clock that the test has in hand.
func HeldClock() *SteadyClock { return &SteadyClock{hand: true, now: time.Now()} }

// Now is its time.
func (c *SteadyClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hand {
		return time.Now()
	}
	return c.now
}

// After calls f when d has passed, as time.AfterFunc.
func (c *SteadyClock) After(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hand {
		return time.AfterFunc(d, f).Stop
	}
	one := &due{c.now.Add(d), f}
	c.due = append(c.due, one)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		was := one.f != nil
		one.f = nil
		return was
	}
}

// Advance lets time pass and runs what is due.
func (c *SteadyClock) Advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var run []func()
	kept := c.due[:0]
	for _, one := range c.due {
		switch {
		case one.f == nil:
		case one.at.After(c.now):
			kept = append(kept, one)
		default:
			run = append(run, one.f)
			one.f = nil
		}
	}
	c.due = kept
	c.mu.Unlock()
	for _, f := range run {
		f()
	}
}
