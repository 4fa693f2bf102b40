package sqlite

import (
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

var _ ledger.Leading = (*Store)(nil) // optional: nothing else would miss it

// AppendBy implements ledger.Leading.
func (s *Store) AppendBy(l ledger.Leader, u *ledger.Unit, done func(ledger.Result)) {
	if !l.Lively() || !s.w.lead(l, unit{u, done}) {
		s.Append(u, done)
	}
}

// lead takes the place of a writer that waits, for one unit; false if it does
// not wait, if units came together lately, or if its disk is in trouble.
func (w *writer) lead(l ledger.Leader, u unit) bool {
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
	u.Identify(&w.ids)
	w.mu.Unlock()

	b := new(ledger.Commit)
	w.commitAlone(u, b)
	for _, f := range b.Flushers {
		if f == ledger.Flusher(l) {
			l.FlushHere()
		} else {
			f.Flush()
		}
	}
	return true
}

// commitAlone commits one unit in the writer's place, and gives that back.
func (w *writer) commitAlone(u unit, b *ledger.Commit) {
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
	if tried, err := w.store([]unit{u}, b); tried {
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
