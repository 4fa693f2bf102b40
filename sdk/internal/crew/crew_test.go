package crew_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pontoon-bridge/pontoon/sdk/internal/crew"
)

// Each function runs once, however many there are, and whoever rests ends with the crew;
// the bubble fails if a goroutine is left.
func TestCrew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crew.New()
		var ran, together, most atomic.Int32
		goOn := make(chan struct{})
		for range 500 {
			c.Go(func() {
				for n, seen := together.Add(1), most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
				}
				<-goOn
				together.Add(-1)
				ran.Add(1)
			})
		}
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		if ran.Load() != 500 || most.Load() != 500 {
			t.Errorf("%d ran, at most %d together, expected 500", ran.Load(), most.Load())
		}
		for range 200 { // one after another, on who rests
			c.Go(func() { ran.Add(1) })
			synctest.Wait()
		}
		if ran.Load() != 700 {
			t.Errorf("%d ran, expected 700", ran.Load())
		}
		c.Close()
		c.Wait()
	})
}
