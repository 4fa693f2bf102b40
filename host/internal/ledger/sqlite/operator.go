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

// Operator reads who operates the host; ErrNotFound = nobody was set up yet.
func (s *Store) Operator(ctx context.Context) (ledger.Operator, error) {
	r, err := s.read.Operator(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Operator{}, ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Operator{}, failed("read operator", err)
	}
	return ledger.Operator{Name: r.Name, Password: r.Password, CreatedAt: time.UnixMilli(r.CreatedAt).UTC(), ChangedAt: time.UnixMilli(r.ChangedAt).UTC()}, nil
}

// SetOperator sets name and password, whoever was there before, and ends all
// sessions.
func (s *Store) SetOperator(ctx context.Context, name, password string, by ledger.Change) error {
	return s.change(func(q *db.Queries) error {
		if err := q.SetOperator(ctx, db.SetOperatorParams{Name: name, Password: password, At: s.now().UnixMilli()}); err != nil {
			return fmt.Errorf("set operator: %w", err)
		}
		if _, err := q.DeleteOtherSessions(ctx, 0); err != nil {
			return fmt.Errorf("end sessions: %w", err)
		}
		return s.audit(ctx, q, by)
	})
}

// RenameOperator changes the name; ErrNotFound = nobody was set up yet.
func (s *Store) RenameOperator(ctx context.Context, name string, by ledger.Change) error {
	return s.change(func(q *db.Queries) error {
		n, err := q.RenameOperator(ctx, name)
		if err != nil {
			return fmt.Errorf("rename operator: %w", err)
		}
		if n == 0 {
			return ledger.ErrNotFound
		}
		return s.audit(ctx, q, by)
	})
}

// SetPassword puts a password in the place of the one that was checked, and ends
// all sessions but keep (0 = all). ErrNotFound = it was changed meanwhile.
func (s *Store) SetPassword(ctx context.Context, was, password string, keep int64, by ledger.Change) error {
	return s.change(func(q *db.Queries) error {
		n, err := q.SetPassword(ctx, db.SetPasswordParams{Password: password, At: s.now().UnixMilli(), Was: was})
		if err != nil {
			return fmt.Errorf("set password: %w", err)
		}
		if n == 0 {
			return ledger.ErrNotFound
		}
		if _, err := q.DeleteOtherSessions(ctx, keep); err != nil {
			return fmt.Errorf("end sessions: %w", err)
		}
		return s.audit(ctx, q, by)
	})
}
