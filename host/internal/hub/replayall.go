package hub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

const (
	maxReplaying = 8  // replays of many that run at once
	keepReplays  = 32 // that ended and can still be asked for
)

// Errors of replays of many.
var (
	ErrReplaying = errors.New("too many replays are under way: wait for one to end, or stop one")
	ErrNoReplay  = errors.New("no such replay is known")
)

// Letter names a dead letter.
type Letter struct {
	ID      ledger.MessageID
	Channel int64 // its key
}

// ReplayAll replays letters one after the other, in their order, and tells each
// what came of one. Its error is that of ctx: then those that each was not told of
// are as they were.
func (h *Hub) ReplayAll(ctx context.Context, letters []Letter, each func(error)) error {
	for _, l := range letters {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, err := h.Store.ChannelByKey(ctx, l.Channel)
		if err == nil {
			err = h.Replay(ctx, row, ledger.Entry{Row: ledger.Row{ID: l.ID}})
		}
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		each(err)
	}
	return nil
}

// Replaying is a replay of many dead letters: how far it is.
type Replaying struct {
	ID       string
	Channel  int64 // the key of the channel whose letters they are; 0 = of all
	Total    int   // how many it is to replay
	Replayed int   // that are on their way again
	Left     int   // that could not be
	Why      error // of the last that could not be
	Began    time.Time
	Ended    time.Time // zero = it goes on
	Stopped  bool      // it ended before its end
	Fates              // of those that were replayed; together they are Replayed
}

// replayings are the replays of many that go on, and the last that ended. They are
// in memory alone: what a host that stopped did not replay is a dead letter still.
type replayings struct {
	any atomic.Int32 // letters that are tracked; spares each change of a message the mutex

	mu      sync.Mutex   // guards what follows; it may be taken with a channel's mutex held
	list    []*replaying // oldest first
	tracked map[ledger.MessageID]*replaying
}

// BeginReplay replays letters in their order, behind the caller's back; ended is
// called once it is over. A channel (0 = all) has one at a time: where one goes on
// already, that is returned, and ended is not called. Errors are ErrReplaying and
// ErrClosed.
func (h *Hub) BeginReplay(channel int64, letters []Letter, ended func(Replaying)) (Replaying, error) {
	all := &h.replayings
	all.mu.Lock()
	defer all.mu.Unlock()
	running := 0
	for _, r := range all.list {
		if !r.Ended.IsZero() {
			continue
		}
		if r.Channel == channel {
			return r.Replaying, nil
		}
		running++
	}
	if running >= maxReplaying {
		return Replaying{}, ErrReplaying
	}
	ctx, cancel := context.WithCancel(h.ctx)
	r := &replaying{Replaying{ID: uuid.NewString(), Channel: channel, Total: len(letters), Began: h.Now()}, cancel, map[ledger.MessageID]ledger.State{}}
	all.track(r, letters)
	if !h.spawn(func() { h.replay(ctx, r, letters, ended) }) {
		cancel()
		all.untrackAll(r, letters)
		return Replaying{}, ErrClosed
	}
	all.list = append(all.list, r)
	all.forgetOldest()
	return r.Replaying, nil
}

// replay is the goroutine of r.
func (h *Hub) replay(ctx context.Context, r *replaying, letters []Letter, ended func(Replaying)) {
	defer r.cancel()
	all := &h.replayings
	n := 0
	err := h.ReplayAll(ctx, letters, func(err error) {
		all.came(r, letters[n].ID, err)
		n++
	})
	all.mu.Lock()
	all.untrackAll(r, letters[n:])
	r.Ended, r.Stopped = h.Now(), err != nil
	last := r.Replaying
	all.mu.Unlock()
	ended(last)
}

// forgetOldest leaves out the oldest of those that ended. The mutex must be held.
func (a *replayings) forgetOldest() {
	ended := 0
	for _, one := range a.list {
		if !one.Ended.IsZero() {
			ended++
		}
	}
	a.list = slices.DeleteFunc(a.list, func(one *replaying) bool {
		drop := !one.Ended.IsZero() && ended > keepReplays
		if drop {
			ended--
			a.untrack(one, slices.Collect(maps.Keys(one.again))...)
		}
		return drop
	})
}

// Replays are the replays of many that go on, and the last that ended; newest first.
func (h *Hub) Replays() []Replaying {
	all := &h.replayings
	all.mu.Lock()
	defer all.mu.Unlock()
	out := make([]Replaying, 0, len(all.list))
	for _, r := range slices.Backward(all.list) {
		out = append(out, r.Replaying)
	}
	return out
}

// StopReplay ends a replay of many after the letter that it is at; one that has
// ended stays so.
func (h *Hub) StopReplay(id string) error {
	all := &h.replayings
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, r := range all.list {
		if r.ID == id {
			r.cancel()
			return nil
		}
	}
	return ErrNoReplay
}
