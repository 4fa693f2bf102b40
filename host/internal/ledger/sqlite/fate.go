package sqlite

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// errFallen is the error of a unit behind one that failed.
var errFallen = fmt.Errorf("%w: what comes before was not stored", ledger.ErrUnavailable)

// fatesOf are the errors of units, none so far.
func (w *writer) fatesOf(units []unit) []error {
	clear(w.fates)
	w.fates = slices.Grow(w.fates[:0], len(units))[:len(units)]
	return w.fates
}

// kept are the units that nothing is known against.
func (w *writer) kept(units []unit, fates []error) []unit {
	dropped := 0
	for i, u := range units {
		switch {
		case fates[i] != nil:
		case u.chain().removed:
			fates[i] = ledger.ErrRemoved
		case u.Owner().Epoch != u.chain().epoch:
			fates[i] = ledger.ErrFenced
		case u.After != nil && u.After.Failed:
			fates[i] = errFallen
		}
		if fates[i] != nil {
			u.Failed = true // those behind it are looked at next
			dropped++
		}
	}
	if dropped == 0 {
		return units
	}
	rest := make([]unit, 0, len(units)-dropped)
	for i, u := range units {
		if fates[i] == nil {
			rest = append(rest, u)
		}
	}
	return rest
}

// unfit reports that a commit failed for what one of its units says, not for the
// disk.
func unfit(err error) bool {
	var broken *sqliteError
	return errors.Is(err, ledger.ErrRemoved) || errors.As(err, &broken) && broken.constraint()
}

// unfitUnit is the error of the unit that a commit failed for. Repeats were looked
// for before: it is none.
func (w *writer) unfitUnit(err error) error {
	if errors.Is(err, ledger.ErrRemoved) {
		return err
	}
	w.log.Error("a message was not stored: the database does not take it", "error", err)
	return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
}

// wariness is how many batches after one with a repeat are looked at beforehand: an
// adapter that repeats messages does it again, and each time costs a transaction
// that is rolled back.
const wariness = 64

// lookAhead finds the units that can't be stored, repeats and changes of messages
// that were deleted, and returns the others.
func (w *writer) lookAhead(units []unit, fates []error) ([]unit, error) {
	clear(w.ahead)
	first := ledger.MessageID(math.MaxInt64) // of the batch: it is not on the disk yet
	for i, u := range units {
		if errors.Is(fates[i], ledger.ErrDuplicate) || errors.Is(fates[i], errFallen) {
			fates[i], u.Failed = nil, false // looked for anew
		}
		if id := u.First(); id != 0 {
			first = min(first, id)
		}
	}
	for i, u := range units {
		if fates[i] != nil {
			continue
		}
		var err error
		if fates[i], err = w.fateOf(u, first); err != nil {
			return nil, err
		}
		if fates[i] != nil {
			w.wary = wariness
		}
	}
	return w.kept(units, fates), nil
}

// platformKey is what must be unique.
type platformKey struct {
	channel int64
	id      string
}

// fateOf looks for what is against a unit; first is the first message of its batch.
func (w *writer) fateOf(u unit, first ledger.MessageID) (fate, err error) {
	if u.In != nil {
		fate, err = w.fateOfRow(u.chain().channel, u.In)
	}
	for i := 0; i < len(u.Out) && fate == nil && err == nil; i++ {
		fate, err = w.fateOfRow(u.chain().channel, &u.Out[i])
	}
	for i := 0; i < len(u.Settle) && fate == nil && err == nil; i++ {
		id := u.Settle[i].ID
		if id >= first {
			continue
		}
		w.there.int(int64(id))
		var there bool
		if there, err = w.there.once(); err == nil && !there {
			fate = ledger.ErrRemoved
		}
	}
	return fate, err
}

func (w *writer) fateOfRow(channel int64, r *ledger.Row) (fate, err error) {
	if r.PlatformID == "" {
		return nil, nil
	}
	key := platformKey{channel, r.PlatformID}
	if w.ahead[key] {
		return ledger.ErrDuplicate, nil
	}
	w.ahead[key] = true
	w.repeat.int(channel)
	w.repeat.text(r.PlatformID)
	there, err := w.repeat.once()
	if there {
		fate = ledger.ErrDuplicate
	}
	return fate, err
}
