package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// CreateKey adds a key as k says: its name, scopes and channels. Errors are
// ErrNameTaken, by a key that is not revoked, ErrTokenTaken and those of storage.
func (s *Store) CreateKey(ctx context.Context, k ledger.Key, n ledger.NewToken, by ledger.Change) (ledger.Key, error) {
	var made ledger.Key
	err := s.change(func(q *db.Queries) error {
		row, err := q.InsertKey(ctx, db.InsertKeyParams{
			Name: k.Name, Hash: n.Hash, Hint: n.Hint, Scopes: list(k.Scopes), Channels: list(k.Channels), CreatedAt: s.now().UnixMilli(), ExpiresAt: nullTime(n.ExpiresAt),
		})
		switch {
		case breaks(err, "api_key.name"):
			return ledger.ErrNameTaken
		case breaks(err, "api_key.hash"):
			return ledger.ErrTokenTaken
		case err != nil:
			return fmt.Errorf("insert key: %w", err)
		}
		if made, err = key(row); err != nil {
			return err
		}
		return s.audit(ctx, q, by)
	})
	return made, err
}

// RevokeKey ends a key at once, by its id or, if it is live, its name; a second
// time changes nothing.
func (s *Store) RevokeKey(ctx context.Context, ref string, by ledger.Change) (ledger.Key, error) {
	var found ledger.Key
	err := s.change(func(q *db.Queries) error {
		var err error
		if found, err = keyByRef(ctx, q, ref); err != nil || !found.RevokedAt.IsZero() {
			return err
		}
		if err := q.RevokeKey(ctx, db.RevokeKeyParams{RevokedAt: nullTime(s.now()), ID: found.ID}); err != nil {
			return fmt.Errorf("revoke key: %w", err)
		}
		by.Target = found.Name
		return s.audit(ctx, q, by)
	})
	return found, err
}

// Key reads a key by its id or, if it is live, its name.
func (s *Store) Key(ctx context.Context, ref string) (ledger.Key, error) {
	return keyByRef(ctx, s.read, ref)
}

func keyByRef(ctx context.Context, q *db.Queries, ref string) (ledger.Key, error) {
	var row db.ApiKey
	id, err := strconv.ParseInt(ref, 10, 64)
	if err == nil {
		row, err = q.KeyByID(ctx, id)
	} else {
		row, err = q.LiveKeyByName(ctx, ref)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Key{}, ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Key{}, failed("read key", err)
	}
	return key(row)
}

// KeyByHash finds a key, live or not.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (ledger.Key, error) {
	row, err := s.read.KeyByHash(ctx, hash)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Key{}, ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Key{}, failed("read key", err)
	}
	return key(row)
}

// Keys reads up to n keys, oldest first, from behind id after.
func (s *Store) Keys(ctx context.Context, after int64, n int) ([]ledger.Key, error) {
	rows, err := s.read.Keys(ctx, db.KeysParams{After: after, N: int64(n)})
	if err != nil {
		return nil, failed("read keys", err)
	}
	out := make([]ledger.Key, len(rows))
	for i, r := range rows {
		if out[i], err = key(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func key(r db.ApiKey) (ledger.Key, error) {
	k := ledger.Key{Name: r.Name, Token: token(db.Token{
		ID: r.ID, Hash: r.Hash, Hint: r.Hint, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, RevokedAt: r.RevokedAt, LastUsedAt: r.LastUsedAt,
	})}
	if err := json.Unmarshal([]byte(r.Scopes), &k.Scopes); err != nil {
		return ledger.Key{}, fmt.Errorf("key %s: scopes: %w", r.Name, err)
	}
	if err := json.Unmarshal([]byte(r.Channels), &k.Channels); err != nil {
		return ledger.Key{}, fmt.Errorf("key %s: channels: %w", r.Name, err)
	}
	return k, nil
}
