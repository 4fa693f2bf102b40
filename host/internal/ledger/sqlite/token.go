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

func (s *Store) insertToken(ctx context.Context, q *db.Queries, channel int64, t ledger.NewToken) (ledger.Token, error) {
	row, err := q.InsertToken(ctx, db.InsertTokenParams{
		Channel: channel, Hash: t.Hash, Hint: t.Hint, CreatedAt: s.now().UnixMilli(), ExpiresAt: nullTime(t.ExpiresAt),
	})
	if breaks(err, "token.hash") {
		return ledger.Token{}, ledger.ErrTokenTaken
	}
	if err != nil {
		return ledger.Token{}, fmt.Errorf("insert token: %w", err)
	}
	return token(row), nil
}

// RotateToken adds a token to the channel; its other live tokens end at until.
func (s *Store) RotateToken(ctx context.Context, channel int64, t ledger.NewToken, until time.Time, by ledger.Change) (ledger.Token, error) {
	var made ledger.Token
	err := s.change(func(q *db.Queries) (err error) {
		if made, err = s.insertToken(ctx, q, channel, t); err != nil {
			return err
		}
		err = q.ExpireOtherTokens(ctx, db.ExpireOtherTokensParams{At: nullTime(until), Channel: channel, Keep: made.ID})
		if err != nil {
			return fmt.Errorf("end older tokens: %w", err)
		}
		return s.audit(ctx, q, by)
	})
	return made, err
}

// RevokeToken ends a token at once; a second time changes nothing.
func (s *Store) RevokeToken(ctx context.Context, channel, id int64, by ledger.Change) error {
	return s.change(func(q *db.Queries) error {
		if _, err := q.TokenOfChannel(ctx, db.TokenOfChannelParams{ID: id, Channel: channel}); errors.Is(err, sql.ErrNoRows) {
			return ledger.ErrNotFound
		} else if err != nil {
			return failed("read token", err)
		}
		if err := q.RevokeToken(ctx, db.RevokeTokenParams{RevokedAt: nullTime(s.now()), ID: id}); err != nil {
			return fmt.Errorf("revoke token: %w", err)
		}
		return s.audit(ctx, q, by)
	})
}

// TokenByHash finds a token, live or not.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (ledger.Token, error) {
	row, err := s.read.TokenByHash(ctx, hash)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Token{}, ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Token{}, failed("read token", err)
	}
	return token(row), nil
}

// Tokens reads up to n tokens of a channel, oldest first, from behind id after.
func (s *Store) Tokens(ctx context.Context, channel, after int64, n int) ([]ledger.Token, error) {
	rows, err := s.read.TokensOfChannel(ctx, db.TokensOfChannelParams{Channel: channel, After: after, N: int64(n)})
	if err != nil {
		return nil, failed("read tokens", err)
	}
	out := make([]ledger.Token, len(rows))
	for i, r := range rows {
		out[i] = token(r)
	}
	return out, nil
}

// Touch notes when tokens of channels, keys of agents, keys of the API and
// sessions were last used.
func (s *Store) Touch(ctx context.Context, tokens, keys, apiKeys, sessions ledger.Uses) error {
	return s.change(func(q *db.Queries) error {
		for id, at := range tokens {
			if err := q.TouchToken(ctx, db.TouchTokenParams{LastUsedAt: nullTime(at), ID: id}); err != nil {
				return fmt.Errorf("note token use: %w", err)
			}
		}
		for id, at := range keys {
			if err := q.TouchAgentKey(ctx, db.TouchAgentKeyParams{LastUsedAt: nullTime(at), ID: id}); err != nil {
				return fmt.Errorf("note key use: %w", err)
			}
		}
		for id, at := range apiKeys {
			if err := q.TouchKey(ctx, db.TouchKeyParams{LastUsedAt: nullTime(at), ID: id}); err != nil {
				return fmt.Errorf("note key use: %w", err)
			}
		}
		for id, at := range sessions {
			if err := q.TouchSession(ctx, db.TouchSessionParams{At: at.UnixMilli(), ID: id}); err != nil {
				return fmt.Errorf("note session use: %w", err)
			}
		}
		return nil
	})
}

func token(r db.Token) ledger.Token {
	return ledger.Token{
		ID: r.ID, Owner: r.Channel, Hash: r.Hash, Hint: r.Hint, CreatedAt: time.UnixMilli(r.CreatedAt).UTC(),
		ExpiresAt: fromNull(r.ExpiresAt), RevokedAt: fromNull(r.RevokedAt), LastUsedAt: fromNull(r.LastUsedAt),
	}
}

func nullTime(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

func fromNull(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMilli(n.Int64).UTC()
}
