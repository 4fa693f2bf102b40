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

// CreateChannel adds a channel, with a first token unless its kind has none.
// Errors are ErrNameTaken, ErrTokenTaken and those of storage.
func (s *Store) CreateChannel(ctx context.Context, c ledger.Channel, token *ledger.NewCredential, by ledger.Change) (ledger.Channel, error) {
	var made ledger.Channel
	err := s.change(func(q *db.Queries) error {
		row, err := q.InsertChannel(ctx, db.InsertChannelParams{
			Uid: c.ID, Name: c.Name, Kind: c.Kind, Enabled: flag(c.Enabled), Agent: c.Agent, Agents: list(c.Agents), Queue: flag(c.Queue),
			AcceptCapabilities: list(c.Accept), AllowUsers: list(c.Users), Profile: object(c.Profile), QueueLimits: object(c.Limits),
			RetentionDays: int64(c.Retention), RateLimit: int64(c.Rate), Swept: int64(s.NewID()), // no message of the channel is older
			CreatedAt: s.now().UnixMilli(),
		})
		if breaks(err, "channel.name") {
			return ledger.ErrNameTaken
		}
		if err != nil {
			return fmt.Errorf("insert channel: %w", err)
		}
		if made, err = channel(row); err != nil {
			return err
		}
		if token != nil {
			if _, err := s.insertCredential(ctx, q, ledger.OfChannel(row.ID), *token); err != nil {
				return err
			}
		}
		by.Target, by.Subject, by.Version = made.Name, made.ID, made.Version
		return s.audit(ctx, q, by)
	})
	return made, err
}

// UpdateChannel writes the channel's policy, unless the row is not c.Version any more;
// see Edit. Errors are ErrNotFound, ErrConflict, ErrNameTaken and those of storage.
func (s *Store) UpdateChannel(ctx context.Context, c ledger.Channel, by ledger.Change) (ledger.Channel, error) {
	var made ledger.Channel
	err := s.change(func(q *db.Queries) error {
		row, err := q.UpdateChannel(ctx, db.UpdateChannelParams{
			ID: c.Key, Version: c.Version, Name: c.Name, Enabled: flag(c.Enabled), Agent: c.Agent, Agents: list(c.Agents), Queue: flag(c.Queue),
			AcceptCapabilities: list(c.Accept), AllowUsers: list(c.Users), Profile: object(c.Profile), QueueLimits: object(c.Limits), RetentionDays: int64(c.Retention), RateLimit: int64(c.Rate),
		})
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return outdated(q.ChannelByID(ctx, c.Key))
		case breaks(err, "channel.name"):
			return ledger.ErrNameTaken
		case err != nil:
			return fmt.Errorf("update channel: %w", err)
		}
		if made, err = channel(row); err != nil {
			return err
		}
		by.Target, by.Subject, by.Version = made.Name, made.ID, made.Version
		return s.audit(ctx, q, by)
	})
	select {
	case s.broom.wake <- struct{}{}:
	default: // it will look anyway
	}
	return made, err
}

// DeleteChannel removes a channel with its tokens at once, and its messages
// little by little, unless the row is not c.Version any more. Errors are ErrNotFound,
// ErrConflict and those of storage.
func (s *Store) DeleteChannel(ctx context.Context, c ledger.Channel, by ledger.Change) error {
	chain, err := s.chain(ctx, c.Key)
	if err != nil {
		return err
	}
	return s.w.submit(job{run: func(q *db.Queries) error {
		if err := q.InsertRemoved(ctx, db.InsertRemovedParams{Channel: c.Key, At: s.now().UnixMilli()}); err != nil {
			return fmt.Errorf("delete channel: %w", err)
		}
		if err := q.DeletePendingOfChannel(ctx, c.Key); err != nil {
			return fmt.Errorf("delete queue: %w", err)
		}
		if err := q.DeleteCursor(ctx, c.Key); err != nil {
			return fmt.Errorf("delete cursor: %w", err)
		}
		switch n, err := q.DeleteChannel(ctx, db.DeleteChannelParams{ID: c.Key, Version: c.Version}); {
		case err != nil:
			return fmt.Errorf("delete channel: %w", err)
		case n == 0:
			return outdated(q.ChannelByID(ctx, c.Key))
		}
		by.Target = c.Name
		return s.audit(ctx, q, by)
	}, then: func() { chain.removed = true }})
}

// Channel reads a channel by its id or name.
func (s *Store) Channel(ctx context.Context, ref string) (ledger.Channel, error) {
	return keptChannel(&s.w.lookups.channels, ref, func() (ledger.Channel, error) {
		row, err := s.read.ChannelByRef(ctx, ref)
		return found(row, err)
	})
}

// ChannelByKey reads a channel by the database's key.
func (s *Store) ChannelByKey(ctx context.Context, key int64) (ledger.Channel, error) {
	return keptChannel(&s.w.lookups.channelKeys, key, func() (ledger.Channel, error) {
		row, err := s.read.ChannelByID(ctx, key)
		return found(row, err)
	})
}

// ChannelOfKind reads the oldest channel of a kind of which the host makes one.
func (s *Store) ChannelOfKind(ctx context.Context, kind string) (ledger.Channel, error) {
	row, err := s.read.ChannelByKind(ctx, kind)
	return found(row, err)
}

func found(row db.Channel, err error) (ledger.Channel, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Channel{}, ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Channel{}, failed("read channel", err)
	}
	return channel(row)
}

// Channels reads up to n channels, oldest first, from behind the one with key
// after.
func (s *Store) Channels(ctx context.Context, after int64, n int) ([]ledger.Channel, error) {
	rows, err := s.read.Channels(ctx, db.ChannelsParams{After: after, N: int64(n)})
	if err != nil {
		return nil, failed("read channels", err)
	}
	out := make([]ledger.Channel, len(rows))
	for i, r := range rows {
		if out[i], err = channel(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func channel(r db.Channel) (ledger.Channel, error) {
	c := ledger.Channel{
		Key: r.ID, ID: r.Uid, Name: r.Name, Kind: r.Kind, Enabled: r.Enabled != 0, Agent: r.Agent, Queue: r.Queue != 0, Retention: int(r.RetentionDays), Rate: int(r.RateLimit),
		Version:   r.Version,
		CreatedAt: time.UnixMilli(r.CreatedAt).UTC(),
	}
	for _, f := range []struct {
		from string
		to   any
	}{{r.Agents, &c.Agents}, {r.AcceptCapabilities, &c.Accept}, {r.AllowUsers, &c.Users}, {r.Profile, &c.Profile}, {r.QueueLimits, &c.Limits}} {
		if err := json.Unmarshal([]byte(f.from), f.to); err != nil {
			return ledger.Channel{}, fmt.Errorf("channel %s: %w", r.Name, err)
		}
	}
	return c, nil
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func list(names []string) string {
	if names == nil {
		names = []string{}
	}
	return object(names)
}

// object marshals what can't fail: strings and numbers of our own types.
func object(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("store: marshal %T: %v", v, err))
	}
	return string(b)
}

// outdated tells why no row of the version was there to change: its arguments are what
// a look for the row gave.
func outdated[T any](_ T, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("look for the row: %w", err)
	}
	return ledger.ErrConflict
}
