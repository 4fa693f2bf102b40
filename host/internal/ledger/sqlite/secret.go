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

// errNoKey is a defect: a host always has a key.
var errNoKey = errors.New("no master key is set up")

// PutSecret adds a secret, or changes its value. Errors are ErrTooMany and those
// of storage.
func (s *Store) PutSecret(ctx context.Context, name, value string, by ledger.Change) (made ledger.Secret, created bool, err error) {
	if s.vault.key == nil {
		return made, false, errNoKey
	}
	sealed, err := s.vault.key.Seal([]byte(value), secretPlace(name))
	if err != nil {
		return made, false, err
	}
	err = s.change(func(q *db.Queries) error {
		_, err := q.SecretByName(ctx, name)
		if created = errors.Is(err, sql.ErrNoRows); created {
			var n int64
			if n, err = q.CountSecrets(ctx); err == nil && n >= ledger.MaxSecrets {
				return ledger.ErrTooMany
			}
		}
		if err != nil {
			return failed("read secrets", err)
		}
		row, err := q.PutSecret(ctx, db.PutSecretParams{Name: name, Sealed: sealed, At: s.now().UnixMilli()})
		if err != nil {
			return fmt.Errorf("write secret: %w", err)
		}
		made = secret(row)
		return s.audit(ctx, q, by)
	})
	return made, created, err
}

// SecretValue opens a secret. Errors are ErrNotFound, those of the seal and those
// of storage.
func (s *Store) SecretValue(ctx context.Context, name string) (string, error) {
	row, err := s.read.SecretByName(ctx, name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", ledger.ErrNotFound
	case err != nil:
		return "", failed("read secret", err)
	case s.vault.key == nil:
		return "", errNoKey
	}
	value, err := s.vault.key.Open(row.Sealed, secretPlace(name))
	return string(value), err
}

// Secrets reads up to n secrets, oldest first, from behind id after.
func (s *Store) Secrets(ctx context.Context, after int64, n int) ([]ledger.Secret, error) {
	rows, err := s.read.Secrets(ctx, db.SecretsParams{After: after, N: int64(n)})
	if err != nil {
		return nil, failed("read secrets", err)
	}
	out := make([]ledger.Secret, len(rows))
	for i, r := range rows {
		out[i] = secret(r)
	}
	return out, nil
}

// DeleteSecret removes a secret. Errors are ErrNotFound and those of storage.
func (s *Store) DeleteSecret(ctx context.Context, name string, by ledger.Change) error {
	return s.change(func(q *db.Queries) error {
		n, err := q.DeleteSecret(ctx, name)
		if err != nil {
			return fmt.Errorf("delete secret: %w", err)
		}
		if n == 0 {
			return ledger.ErrNotFound
		}
		return s.audit(ctx, q, by)
	})
}

func secret(r db.Secret) ledger.Secret {
	return ledger.Secret{ID: r.ID, Name: r.Name, CreatedAt: time.UnixMilli(r.CreatedAt).UTC(), UpdatedAt: time.UnixMilli(r.UpdatedAt).UTC()}
}
