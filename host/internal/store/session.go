package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/store/db"
)

// MaxSessions is how many places an operator may be logged in at: another one
// ends the oldest.
const MaxSessions = 50

// Session is a place where the operator is logged in. Of its token Hint,
// RevokedAt and Owner are empty: a session that ended is deleted.
type Session struct {
	Token
	Remote    string // address of who logged in
	UserAgent string
}

// CreateSession adds a session, removes those that ended (not used since idle)
// and returns the ids of those that had to make room.
func (s *Store) CreateSession(ctx context.Context, n Session, idle time.Time, by Change) (made Session, ended []int64, err error) {
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
		all, err := q.Sessions(ctx, MaxSessions)
		if err != nil {
			return fmt.Errorf("read sessions: %w", err)
		}
		if ended, err = q.DeleteSessionsBelow(ctx, all[len(all)-1].ID); err != nil {
			return fmt.Errorf("delete old sessions: %w", err)
		}
		by.Target = SessionRef(made.ID)
		by.Via = "session:" + by.Target
		return s.audit(ctx, q, by)
	})
	return made, ended, err
}

// SessionRef is how others call a session.
func SessionRef(id int64) string { return strconv.FormatInt(id, 10) }

// SessionByHash finds a session, live or not.
func (s *Store) SessionByHash(ctx context.Context, hash []byte) (Session, error) {
	row, err := s.read.SessionByHash(ctx, hash)
	return foundSession(row, err)
}

// SessionByID reads a session, live or not.
func (s *Store) SessionByID(ctx context.Context, id int64) (Session, error) {
	row, err := s.read.SessionByID(ctx, id)
	return foundSession(row, err)
}

func foundSession(row db.Session, err error) (Session, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return Session{}, ErrNotFound
	}
	if err != nil {
		return Session{}, fmt.Errorf("read session: %w", err)
	}
	return session(row), nil
}

// Sessions reads all sessions, newest first, also those that are over by time.
func (s *Store) Sessions(ctx context.Context) ([]Session, error) {
	rows, err := s.read.Sessions(ctx, MaxSessions)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	out := make([]Session, len(rows))
	for i, r := range rows {
		out[i] = session(r)
	}
	return out, nil
}

// DeleteSession ends a session.
func (s *Store) DeleteSession(ctx context.Context, id int64, by Change) error {
	return s.change(func(q *db.Queries) error {
		n, err := q.DeleteSession(ctx, id)
		if err != nil {
			return fmt.Errorf("delete session: %w", err)
		}
		if n == 0 {
			return ErrNotFound
		}
		return s.audit(ctx, q, by)
	})
}

// DeleteSessions ends all sessions.
func (s *Store) DeleteSessions(ctx context.Context, by Change) (ended int, err error) {
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

func session(r db.Session) Session {
	return Session{
		Token: Token{
			ID: r.ID, Hash: r.Hash, CreatedAt: time.UnixMilli(r.CreatedAt).UTC(), ExpiresAt: time.UnixMilli(r.ExpiresAt).UTC(),
			LastUsedAt: time.UnixMilli(r.LastUsedAt).UTC(),
		},
		Remote: r.Remote, UserAgent: r.UserAgent,
	}
}
