package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

const (
	// sweepStep is how many messages one transaction deletes. It is on the
	// writer's goroutine: commits wait for it, as they do for one another.
	sweepStep = 50
	// sweepPause is how many times as long as it worked the broom rests: it has a
	// tenth of the writer at most, unless the disk is so slow that it would never
	// come to an end.
	sweepPause  = 9
	longestRest = 100 * time.Millisecond
	// sweepPage is how many messages are looked at, at a time, on a reader.
	sweepPage = 1000

	agesEvery = 10 * time.Minute // they are told in days
	sizeEvery = 10 * time.Second
	// sizeSpares is what the limit of size does not touch: younger messages may
	// be on their way to an adapter still.
	sizeSpares = 10 * time.Minute
	// sizeRoom is the part of the limit that is freed at once: a twentieth.
	sizeRoom  = 20
	warnEvery = time.Hour
)

// broom deletes what is to be kept no longer: messages of deleted channels, those
// that are older than their channel keeps them, and the oldest while the whole is
// over its limit.
//
// Of a channel always the oldest message goes first, and none behind one that is
// not finished. So what is left of a channel has no gaps: a walk along prev and
// prev_channel ends where the deleted ones begin.
type broom struct {
	*Store
	max  int64         // bytes that database and attachments may take; 0 = any
	wake chan struct{} // capacity 1: a channel keeps messages for another time now

	mu      sync.Mutex // held during a pass; guards what follows
	days    *almanac
	blocked map[int64]int64 // by channel: its oldest message that is not finished
	warned  time.Time
}

// sweep runs until ctx ends.
func (b *broom) sweep(ctx context.Context) {
	tick := time.NewTicker(housekeeping)
	defer tick.Stop()
	var ages, size time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
			ages = time.Time{}
		case now := <-tick.C:
			if err := b.sweepRemoved(ctx); err != nil && ctx.Err() == nil {
				b.log.Warn("messages of a deleted channel not deleted", "error", err)
			}
			if now.Sub(ages) >= agesEvery {
				ages = now
				if err := b.sweepOld(ctx); err != nil && ctx.Err() == nil {
					b.log.Warn("old messages not deleted", "error", err)
				}
				if err := b.sweepConnections(ctx); err != nil && ctx.Err() == nil {
					b.log.Warn("old history of connections not deleted", "error", err)
				}
			}
			if b.max > 0 && now.Sub(size) >= sizeEvery {
				size = now
				if err := b.sweepOver(ctx); err != nil && ctx.Err() == nil {
					b.log.Warn("storage limit not kept", "error", err)
				}
			}
		}
	}
}

// sweepOld deletes what is older than its channel keeps it.
func (b *broom) sweepOld(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	channels, err := b.channels(ctx)
	if err != nil {
		return err
	}
	rounds := map[int64]*round{} // by days, so that channels share their round
	for _, c := range channels {
		if c.RetentionDays == 0 {
			continue
		}
		w := rounds[c.RetentionDays]
		if w == nil {
			w = newRound(b.before(time.Duration(c.RetentionDays) * 24 * time.Hour))
			rounds[c.RetentionDays] = w
		}
		w.add(c)
	}
	for _, days := range slices.Sorted(maps.Keys(rounds)) {
		w := rounds[days]
		err := b.goRound(ctx, w)
		for channel, n := range w.deleted {
			b.log.Info("messages deleted", "why", "older than their channel keeps them", "channel", w.channels[channel].Name, "retention_days", days, "count", n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepOver deletes the oldest messages of all channels if database and
// attachments take more than they may, until there is some room again.
func (b *broom) sweepOver(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	used, err := b.used(ctx)
	if err != nil || used <= b.max {
		return err
	}
	channels, err := b.channels(ctx)
	if err != nil {
		return err
	}
	w := newRound(b.before(sizeSpares))
	for _, c := range channels {
		w.add(c)
	}
	w.enough = func() (bool, error) {
		now, err := b.used(ctx)
		return now <= b.max-b.max/sizeRoom, err
	}
	err = b.goRound(ctx, w)
	left, uerr := b.used(ctx)
	if err == nil {
		err = uerr
	}
	count := 0
	for _, n := range w.deleted {
		count += n
	}
	if count > 0 {
		b.log.Warn("messages deleted", "why", "storage was over its limit", "count", count, "up_to", w.newest.Time(),
			"limit_bytes", b.max, "bytes_before", used, "bytes_now", left)
	}
	if err == nil && left > b.max && b.now().Sub(b.warned) >= warnEvery {
		b.warned = b.now()
		b.log.Warn("storage is over its limit, and nothing is left that may be deleted", "limit_bytes", b.max, "bytes_now", left,
			"spared", "messages of the last "+sizeSpares.String()+", and those of a channel from its first unfinished one on")
	}
	return err
}

// before is the newest id that a message may have which is older than age.
func (b *broom) before(age time.Duration) ledger.MessageID {
	return ledger.IDAt(b.days.today().Add(-age)) - 1
}

// used is how many bytes are in use, of the database and by attachments. Pages
// that deleted messages left are not: new ones will be written there.
func (b *broom) used(ctx context.Context) (int64, error) {
	var bytes int64
	err := b.readDB.QueryRowContext(ctx, "SELECT (p.page_count - f.freelist_count) * z.page_size "+
		"FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size z").Scan(&bytes)
	if err != nil {
		return 0, failed("read size of database", err)
	}
	if f := b.keeper(); f != nil {
		bytes += f.Bytes()
	}
	return bytes, nil
}

// channels lists those of which messages may be deleted now.
func (b *broom) channels(ctx context.Context) ([]db.RetainedChannelsRow, error) {
	all, err := b.read.RetainedChannels(ctx)
	if err != nil {
		return nil, failed("read channels", err)
	}
	waiting, err := unfinishedOf(ctx, b.read, b.open, slices.Collect(maps.Values(b.blocked)))
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(b.blocked, func(_, id int64) bool { return !waiting[id] })
	return slices.DeleteFunc(all, func(c db.RetainedChannelsRow) bool {
		_, blocked := b.blocked[c.ID]
		return blocked
	}), nil
}

// unfinishedOf tells which of the messages are not finished: those that wait in a
// queue or for an acknowledgement, and turns that have not ended.
func unfinishedOf(ctx context.Context, q *db.Queries, open *unfinished, ids []int64) (map[int64]bool, error) {
	pending, err := q.PendingAmong(ctx, ids)
	if err != nil {
		return nil, failed("read queue", err)
	}
	stay := map[int64]bool{}
	for _, id := range pending {
		stay[id] = true
	}
	for _, id := range ids {
		if open.has(ledger.MessageID(id)) {
			stay[id] = true
		}
	}
	return stay, nil
}

// round is one way through the log, oldest first.
type round struct {
	after, to ledger.MessageID // where it is, and its end
	channels  map[int64]db.RetainedChannelsRow
	enough    func() (bool, error) // asked before each step; nil = never
	deleted   map[int64]int        // messages, by channel
	newest    ledger.MessageID     // of them
}

func newRound(to ledger.MessageID) *round {
	return &round{after: math.MaxInt64, to: to, channels: map[int64]db.RetainedChannelsRow{}, deleted: map[int64]int{}}
}

func (w *round) add(c db.RetainedChannelsRow) {
	w.channels[c.ID] = c
	w.after = min(w.after, ledger.MessageID(c.Swept))
}

// goRound deletes what messages of the round's channels it finds, and writes down how
// far it came, so that the next one begins there.
func (b *broom) goRound(ctx context.Context, w *round) error {
	for w.after < w.to {
		began := time.Now()
		rows, err := b.read.OldMessages(ctx, db.OldMessagesParams{After: int64(w.after), Newest: int64(w.to), N: sweepPage})
		if err != nil {
			return failed("read old messages", err)
		}
		end := w.to
		if len(rows) == sweepPage {
			end = ledger.MessageID(rows[sweepPage-1].ID)
		}
		rows = slices.DeleteFunc(rows, func(r db.OldMessagesRow) bool { _, ours := w.channels[r.Channel]; return !ours })
		rest(ctx, time.Since(began))
		for step := range slices.Chunk(rows, sweepStep) {
			if w.enough != nil {
				if enough, err := w.enough(); enough || err != nil {
					return errors.Join(err, b.saveSwept(ctx, w))
				}
			}
			if err := b.stepOf(ctx, w, step); err != nil {
				return err
			}
			w.after = ledger.MessageID(step[len(step)-1].ID)
		}
		w.after = end
	}
	return b.saveSwept(ctx, w)
}

// stepOf deletes some messages, but for those behind one that is not finished.
func (b *broom) stepOf(ctx context.Context, w *round, rows []db.OldMessagesRow) error {
	var gone []db.OldMessagesRow
	err := b.step(ctx, func(q *db.Queries) ([]string, error) {
		// Asked here, on the writer's goroutine: nobody else changes it now.
		ids := make([]int64, len(rows))
		for i, r := range rows {
			ids[i] = r.ID
		}
		stay, err := unfinishedOf(ctx, q, b.open, ids)
		if err != nil {
			return nil, err
		}
		ids = ids[:0]
		var conversations []int64
		newest := map[int64]int64{}
		gone = nil
		for _, r := range rows {
			if _, blocked := b.blocked[r.Channel]; blocked {
				continue
			}
			if stay[r.ID] {
				b.blocked[r.Channel] = r.ID
				continue
			}
			gone, ids, conversations = append(gone, r), append(ids, r.ID), append(conversations, r.Conversation)
			newest[r.Channel] = r.ID
		}
		if len(ids) == 0 {
			return nil, nil
		}
		files, err := erase(ctx, q, ids)
		if err != nil {
			return nil, err
		}
		slices.Sort(conversations)
		conversations = slices.Compact(conversations)
		if err := q.DeleteEmptyConversations(ctx, conversations); err != nil {
			return nil, fmt.Errorf("delete conversations: %w", err)
		}
		if err := q.KeepRecent(ctx, conversations); err != nil {
			return nil, fmt.Errorf("list conversations without messages: %w", err)
		}
		for channel, id := range newest {
			if err := q.SetGone(ctx, db.SetGoneParams{Gone: id, ID: channel}); err != nil {
				return nil, fmt.Errorf("write what is gone: %w", err)
			}
		}
		return files, nil
	})
	if err != nil {
		return err
	}
	for _, r := range gone {
		w.deleted[r.Channel]++
		w.newest = ledger.MessageID(r.ID)
	}
	return nil
}

// step runs one deleting transaction, lets go of the attachments that it returns,
// and rests.
func (b *broom) step(ctx context.Context, fn func(*db.Queries) ([]string, error)) error {
	var files []string
	var began time.Time
	err := b.change(func(q *db.Queries) (err error) {
		began = time.Now()
		files, err = fn(q)
		return err
	})
	if err != nil {
		return err
	}
	worked := time.Since(began)
	b.erased.Store(true)
	b.dropFiles(files)
	rest(ctx, worked)
	return ctx.Err()
}

// saveSwept writes down where the round's channels begin now.
func (b *broom) saveSwept(ctx context.Context, w *round) error {
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(w.channels)), sweepStep) {
		err := b.step(ctx, func(q *db.Queries) ([]string, error) {
			for _, key := range keys {
				swept := int64(w.after)
				if id, blocked := b.blocked[key]; blocked {
					swept = min(swept, id-1)
				}
				if err := q.SetSwept(ctx, db.SetSweptParams{Swept: swept, ID: key}); err != nil {
					return nil, fmt.Errorf("write how far messages are deleted: %w", err)
				}
			}
			return nil, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rest waits after work, for the sake of everybody else.
func rest(ctx context.Context, worked time.Duration) {
	sleep(ctx, min(sweepPause*worked, longestRest))
}

func sleep(ctx context.Context, d time.Duration) {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// wasDeleted reports whether a message of the channel with this id can be one
// that was deleted: then there is nothing before it.
func (s *Store) wasDeleted(ctx context.Context, channel int64, id ledger.MessageID) (bool, error) {
	gone, err := s.read.GoneOfChannel(ctx, channel)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, failed("read what is gone", err)
	}
	return id <= ledger.MessageID(gone), nil
}

// NewestGone is the newest message of all channels that was deleted for its age
// or for room; 0 = none. Who has read up to an earlier one may have missed some.
func (s *Store) NewestGone(ctx context.Context) (ledger.MessageID, error) {
	newest, err := s.read.NewestGone(ctx)
	if err != nil {
		return 0, failed("read what is gone", err)
	}
	return ledger.MessageID(newest.Gone), nil
}
