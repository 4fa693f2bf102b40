package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// CreateSession adds a session, removes those that ended (not used since idle)
// and returns the ids of those that had to make room.
func (s *Store) CreateSession(ctx context.Context, n ledger.Session, idle time.Time, by ledger.Change) (made ledger.Session, ended []int64, err error) {
	err = s.change(func(q *db.Queries) error {
		now := s.now().UnixMilli()
		if err := q.DeleteOldSessions(ctx, db.DeleteOldSessionsParams{Now: now, IdleSince: idle.UnixMilli()}); err != nil {
			return fmt.Errorf("delete old sessions: %w", err)
		}
		row, err := q.InsertSession(ctx, db.InsertSessionParams{
			Hash: n.Hash, CreatedAt: now, ExpiresAt: n.ExpiresAt.UnixMilli(), LastUsedAt: now, Remote: n.Remote, UserAgent: n.UserAgent,
		})
		if err != nil {
			return fmt.Errorf("insert session: %w", err)
		}
		made = session(row)
		all, err := q.Sessions(ctx, ledger.MaxSessions)
		if err != nil {
			return failed("read sessions", err)
		}
		if ended, err = q.DeleteSessionsBelow(ctx, all[len(all)-1].ID); err != nil {
			return fmt.Errorf("delete old sessions: %w", err)
		}
		by.Target = ledger.SessionRef(made.ID)
		by.Via = "session:" + by.Target
		return s.audit(ctx, q, by)
	})
	return made, ended, err
}

// SessionByHash finds a session, live or not.
func (s *Store) SessionByHash(ctx context.Context, hash []byte) (ledger.Session, error) {
	row, err := s.read.SessionByHash(ctx, hash)
	return foundSession(row, err)
}

// SessionByID reads a session, live or not.
func (s *Store) SessionByID(ctx context.Context, id int64) (ledger.Session, error) {
	row, err := s.read.SessionByID(ctx, id)
	return foundSession(row, err)
}

func foundSession(row db.Session, err error) (ledger.Session, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Session{}, ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Session{}, failed("read session", err)
	}
	return session(row), nil
}

// Sessions reads all sessions, newest first, also those that are over by time.
func (s *Store) Sessions(ctx context.Context) ([]ledger.Session, error) {
	rows, err := s.read.Sessions(ctx, ledger.MaxSessions)
	if err != nil {
		return nil, failed("read sessions", err)
	}
	out := make([]ledger.Session, len(rows))
	for i, r := range rows {
		out[i] = session(r)
	}
	return out, nil
}

// DeleteSession ends a session.
func (s *Store) DeleteSession(ctx context.Context, id int64, by ledger.Change) error {
	return s.change(func(q *db.Queries) error {
		n, err := q.DeleteSession(ctx, id)
		if err != nil {
			return fmt.Errorf("delete session: %w", err)
		}
		if n == 0 {
			return ledger.ErrNotFound
		}
		return s.audit(ctx, q, by)
	})
}

// DeleteSessions ends all sessions.
func (s *Store) DeleteSessions(ctx context.Context, by ledger.Change) (ended int, err error) {
	err = s.change(func(q *db.Queries) error {
		ids, err := q.DeleteOtherSessions(ctx, 0)
		if err != nil {
			return fmt.Errorf("delete sessions: %w", err)
		}
		ended = len(ids)
		return s.audit(ctx, q, by)
	})
	return ended, err
}

func session(r db.Session) ledger.Session {
	return ledger.Session{
		ID: r.ID, Hash: r.Hash,
		Lifetime: ledger.Lifetime{
			CreatedAt: time.UnixMilli(r.CreatedAt).UTC(), ExpiresAt: time.UnixMilli(r.ExpiresAt).UTC(), LastUsedAt: time.UnixMilli(r.LastUsedAt).UTC(),
		},
		Remote: r.Remote, UserAgent: r.UserAgent,
	}
}
