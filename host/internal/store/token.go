package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/store/db"
)

// Token is the credential of a channel, or of an agent, without its secret. Zero
// times are "never".
type Token struct {
	ID         int64
	Owner      int64  // key of the channel or the agent
	Hash       []byte // SHA-256
	Hint       string // the last four characters
	CreatedAt  time.Time
	ExpiresAt  time.Time
	RevokedAt  time.Time
	LastUsedAt time.Time
}

// Live reports whether the token opens what it is for at the given time.
func (t Token) Live(at time.Time) bool {
	return t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || at.Before(t.ExpiresAt))
}

// NewToken is a token about to be stored.
type NewToken struct {
	Hash      []byte
	Hint      string
	ExpiresAt time.Time // zero = never
}

func (s *Store) insertToken(ctx context.Context, q *db.Queries, channel int64, t NewToken) (Token, error) {
	row, err := q.InsertToken(ctx, db.InsertTokenParams{
		Channel: channel, Hash: t.Hash, Hint: t.Hint, CreatedAt: s.now().UnixMilli(), ExpiresAt: nullTime(t.ExpiresAt),
	})
	if breaks(err, "token.hash") {
		return Token{}, ErrTokenTaken
	}
	if err != nil {
		return Token{}, fmt.Errorf("insert token: %w", err)
	}
	return token(row), nil
}

// RotateToken adds a token to the channel; its other live tokens end at until.
func (s *Store) RotateToken(ctx context.Context, channel int64, t NewToken, until time.Time, by Change) (Token, error) {
	var made Token
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
func (s *Store) RevokeToken(ctx context.Context, channel, id int64, by Change) error {
	return s.change(func(q *db.Queries) error {
		if _, err := q.TokenOfChannel(ctx, db.TokenOfChannelParams{ID: id, Channel: channel}); errors.Is(err, sql.ErrNoRows) {
			return ErrNotFound
		} else if err != nil {
			return fmt.Errorf("read token: %w", err)
		}
		if err := q.RevokeToken(ctx, db.RevokeTokenParams{RevokedAt: nullTime(s.now()), ID: id}); err != nil {
			return fmt.Errorf("revoke token: %w", err)
		}
		return s.audit(ctx, q, by)
	})
}

// TokenByHash finds a token, live or not.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (Token, error) {
	row, err := s.read.TokenByHash(ctx, hash)
	if errors.Is(err, sql.ErrNoRows) {
		return Token{}, ErrNotFound
	}
	if err != nil {
		return Token{}, fmt.Errorf("read token: %w", err)
	}
	return token(row), nil
}

// Tokens reads up to n tokens of a channel, oldest first, from behind id after.
func (s *Store) Tokens(ctx context.Context, channel, after int64, n int) ([]Token, error) {
	rows, err := s.read.TokensOfChannel(ctx, db.TokensOfChannelParams{Channel: channel, After: after, N: int64(n)})
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	out := make([]Token, len(rows))
	for i, r := range rows {
		out[i] = token(r)
	}
	return out, nil
}

// Uses are when credentials were last used, by id.
type Uses = map[int64]time.Time

// Touch notes when tokens of channels, keys of agents, keys of the API and
// sessions were last used.
func (s *Store) Touch(ctx context.Context, tokens, keys, apiKeys, sessions Uses) error {
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

func token(r db.Token) Token {
	return Token{
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
