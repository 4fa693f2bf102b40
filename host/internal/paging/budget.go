package paging

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrFull is the error of who got no room in time: others hold what they read.
var ErrFull = errors.New("the host reads as much at once as its memory allows: try again later")

// RetryAfter is after which time it makes sense to try again what failed with ErrFull.
const RetryAfter = time.Second

// Budget is memory that many share.
type Budget struct {
	bytes int64
	room  *semaphore.Weighted
	wait  time.Duration
}

// NewBudget makes a budget of so many bytes, for which each waits for so long at
// most; 0 = as long as its context lasts.
func NewBudget(bytes int64, wait time.Duration) *Budget {
	return &Budget{bytes: bytes, room: semaphore.NewWeighted(bytes), wait: wait}
}

// Take waits for room for so many bytes, or for all that there is if they are more.
// Who has a share must not wait for another one of the same budget. The error is
// ErrFull, or that of ctx.
func (b *Budget) Take(ctx context.Context, bytes int64) (*Share, error) {
	bytes = min(bytes, b.bytes)
	if b.room.TryAcquire(bytes) {
		return &Share{b, bytes}, nil
	}
	waiting := ctx
	if b.wait > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, b.wait)
		defer cancel()
	}
	if b.room.Acquire(waiting, bytes) == nil {
		return &Share{b, bytes}, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, ErrFull
}

// Share is somebody's part of a budget. It is not safe for concurrent use.
type Share struct {
	of    *Budget
	bytes int64
}

// Keep gives back what is more than so many bytes.
func (s *Share) Keep(bytes int64) {
	if s != nil && bytes < s.bytes {
		s.of.room.Release(s.bytes - bytes)
		s.bytes = bytes
	}
}

// Release gives all of it back; a second time it does nothing.
func (s *Share) Release() { s.Keep(0) }
