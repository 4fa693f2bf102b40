package sqlite

import (
	"context"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// Reopen makes an inbound message that failed or expired one that waits for its
// turn, until it is settled: Handled is not enough. ErrNotFound if it is not such
// a message.
func (s *Store) Reopen(ctx context.Context, id ledger.MessageID) error {
	err := s.change(func(q *db.Queries) error {
		now := s.now().UnixMilli()
		n, err := q.ReopenMessage(ctx, db.ReopenMessageParams{Received: int64(ledger.Received), At: now, ID: int64(id)})
		if err != nil {
			return err
		}
		if n == 0 {
			return ledger.ErrNotFound
		}
		if err := q.InsertLife(ctx, db.InsertLifeParams{Message: int64(id), At: now, What: ledger.LifeReplayed}); err != nil {
			return err
		}
		// There recovery finds it, however old it is and whatever answered it before.
		return q.InsertReopened(ctx, int64(id))
	})
	if err == nil {
		s.open.add(id, true)
	}
	return err
}
