package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/store/db"
)

// sweepRows is how many messages of a deleted channel go in one transaction.
const sweepRows = 500

// keepHouse advances the mark and sweeps deleted channels, until ctx ends.
func (s *Store) keepHouse(ctx context.Context) {
	tick := time.NewTicker(housekeeping)
	defer tick.Stop()
	var saved MessageID
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if mark := s.open.mark(); mark != saved {
			if err := s.saveMark(); err != nil {
				s.log.Warn("mark not saved", "error", err)
			} else {
				saved = mark
			}
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = s.sweep(ctx); err != nil {
				s.log.Warn("deleted channel not swept", "error", err)
				break
			}
		}
	}
}

func (s *Store) saveMark() error {
	// Computed on the writer's goroutine, where no commit is half done.
	return s.change(func(q *db.Queries) error {
		return q.SetMark(context.Background(), int64(s.open.mark()))
	})
}

// sweep removes some messages of a deleted channel, newest first along each
// conversation, and reports whether there may be more.
func (s *Store) sweep(ctx context.Context) (more bool, err error) {
	channel, err := s.read.NextRemoved(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	conversations, err := s.read.SweepConversations(ctx, channel)
	if err != nil {
		return false, err
	}
	if len(conversations) == 0 {
		return true, s.change(func(q *db.Queries) error {
			return q.DeleteRemoved(ctx, channel)
		})
	}
	for _, c := range conversations {
		if err := s.sweepConversation(ctx, c.ID, c.Head); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (s *Store) sweepConversation(ctx context.Context, id, head int64) error {
	for {
		rows, err := s.read.SweepChain(ctx, db.SweepChainParams{Newest: head, N: sweepRows})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return s.change(func(q *db.Queries) error { return q.DeleteConversation(ctx, id) })
		}
		ids := make([]int64, len(rows))
		for i, r := range rows {
			ids[i] = r.ID
		}
		head = rows[len(rows)-1].Prev
		err = s.change(func(q *db.Queries) error {
			if err := q.DeleteMessages(ctx, ids); err != nil {
				return err
			}
			if err := q.DeleteLives(ctx, ids); err != nil {
				return err
			}
			return q.SetConversationHead(ctx, db.SetConversationHeadParams{Head: head, ID: id})
		})
		if err != nil {
			return err
		}
	}
}
