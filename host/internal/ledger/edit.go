package ledger

import (
	"context"
	"errors"
)

// ErrConflict is the error of a change of a row that somebody else has changed since
// it was read.
var ErrConflict = errors.New("was changed meanwhile")

// Edit changes a row that others may change at the same time, and loses nothing of
// theirs: read reads it, edit changes what it is asked to, put stores it. If somebody
// else was faster, put fails with ErrConflict and all begins anew; that is some other
// change's success, and ends with ctx. A nil Change of edit leaves the row as it is.
func Edit[T any](ctx context.Context, read func(context.Context) (T, error), edit func(*T) (*Change, error), put func(context.Context, T, Change) (T, error)) (T, error) {
	for {
		row, err := read(ctx)
		if err != nil {
			return row, err
		}
		by, err := edit(&row)
		if err != nil || by == nil {
			return row, err
		}
		row, err = put(ctx, row, *by)
		if !errors.Is(err, ErrConflict) {
			return row, err
		}
		if err := ctx.Err(); err != nil {
			return row, err
		}
	}
}
