package hub_test

import (
	"flag"
	"sync/atomic"
)

// budget is how often a model is run where nobody says how often (-rapid.checks): a run of
// all tests has no time for more.
type budget struct {
	most   int32
	runs   atomic.Int32
	failed atomic.Bool // rapid looks for a simpler case, as often as it likes
}

// run runs it, unless that was often enough.
func (b *budget) run(model func()) {
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" || f.Name == "rapid.seed" })
	if b.runs.Add(1) > b.most && !asked && !b.failed.Load() {
		return
	}
	ok := false
	defer func() {
		if !ok {
			b.failed.Store(true)
		}
	}()
	model()
	ok = true
}
