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

func (s *Store) insertAgentKey(ctx context.Context, q *db.Queries, agent int64, t ledger.NewToken) (ledger.Token, error) {
	row, err := q.InsertAgentKey(ctx, db.InsertAgentKeyParams{
		Agent: agent, Hash: t.Hash, Hint: t.Hint, CreatedAt: s.now().UnixMilli(), ExpiresAt: nullTime(t.ExpiresAt),
	})
	if breaks(err, "agent_key.hash") {
		return ledger.Token{}, ledger.ErrTokenTaken
	}
	if err != nil {
		return ledger.Token{}, fmt.Errorf("insert agent key: %w", err)
	}
	return agentKey(row), nil
}

// RotateAgentKey adds a key to the agent; its other live keys end at until.
func (s *Store) RotateAgentKey(ctx context.Context, agent int64, t ledger.NewToken, until time.Time, by ledger.Change) (ledger.Token, error) {
	var made ledger.Token
	err := s.change(func(q *db.Queries) (err error) {
		if made, err = s.insertAgentKey(ctx, q, agent, t); err != nil {
			return err
		}
		err = q.ExpireOtherAgentKeys(ctx, db.ExpireOtherAgentKeysParams{At: nullTime(until), Agent: agent, Keep: made.ID})
		if err != nil {
			return fmt.Errorf("end older keys: %w", err)
		}
		return s.audit(ctx, q, by)
	})
	return made, err
}

// RevokeAgentKey ends a key at once; a second time changes nothing.
func (s *Store) RevokeAgentKey(ctx context.Context, agent, id int64, by ledger.Change) error {
	return s.change(func(q *db.Queries) error {
		n, err := q.RevokeAgentKey(ctx, db.RevokeAgentKeyParams{At: s.now().UnixMilli(), ID: id, Agent: agent})
		if err != nil {
			return fmt.Errorf("revoke agent key: %w", err)
		}
		if n == 0 {
			return ledger.ErrNotFound
		}
		return s.audit(ctx, q, by)
	})
}

// AgentKeyByHash finds an agent's key, live or not.
func (s *Store) AgentKeyByHash(ctx context.Context, hash []byte) (ledger.Token, error) {
	row, err := s.read.AgentKeyByHash(ctx, hash)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Token{}, ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Token{}, failed("read agent key", err)
	}
	return agentKey(row), nil
}

// AgentKeys reads up to n keys of an agent, oldest first, from behind id after.
func (s *Store) AgentKeys(ctx context.Context, agent, after int64, n int) ([]ledger.Token, error) {
	rows, err := s.read.KeysOfAgent(ctx, db.KeysOfAgentParams{Agent: agent, After: after, N: int64(n)})
	if err != nil {
		return nil, failed("read agent keys", err)
	}
	out := make([]ledger.Token, len(rows))
	for i, r := range rows {
		out[i] = agentKey(r)
	}
	return out, nil
}

func agentKey(r db.AgentKey) ledger.Token {
	return token(db.Token{
		ID: r.ID, Channel: r.Agent, Hash: r.Hash, Hint: r.Hint, CreatedAt: r.CreatedAt,
		ExpiresAt: r.ExpiresAt, RevokedAt: r.RevokedAt, LastUsedAt: r.LastUsedAt,
	})
}
