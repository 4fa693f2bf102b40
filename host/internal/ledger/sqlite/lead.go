package sqlite

import (
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// AppendBy is Append for a caller that holds no lock and that may wait for the
// disk: if the writer has nothing to do, the unit is committed before it
// returns, and what Done left for the leader to flush is flushed here.
func (s *Store) AppendBy(l ledger.Leader, u *Unit) {
	if !l.Lively() || !s.w.lead(l, u) {
		s.Append(u)
	}
}

// lead takes the place of a writer that waits, for one unit; false if it does
// not wait, if units came together lately, or if its disk is in trouble.
func (w *writer) lead(l ledger.Leader, u *Unit) bool {
	w.mu.Lock()
	if !w.waiting || w.closed || w.crowd { // among many, those who come meanwhile had better share the commit
		w.mu.Unlock()
		return false
	}
	if !w.since.IsZero() || w.broken != nil { // in trouble a commit may take long, and the leader has other things to do
		w.mu.Unlock()
		return false
	}
	w.waiting = false
	u.identify(&w.ids)
	w.mu.Unlock()

	b := new(batch)
	w.commitAlone(u, b)
	for _, f := range b.later {
		if f == ledger.Flusher(l) {
			l.FlushHere()
		} else {
			f.Flush()
		}
	}
	return true
}

// commitAlone commits one unit in the writer's place, and gives that back.
func (w *writer) commitAlone(u *Unit, b *batch) {
	untidy := false
	defer func() {
		p := recover()
		if p != nil && w.broken == nil { // whoever recovers: what the connection holds now nobody knows
			w.broken = fmt.Errorf("%w: a commit panicked: %v", ledger.ErrUnavailable, p)
			w.failed <- w.broken
		}
		w.giveBack(untidy)
		if p != nil {
			panic(p)
		}
	}()
	if tried, err := w.store([]*Unit{u}, b); tried {
		untidy = w.note(err)
	}
}

// giveBack ends what lead began. The writer is woken only if there is something
// to do.
func (w *writer) giveBack(untidy bool) {
	w.mu.Lock()
	w.untidy = untidy
	w.waiting = !untidy && len(w.queue) == 0 && len(w.jobs) == 0 && !w.closed
	wake := !w.waiting
	w.mu.Unlock()
	if wake {
		w.wake <- struct{}{}
	}
}
