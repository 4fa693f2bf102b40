package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// keepHouse advances the mark, and looks whether the database is where it was, until
// ctx ends.
func (s *Store) keepHouse(ctx context.Context) {
	tick, look := time.NewTicker(housekeeping), time.NewTicker(lookEvery)
	defer tick.Stop()
	defer look.Stop()
	var saved ledger.MessageID
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if s.w.lost() != nil {
				_ = s.changeBeside(func(*db.Queries) error { return s.w.watch() }) // Serve tells
				return
			}
			continue
		case <-tick.C:
		}
		if mark := s.open.mark(); mark != saved {
			if err := s.saveMark(); err != nil {
				s.log.Warn("mark not saved", "error", err)
			} else {
				saved = mark
			}
		}
	}
}

func (s *Store) saveMark() error {
	// Computed on the writer's goroutine, where no commit is half done.
	return s.changeBeside(func(q *db.Queries) error {
		return q.SetMark(context.Background(), int64(s.open.mark()))
	})
}

// sweepRemoved removes the messages of deleted channels, newest first along each
// conversation.
func (b *broom) sweepRemoved(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ctx.Err() == nil {
		channel, err := b.read.NextRemoved(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		deleted := 0
		for {
			conversations, err := b.read.SweepConversations(ctx, channel)
			if err != nil {
				return err
			}
			if len(conversations) == 0 {
				break
			}
			for _, c := range conversations {
				n, err := b.sweepConversation(ctx, c.ID, c.Head)
				deleted += n
				if err != nil {
					return err
				}
			}
		}
		err = b.change(func(q *db.Queries) error {
			if err := q.SetPurgedAt(ctx, 0); err != nil {
				return err
			}
			return q.DeleteRemoved(ctx, channel)
		})
		if err != nil {
			return err
		}
		b.erased.Store(true)
		b.log.Info("messages deleted", "why", "their channel was deleted", "count", deleted)
	}
	return ctx.Err()
}

func (b *broom) sweepConversation(ctx context.Context, id, head int64) (deleted int, err error) {
	for {
		rows, err := b.read.SweepChain(ctx, db.SweepChainParams{Newest: head, N: sweepStep})
		if err != nil {
			return deleted, err
		}
		if len(rows) == 0 {
			return deleted, b.change(func(q *db.Queries) error { return q.DeleteConversation(ctx, id) })
		}
		ids := make([]int64, len(rows))
		for i, r := range rows {
			ids[i] = r.ID
		}
		head = rows[len(rows)-1].Prev
		err = b.step(ctx, func(q *db.Queries) ([]string, error) {
			files, err := erase(ctx, q, ids)
			if err != nil {
				return nil, err
			}
			if err := q.DeleteRecent(ctx, ids); err != nil {
				return nil, err
			}
			return files, q.SetConversationHead(ctx, db.SetConversationHeadParams{Head: head, ID: id})
		})
		if err != nil {
			return deleted, err
		}
		deleted += len(ids)
	}
}
