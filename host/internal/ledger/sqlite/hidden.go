package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// HiddenUpTo is the message up to which a conversation is not shown to its user;
// 0 = all of it is.
func (s *Store) HiddenUpTo(ctx context.Context, channel int64, conversation string) (ledger.MessageID, error) {
	id, err := s.read.HiddenUpTo(ctx, db.HiddenUpToParams{Channel: channel, Conversation: conversation})
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, failed("read what is hidden", err)
	}
	return ledger.MessageID(id), nil
}

// Hide does not show a conversation up to a message to its user any more. The
// messages stay; nothing is shown again.
func (s *Store) Hide(ctx context.Context, channel int64, conversation string, upTo ledger.MessageID) error {
	return s.change(func(q *db.Queries) error {
		if err := q.Hide(ctx, db.HideParams{Channel: channel, Conversation: conversation, Upto: int64(upTo)}); err != nil {
			return fmt.Errorf("hide conversation: %w", err)
		}
		return nil
	})
}
