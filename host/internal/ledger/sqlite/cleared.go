package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// ClearedUpTo is the message up to which its user cleared a conversation, so that it
// is not shown to them; 0 = all of it is.
func (s *Store) ClearedUpTo(ctx context.Context, channel int64, conversation string) (ledger.MessageID, error) {
	id, err := s.read.ClearedUpTo(ctx, db.ClearedUpToParams{Channel: channel, Conversation: conversation})
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, failed("read what was cleared", err)
	}
	return ledger.MessageID(id), nil
}

// Clear does not show a conversation up to a message to its user any more. The
// messages stay; nothing is shown again.
func (s *Store) Clear(ctx context.Context, channel int64, conversation string, upTo ledger.MessageID) error {
	return s.change(func(q *db.Queries) error {
		if err := q.Clear(ctx, db.ClearParams{Channel: channel, Conversation: conversation, ClearedUpto: int64(upTo)}); err != nil {
			return fmt.Errorf("clear conversation: %w", err)
		}
		return nil
	})
}
