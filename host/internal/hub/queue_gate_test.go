package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// gate stands between a hub and its store: a unit reaches the disk when the test says
// so, the hub hears of it when the test says so, and the test may refuse one. Reads of
// the queue wait likewise while they are slow.
//
// Unlike ledger.Log has it, a unit's rows get their ids when it reaches the disk. Their
// order is that in which they were appended, and nobody asks for them before done.
type gate struct {
	hub.Ledger

	mu    sync.Mutex
	open  bool    // nothing is held any more
	dead  bool    // nothing reaches the disk any more
	units []*held // appended, and the hub was not told; those on the disk come first
	slow  bool
	reads []chan error                      // that wait
	disk  map[ledger.MessageID]ledger.State // as it was committed last
	log   func(format string, args ...any)  // what happens to units

	refusals  int                // that there were
	committed func(*ledger.Unit) // is told of each, before the hub is
}

var errKilled = errors.New("the host was killed")

// held is a unit between Append and done.
type held struct {
	*ledger.Unit
	done func(ledger.Result)
	over bool // it is on the disk, or refused
	err  error
}

func (h *held) String() string {
	var b strings.Builder
	for i := range h.Out {
		text, _, _ := strings.Cut(h.Out[i].Text, " ")
		fmt.Fprintf(&b, "%s as %s ", text, h.Out[i].State)
	}
	for i := range h.Settle {
		fmt.Fprintf(&b, "%s to %s", h.Settle[i].ID, h.Settle[i].State)
	}
	return b.String()
}

func newGate(l hub.Ledger) *gate {
	return &gate{Ledger: l, disk: map[ledger.MessageID]ledger.State{}, committed: func(*ledger.Unit) {}}
}

func (g *gate) Append(u *ledger.Unit, done func(ledger.Result)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.dead:
		if done != nil {
			go done(ledger.Result{Err: errKilled})
		}
		return
	case g.open:
		g.Ledger.Append(u, func(r ledger.Result) {
			if r.Err == nil {
				g.record(u)
			}
			if done != nil {
				done(r)
			}
		})
		return
	}
	h := &held{Unit: u, done: done}
	g.log("appended: %v", h)
	g.units = append(g.units, h)
}

// count is how many units are not on the disk yet, and of how many that are the hub was
// not told.
func (g *gate) count() (above, untold int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.units {
		if h.over {
			untold++
		}
	}
	return len(g.units) - untold, untold
}

// commit moves the first n units to the disk that are not there, but refuses those of
// which refuse says so.
func (g *gate) commit(n int, refuse func(*ledger.Unit) bool) {
	g.mu.Lock()
	units := slices.Clone(g.units)
	g.mu.Unlock()
	units = slices.DeleteFunc(units, func(h *held) bool { return h.over })
	units = units[:min(n, len(units))]
	var all sync.WaitGroup
	for _, h := range units {
		if refuse(h.Unit) {
			h.err, h.Failed = ledger.ErrUnavailable, true
			g.refusals++
			g.log("refused: %v", h)
			continue
		}
		all.Add(1)
		g.Ledger.Append(h.Unit, func(r ledger.Result) {
			h.err = r.Err
			all.Done()
		})
	}
	all.Wait()
	for _, h := range units {
		if h.err == nil {
			g.log("on the disk: %v", h)
			g.record(h.Unit)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range units {
		h.over = true
	}
}

// record takes note of what is on the disk now.
func (g *gate) record(u *ledger.Unit) {
	g.mu.Lock()
	for i := range u.Out {
		g.disk[u.Out[i].ID] = u.Out[i].State
	}
	for i := range u.Settle {
		g.disk[u.Settle[i].ID] = u.Settle[i].State
	}
	g.mu.Unlock()
	g.committed(u)
}

// tell tells the hub of the first n units that are on the disk, as of one commit.
func (g *gate) tell(n int) {
	g.mu.Lock()
	units := slices.DeleteFunc(slices.Clone(g.units), func(h *held) bool { return !h.over })
	units = units[:min(n, len(units))]
	g.units = g.units[len(units):]
	g.mu.Unlock()
	c := new(ledger.Commit)
	for _, h := range units {
		if h.done == nil {
			continue
		}
		g.log("told: %v", h)
		r := ledger.Result{Err: h.err}
		if h.err == nil {
			r.Commit = c
		}
		h.done(r)
	}
	for _, f := range c.Flushers {
		f.Flush()
	}
}

// state is that of a message on the disk.
func (g *gate) state(id ledger.MessageID) ledger.State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.disk[id]
}

// wait holds a read while reads are slow.
func (g *gate) wait() error {
	g.mu.Lock()
	if !g.slow || g.open {
		g.mu.Unlock()
		return nil
	}
	mine := make(chan error, 1)
	g.reads = append(g.reads, mine)
	g.mu.Unlock()
	return <-mine
}

// reading is how many reads wait.
func (g *gate) reading() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.reads)
}

// read lets the first read go that waits, or fail.
func (g *gate) read(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads[0] <- err
	g.reads = g.reads[1:]
}

// slowly makes reads wait, or not any more.
func (g *gate) slowly(slow bool) {
	g.mu.Lock()
	g.slow = slow
	g.mu.Unlock()
	for !slow && g.reading() > 0 {
		g.read(nil)
	}
}

// release holds nothing any more.
func (g *gate) release() {
	g.mu.Lock()
	g.open = true
	g.mu.Unlock()
	g.slowly(false)
	for above, untold := g.count(); above+untold > 0; above, untold = g.count() {
		g.commit(above, func(*ledger.Unit) bool { return false })
		g.tell(above + untold)
	}
}

// kill lets nothing reach the disk any more.
func (g *gate) kill() {
	g.mu.Lock()
	g.dead = true
	units := g.units
	g.units = nil
	g.mu.Unlock()
	g.slowly(false)
	for _, h := range units {
		if h.done != nil {
			h.done(ledger.Result{Err: errKilled})
		}
	}
}

// calm reports that nobody waits for the disk.
func (g *gate) calm() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.units)+len(g.reads) == 0 && !g.slow
}

// slowRead is a read of the queue, held before it looks and before it returns.
func slowRead[T any](g *gate, read func() (T, error)) (v T, err error) {
	if err := g.wait(); err != nil {
		return v, err
	}
	if v, err = read(); err != nil {
		return v, err
	}
	if err := g.wait(); err != nil {
		return *new(T), err
	}
	return v, nil
}

func (g *gate) EntriesWithin(ctx context.Context, ids []ledger.MessageID, bytes int) (found []ledger.Entry, looked int, err error) {
	found, err = slowRead(g, func() (all []ledger.Entry, err error) {
		all, looked, err = g.Ledger.EntriesWithin(ctx, ids, bytes)
		return all, err
	})
	if err != nil {
		return nil, 0, err
	}
	return found, looked, nil
}

func (g *gate) Pending(ctx context.Context, channel int64, id ledger.MessageID, n int) ([]ledger.Entry, error) {
	return slowRead(g, func() ([]ledger.Entry, error) { return g.Ledger.Pending(ctx, channel, id, n) })
}

func (g *gate) Waiting(ctx context.Context, channel int64) ([]ledger.Waiting, error) {
	return slowRead(g, func() ([]ledger.Waiting, error) { return g.Ledger.Waiting(ctx, channel) })
}
