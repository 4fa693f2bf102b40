package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// died is when a dead letter died, in the words of the index message_died: in others
// SQLite does not find it.
const died = "coalesce(m.settled_at, (m.id >> 22) + 1704067200000)"

const deadLetters = "SELECT m.id, m.channel, " + died + ", octet_length(m.text) + coalesce(octet_length(m.parts), 0) + coalesce(octet_length(m.origin), 0)" +
	" + coalesce(octet_length(m.meta), 0) + coalesce(octet_length(m.notes), 0) FROM message m" +
	" WHERE m.state IN (5, 6) AND " + died + " <= ?1 AND (" + died + " < ?1 OR m.id < ?2) AND (m.direction = 1 OR m.reason <> ?3)" +
	" AND (?4 = 0 OR m.channel = ?4) AND (?5 = '' OR m.reason = ?5) ORDER BY " + died + " DESC, m.id DESC LIMIT ?6"

// Dead lists up to n messages that failed or expired, the last that did first, from behind
// a place; its zero value starts. channel 0 = all, why "" = for whatever reason. Whose
// author may not speak is not among them.
func (s *Store) Dead(ctx context.Context, channel int64, why ledger.Reason, behind ledger.Death, n int) ([]ledger.DeadHeading, error) {
	at, id := int64(math.MaxInt64), int64(math.MaxInt64)
	if behind.ID != 0 {
		at, id = behind.At.UnixMilli(), int64(behind.ID)
	}
	rows, err := s.readDB.QueryContext(ctx, deadLetters, at, id, string(ledger.ReasonRejected), channel, string(why), n)
	if err != nil {
		return nil, failed("list dead letters", err)
	}
	defer func() { _ = rows.Close() }()
	var out []ledger.DeadHeading
	for rows.Next() {
		var h ledger.DeadHeading
		var at int64
		if err := rows.Scan(&h.ID, &h.Channel, &at, &h.Size); err != nil {
			return nil, failed("list dead letters", err)
		}
		h.Died = time.UnixMilli(at).UTC()
		out = append(out, h)
	}
	if err := rows.Err(); err != nil {
		return nil, failed("list dead letters", err)
	}
	return out, nil
}
