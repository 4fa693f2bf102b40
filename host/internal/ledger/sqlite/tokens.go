package sqlite

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Doors tells what the tokens of channels say together, by the channel's key: of one
// channel, or of all for 0. One that never had a token is not there.
func (s *Store) Doors(ctx context.Context, channel int64) (map[int64]ledger.Door, error) {
	const of = "SELECT channel, max(last_used_at), max(CASE WHEN revoked_at IS NULL THEN coalesce(expires_at, ?1) END) FROM credential WHERE channel "
	query := of + "IS NOT NULL GROUP BY channel"
	args := []any{int64(math.MaxInt64)}
	if channel != 0 {
		query, args = of+"= ?2 GROUP BY channel", append(args, channel)
	}
	rows, err := s.readDB.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, failed("read tokens", err)
	}
	defer func() { _ = rows.Close() }()
	out := map[int64]ledger.Door{}
	for rows.Next() {
		var key int64
		var used, ends sql.NullInt64
		if err := rows.Scan(&key, &used, &ends); err != nil {
			return nil, failed("read tokens", err)
		}
		d := ledger.Door{Endless: ends.Int64 == math.MaxInt64}
		if used.Valid {
			d.Used = time.UnixMilli(used.Int64).UTC()
		}
		if ends.Valid && !d.Endless {
			d.Ends = time.UnixMilli(ends.Int64).UTC()
		}
		out[key] = d
	}
	if err := rows.Err(); err != nil {
		return nil, failed("read tokens", err)
	}
	return out, nil
}
