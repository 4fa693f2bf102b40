// Package crew runs functions on goroutines that ran others before: their stacks have
// grown, which took a tenth of the time of a program that answers at once.
package crew

import (
	"sync"
	"sync/atomic"
)

// maxResting is how many goroutines stay for what may come.
const maxResting = 64

// Crew is made by New, and lives until Close.
type Crew struct {
	next    chan func()
	resting atomic.Int32
	over    chan struct{}
	end     sync.Once
	all     sync.WaitGroup
}

// New makes a crew without anybody in it.
func New() *Crew { return &Crew{next: make(chan func()), over: make(chan struct{})} }

// Go runs fn on a goroutine of its own.
func (c *Crew) Go(fn func()) {
	select {
	case c.next <- fn:
	default:
		c.all.Go(func() { c.work(fn) })
	}
}

// Close ends the goroutines that rest, and those that run as soon as they would.
func (c *Crew) Close() { c.end.Do(func() { close(c.over) }) }

// Wait waits until all have ended; after Close.
func (c *Crew) Wait() { c.all.Wait() }

func (c *Crew) work(fn func()) {
	for {
		fn()
		if c.resting.Add(1) > maxResting {
			c.resting.Add(-1)
			return
		}
		select {
		case fn = <-c.next:
			c.resting.Add(-1)
		case <-c.over:
			return
		}
	}
}
