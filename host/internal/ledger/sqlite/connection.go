package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// foldConnections is how old a line may be to which another like it is added, and
// foldAmong how many lines after it there may be.
const (
	foldConnections = time.Hour
	foldAmong       = 64
)

// AddConnections adds lines to the history of connections, and forgets the oldest of
// those owners who have too many.
func (s *Store) AddConnections(ctx context.Context, lines []ledger.Connection) error {
	return s.changeBeside(func(q *db.Queries) error {
		owners := map[ledger.Owner]struct{}{}
		for i := range lines {
			if err := addConnection(ctx, q, &lines[i]); err != nil {
				return err
			}
			owners[lines[i].Owner] = struct{}{}
		}
		for o := range owners {
			if err := trimConnections(ctx, q, o); err != nil {
				return err
			}
		}
		return nil
	})
}

func addConnection(ctx context.Context, q *db.Queries, c *ledger.Connection) error {
	if c.What == ledger.Turned {
		beyond, err := q.NthConnection(ctx, db.NthConnectionParams{Kind: string(c.Owner.Kind), Owner: c.Owner.Key, N: foldAmong})
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("look for a connection like it: %w", err)
		}
		n, err := q.RepeatConnection(ctx, db.RepeatConnectionParams{
			N: int64(c.Count), Latest: c.Latest.UnixMilli(), Kind: string(c.Owner.Kind), Owner: c.Owner.Key, Beyond: beyond, What: int64(c.What),
			Remote: c.Remote, Credential: c.Credential, Code: int64(c.Code), Why: c.Why, Since: c.Latest.Add(-foldConnections).UnixMilli(),
		})
		if err != nil {
			return fmt.Errorf("count a connection: %w", err)
		}
		if n > 0 {
			return nil
		}
	}
	err := q.InsertConnection(ctx, db.InsertConnectionParams{
		Kind: string(c.Owner.Kind), Owner: c.Owner.Key, What: int64(c.What), At: c.At.UnixMilli(), Latest: c.Latest.UnixMilli(), Count: int64(c.Count),
		Remote: c.Remote, Credential: c.Credential, Code: int64(c.Code), Why: c.Why,
	})
	if err != nil {
		return fmt.Errorf("insert a connection: %w", err)
	}
	return nil
}

// trimConnections forgets the oldest lines of an owner beyond MaxConnections.
func trimConnections(ctx context.Context, q *db.Queries, of ledger.Owner) error {
	last, err := q.NthConnection(ctx, db.NthConnectionParams{Kind: string(of.Kind), Owner: of.Key, N: ledger.MaxConnections})
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("count connections: %w", err)
	}
	return q.DeleteConnectionsBelow(ctx, db.DeleteConnectionsBelowParams{Kind: string(of.Kind), Owner: of.Key, ID: last})
}

// Connections reads up to n of the wanted lines, newest first, from before id; 0 starts.
func (s *Store) Connections(ctx context.Context, want ledger.ConnectionQuery, before int64, n int) ([]ledger.Connection, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	what := int64(-1)
	if want.What != nil {
		what = int64(*want.What)
	}
	var rows []db.Connection
	var err error
	if want.Owner.Kind == "" {
		rows, err = s.read.Connections(ctx, db.ConnectionsParams{Before: before, What: what, N: int64(n)})
	} else {
		rows, err = s.read.ConnectionsOf(ctx, db.ConnectionsOfParams{Kind: string(want.Owner.Kind), Owner: want.Owner.Key, Before: before, What: what, N: int64(n)})
	}
	if err != nil {
		return nil, failed("read history of connections", err)
	}
	out := make([]ledger.Connection, len(rows))
	for i, r := range rows {
		out[i] = ledger.Connection{
			ID: r.ID, Owner: ledger.Owner{Kind: ledger.CredentialKind(r.Kind), Key: r.Owner}, What: ledger.Meeting(r.What), //nolint:gosec // G115: written by addConnection
			At: time.UnixMilli(r.At).UTC(), Latest: time.UnixMilli(r.Latest).UTC(), Count: int(r.Count),
			Remote: r.Remote, Credential: r.Credential, Code: int(r.Code), Why: r.Why,
		}
	}
	return out, nil
}

// sweepConnections forgets lines that are older than they are kept.
func (b *broom) sweepConnections(ctx context.Context) error {
	before := b.now().Add(-ledger.KeepConnections).UnixMilli()
	for ctx.Err() == nil {
		var gone int64
		err := b.changeBeside(func(q *db.Queries) (err error) {
			gone, err = q.DeleteOldConnections(ctx, db.DeleteOldConnectionsParams{Before: before, N: sweepStep})
			return err
		})
		if err != nil || gone < sweepStep {
			return err
		}
	}
	return ctx.Err()
}
