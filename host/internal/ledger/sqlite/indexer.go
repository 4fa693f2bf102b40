package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/host/internal/search"
)

const (
	// indexStep is how many messages one transaction adds to the index, on the
	// writer's goroutine, while others store messages; indexCalm while nobody does.
	indexStep = 50
	indexCalm = 400
	// indexMerge is what a transaction may write beyond its words, in bytes.
	indexMerge = 64 << 20
	// indexCount is up to where it is counted how far the index is behind.
	indexCount = 100_000
)

// indexer adds messages to the index of words, and conversations to the list of
// recent ones, some time after they were committed: a commit costs nothing more.
// Progress and words are one transaction, so that it goes on where it was,
// whatever happens.
type indexer struct {
	*Store
	low, high int64 // see schema: indexing

	units int64 // that were stored when storm was
	asked time.Time
}

// index runs until ctx ends.
func (x *indexer) index(ctx context.Context) {
	tick := time.NewTicker(housekeeping)
	defer tick.Stop()
	for full := false; ; {
		err := x.catchUp(ctx)
		// It needs more room than messages do, and may lack it for long: that is said once.
		if err != nil && ctx.Err() == nil && (!full || !errors.Is(err, ledger.ErrFull)) {
			x.log.Warn("messages not added to the search index yet", "error", err)
		}
		full = errors.Is(err, ledger.ErrFull)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// catchUp adds what is there, the new messages before the old ones.
func (x *indexer) catchUp(ctx context.Context) error {
	at, err := x.read.Indexing(ctx)
	if err != nil {
		return fmt.Errorf("read progress: %w", err)
	}
	x.low, x.high = at.Low, at.High
	if err := x.late(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		n, err := x.up(ctx)
		if err == nil && n == 0 {
			n, err = x.down(ctx)
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return x.forget(ctx)
		}
	}
	return ctx.Err()
}

const (
	// mergePages is how much of the index one transaction writes anew.
	mergePages = 32
	// purgeEvery is how long words of messages that were deleted for their age may
	// be left in pages of the index that hold little else that is deleted. Those of
	// a deleted channel go at once.
	purgeEvery = 24 * time.Hour
)

// forget makes the words of deleted messages leave the file: they are found no
// more, but stay until their page is written anew.
func (x *indexer) forget(ctx context.Context) error {
	if !x.erased.Swap(false) {
		return nil
	}
	err := x.merge(ctx)
	if err != nil {
		x.erased.Store(true)
		return fmt.Errorf("merge the index: %w", err)
	}
	return nil
}

func (x *indexer) merge(ctx context.Context) error {
	at, err := x.read.PurgedAt(ctx)
	if err != nil {
		return err
	}
	purge := x.now().Sub(time.UnixMilli(at)) >= purgeEvery
	pages := mergePages
	if purge {
		pages = -mergePages // begins to write all of it
	}
	for worked := true; worked; pages = mergePages {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := x.paced(ctx, 2*mergePages*pageSpace, func(q *db.Queries) (err error) {
			worked, err = q.MergeWords(ctx, pages)
			return err
		})
		if err != nil {
			return err
		}
		worked = worked || pages < 0
	}
	if !purge {
		return nil
	}
	return x.change(func(q *db.Queries) error { return q.SetPurgedAt(ctx, x.now().UnixMilli()) })
}

// paced runs one transaction of the index, and rests. What is kept back of the disk
// is not for the index: need is what it may take, in bytes.
func (x *indexer) paced(ctx context.Context, need uint64, fn func(*db.Queries) error) error {
	var began time.Time
	if info, err := os.Stat(x.w.path); err == nil { // now and then the index is merged: much of it is written again
		need += uint64(min(info.Size(), indexMerge))
	}
	err := x.changeBeside(func(q *db.Queries) error {
		if err := x.w.room(need); err != nil {
			return err
		}
		began = time.Now()
		return fn(q)
	})
	if err != nil {
		return err
	}
	worked := time.Since(began)
	switch {
	case x.storm():
		sleep(ctx, stormRest)
	case x.w.pulse.busy():
		rest(ctx, worked)
	default: // nobody is held up
		rest(ctx, worked/sweepPause)
	}
	return nil
}

// In a storm of messages the index all but waits: beside traffic it does indexStep
// rows in a tenth of a second, so that it could not keep up; search finds the newest
// without it; and it catches up afterwards.
const (
	stormRate = 500 // units a second, of mostly two rows
	stormRest = 2 * time.Second
)

// storm reports whether messages came that fast since it was last asked.
func (x *indexer) storm() bool {
	units, now := x.w.pulse.units.Load(), time.Now()
	since := now.Sub(x.asked).Seconds()
	fast := float64(units-x.units) > stormRate*since
	x.units, x.asked = units, now
	return fast
}

func (x *indexer) size() int64 {
	if x.w.pulse.busy() {
		return indexStep
	}
	return indexCalm
}

// up adds some of the messages that came since.
func (x *indexer) up(ctx context.Context) (int, error) {
	rows, err := x.read.ToIndexUp(ctx, db.ToIndexUpParams{After: x.high, N: x.size()})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	add := additions{high: rows[len(rows)-1].ID, low: x.low}
	newest := map[int64]int64{} // by conversation
	for _, r := range rows {
		add.one(r)
		add.passed = append(add.passed, r.Prev)
		newest[r.Conversation] = r.ID
	}
	for _, id := range newest {
		add.heads = append(add.heads, id)
	}
	return len(rows), x.add(ctx, add)
}

// down adds some of the messages that were there before the index was.
func (x *indexer) down(ctx context.Context) (int, error) {
	if x.low == 0 {
		return 0, nil
	}
	rows, err := x.read.ToIndexDown(ctx, db.ToIndexDownParams{Upto: x.low, N: x.size()})
	if err != nil {
		return 0, err
	}
	add := additions{high: x.high}
	for _, r := range rows {
		add.one(db.ToIndexUpRow(r))
		add.low = r.ID - 1
	}
	return len(rows), x.add(ctx, add)
}

// late adds messages that were being made when the index came by, and are made now.
func (x *indexer) late(ctx context.Context) error {
	for {
		rows, err := x.read.ToIndexLater(ctx, indexStep)
		if err != nil || len(rows) == 0 {
			return err
		}
		add := additions{high: x.high, low: x.low}
		for _, r := range rows {
			add.one(db.ToIndexUpRow(r))
			add.made = append(add.made, r.ID)
		}
		if err := x.add(ctx, add); err != nil {
			return err
		}
	}
}

// additions are what one transaction adds.
type additions struct {
	low, high int64
	words     []db.Words
	later     []int64 // messages that are still being made
	made      []int64 // that were among later
	heads     []int64 // newest messages of conversations
	passed    []int64 // that are it no longer
}

func (a *additions) one(r db.ToIndexUpRow) {
	if making(r.Status) {
		a.later = append(a.later, r.ID)
		return
	}
	a.words = append(a.words, db.Words{
		ID: r.ID, Text: search.Words(search.Text(r.Text, r.Parts), search.MaxText), Author: search.Words(author(r.Origin), search.MaxText), Place: place(r.Channel),
	})
}

// making reports that what a message says is not known yet.
func making(status int64) bool { return status == 1 || status == 2 } // pending, streaming

// author is by what somebody who spoke is looked for.
func author(origin []byte) string {
	o, err := packed.ParseOrigin(origin)
	if err != nil {
		return "" // a row that some other hand broke
	}
	return o.UserName + "\n" + o.UserID + "\n" + o.Agent
}

// place is a channel as the index knows it.
func place(channel int64) string { return "c" + strconv.FormatInt(channel, 10) }

// add writes additions, but for messages that were deleted meanwhile, and rests.
func (x *indexer) add(ctx context.Context, a additions) error {
	if err := x.paced(ctx, a.need(), func(q *db.Queries) error { return a.write(ctx, q) }); err != nil {
		return err
	}
	x.low, x.high = a.low, a.high
	return nil
}

// need is what the additions may take on the disk.
func (a *additions) need() uint64 {
	all := 2*commitSpace + len(a.words)*rowSpace
	for _, w := range a.words {
		all += 2 * (len(w.Text) + len(w.Author))
	}
	return uint64(all)
}

func (a *additions) write(ctx context.Context, q *db.Queries) error {
	ids := make([]int64, len(a.words))
	for i, w := range a.words {
		ids[i] = w.ID
	}
	there, err := q.StillThere(ctx, ids)
	if err != nil {
		return fmt.Errorf("read what is still there: %w", err)
	}
	slices.Sort(there)
	a.words = slices.DeleteFunc(a.words, func(w db.Words) bool { _, ok := slices.BinarySearch(there, w.ID); return !ok })
	slices.SortFunc(a.words, func(v, w db.Words) int { return int(min(1, max(-1, v.ID-w.ID))) })
	if err := q.InsertWords(ctx, a.words); err != nil {
		return fmt.Errorf("write words: %w", err)
	}
	for _, do := range []struct {
		ids []int64
		fn  func(context.Context, []int64) error
	}{{a.later, q.InsertLater}, {a.made, q.DeleteLater}, {a.passed, q.DeleteRecent}, {a.heads, q.InsertRecent}} {
		if len(do.ids) == 0 {
			continue
		}
		if err := do.fn(ctx, do.ids); err != nil {
			return fmt.Errorf("write lists of the index: %w", err)
		}
	}
	if err := q.SetIndexing(ctx, db.SetIndexingParams{Low: a.low, High: a.high}); err != nil {
		return fmt.Errorf("write progress: %w", err)
	}
	return nil
}

// Behind is how many messages are not in the search index yet; more: at least so
// many.
func (s *Store) Behind(ctx context.Context) (n int64, more bool, err error) {
	return behind(ctx, s.read)
}

func behind(ctx context.Context, q *db.Queries) (n int64, more bool, err error) {
	fresh, old, err := unindexed(ctx, q)
	return min(fresh+old, indexCount), fresh+old >= indexCount, err
}

// unindexed counts the messages that came since the index came by, and those of
// before it that it has not come to, each up to indexCount.
func unindexed(ctx context.Context, q *db.Queries) (fresh, old int64, err error) {
	at, err := q.Indexing(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("read progress of the index: %w", err)
	}
	if fresh, err = q.CountAfter(ctx, db.CountAfterParams{After: at.High, Most: indexCount}); err == nil && at.Low > 0 {
		old, err = q.CountUpTo(ctx, db.CountUpToParams{Upto: at.Low, Most: indexCount})
	}
	if err != nil {
		return 0, 0, fmt.Errorf("count messages: %w", err)
	}
	return fresh, old, nil
}
