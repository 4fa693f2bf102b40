package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// CreateAgent adds an agent, with a first key unless its kind has none. Errors
// are ErrNameTaken, ErrTokenTaken and those of storage.
func (s *Store) CreateAgent(ctx context.Context, a ledger.Agent, key *ledger.NewCredential, by ledger.Change) (ledger.Agent, error) {
	var made ledger.Agent
	stored, err := s.vault.sealConfig(a)
	if err != nil {
		return made, err
	}
	err = s.change(func(q *db.Queries) error {
		row, err := q.InsertAgent(ctx, db.InsertAgentParams{
			Uid: a.ID, Name: a.Name, Kind: a.Kind, Config: stored, Enabled: flag(a.Enabled), CreatedAt: s.now().UnixMilli(),
		})
		if breaks(err, "agent.name") {
			return ledger.ErrNameTaken
		}
		if err != nil {
			return fmt.Errorf("insert agent: %w", err)
		}
		made = s.agent(row)
		if key != nil {
			if _, err := s.insertCredential(ctx, q, ledger.OfAgent(row.ID), *key); err != nil {
				return err
			}
		}
		by.Target, by.Subject, by.Version = made.Name, made.ID, made.Version
		return s.audit(ctx, q, by)
	})
	return made, err
}

// UpdateAgent writes the agent's name, config and whether it is enabled, unless the
// row is not a.Version any more; see Edit. Errors are ErrNotFound, ErrConflict,
// ErrNameTaken, *InUseError of an agent that would lose the name that channels know,
// and those of storage.
func (s *Store) UpdateAgent(ctx context.Context, a ledger.Agent, by ledger.Change) (ledger.Agent, error) {
	var made ledger.Agent
	err := s.change(func(q *db.Queries) error {
		before, err := q.AgentByID(ctx, a.Key)
		if err == nil && before.Version != a.Version {
			return ledger.ErrConflict
		}
		if err == nil && before.Name != a.Name {
			if err := unused(ctx, q, before.Name); err != nil {
				return err
			}
		}
		var stored string
		if err == nil {
			stored, err = s.vault.sealConfig(ledger.Agent{ID: before.Uid, Kind: before.Kind, Config: a.Config})
		}
		var row db.Agent
		if err == nil {
			row, err = q.UpdateAgent(ctx, db.UpdateAgentParams{ID: a.Key, Version: a.Version, Name: a.Name, Config: stored, Enabled: flag(a.Enabled)})
		}
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return ledger.ErrNotFound
		case breaks(err, "agent.name"):
			return ledger.ErrNameTaken
		case err != nil:
			return fmt.Errorf("update agent: %w", err)
		}
		made = s.agent(row)
		by.Target, by.Subject, by.Version = made.Name, made.ID, made.Version
		return s.audit(ctx, q, by)
	})
	return made, err
}

// DeleteAgent removes an agent with its keys, unless the row is not a.Version any
// more. Errors are ErrNotFound, ErrConflict, *InUseError and those of storage.
func (s *Store) DeleteAgent(ctx context.Context, a ledger.Agent, by ledger.Change) error {
	return s.change(func(q *db.Queries) error {
		if err := unused(ctx, q, a.Name); err != nil {
			return err
		}
		n, err := q.DeleteAgent(ctx, db.DeleteAgentParams{ID: a.Key, Version: a.Version})
		if err != nil {
			return fmt.Errorf("delete agent: %w", err)
		}
		if n == 0 {
			return outdated(q.AgentByID(ctx, a.Key))
		}
		by.Target = a.Name
		return s.audit(ctx, q, by)
	})
}

// unused makes an error of the channels that name the agent.
func unused(ctx context.Context, q *db.Queries, name string) error {
	channels, err := q.ChannelsOfAgent(ctx, name)
	if err != nil {
		return fmt.Errorf("look for the agent's channels: %w", err)
	}
	if len(channels) > 0 {
		return &ledger.InUseError{Channels: channels}
	}
	return nil
}

// Agent reads an agent by its id or name.
func (s *Store) Agent(ctx context.Context, ref string) (ledger.Agent, error) {
	row, err := s.read.AgentByRef(ctx, ref)
	return s.foundAgent(row, err)
}

// AgentByKey reads an agent by the database's key.
func (s *Store) AgentByKey(ctx context.Context, key int64) (ledger.Agent, error) {
	row, err := s.read.AgentByID(ctx, key)
	return s.foundAgent(row, err)
}

func (s *Store) foundAgent(row db.Agent, err error) (ledger.Agent, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Agent{}, ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Agent{}, failed("read agent", err)
	}
	return s.agent(row), nil
}

// Agents reads up to n agents, oldest first, from behind the one with key after.
func (s *Store) Agents(ctx context.Context, after int64, n int) ([]ledger.Agent, error) {
	rows, err := s.read.Agents(ctx, db.AgentsParams{After: after, N: int64(n)})
	if err != nil {
		return nil, failed("read agents", err)
	}
	out := make([]ledger.Agent, len(rows))
	for i, r := range rows {
		out[i] = s.agent(r)
	}
	return out, nil
}

func (s *Store) agent(r db.Agent) ledger.Agent {
	clear, fault := s.vault.openConfig(r.Uid, r.Config)
	return ledger.Agent{
		Key: r.ID, ID: r.Uid, Name: r.Name, Kind: r.Kind, Config: json.RawMessage(clear), Fault: fault, Enabled: r.Enabled != 0,
		Version: r.Version, CreatedAt: time.UnixMilli(r.CreatedAt).UTC(),
	}
}

// config is what is stored of one that may be absent.
func config(c json.RawMessage) string {
	if c == nil {
		return "{}"
	}
	return string(c)
}

// ChannelsByAgent counts the channels by the agent that they are routed to.
func (s *Store) ChannelsByAgent(ctx context.Context) (map[string]int, error) {
	rows, err := s.readDB.QueryContext(ctx, "SELECT agent, count(*) FROM channel GROUP BY agent")
	if err != nil {
		return nil, failed("count channels", err)
	}
	defer func() { _ = rows.Close() }()
	out := map[string]int{}
	for rows.Next() {
		var agent string
		var n int
		if err := rows.Scan(&agent, &n); err != nil {
			return nil, failed("count channels", err)
		}
		out[agent] = n
	}
	if err := rows.Err(); err != nil {
		return nil, failed("count channels", err)
	}
	return out, nil
}
