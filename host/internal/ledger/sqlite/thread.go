package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// Thread finds the conversation that the owner, a key's id or 0 for the
// operator, knows by a name; ErrNotFound if there is none. Two owners never
// share one.
func (s *Store) Thread(ctx context.Context, channel, owner int64, name string) (conversation string, err error) {
	k := threadKey{channel, owner, name}
	conversation, ok, change := s.w.lookups.threads.get(k)
	if ok {
		return conversation, nil
	}
	conversation, err = threadFound(s.read.ThreadOf(ctx, db.ThreadOfParams{Channel: channel, Owner: owner, Name: name}))
	if err == nil {
		s.w.lookups.threads.put(k, conversation, textBytes(name, conversation), change)
	}
	return conversation, err
}

func threadFound(conversation string, err error) (string, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return "", ledger.ErrNotFound
	}
	if err != nil {
		return "", failed("read thread", err)
	}
	return conversation, nil
}

// maxSame bounds how often a name is made longer, because it is taken.
const maxSame = 8

// OpenThread is Thread, and makes what is not there. The conversation is called
// as the owner calls it, unless another owner was first.
func (s *Store) OpenThread(ctx context.Context, channel, owner int64, name string) (conversation string, err error) {
	if conversation, err = s.Thread(ctx, channel, owner, name); !errors.Is(err, ledger.ErrNotFound) {
		return conversation, err
	}
	err = s.changeBeside(func(q *db.Queries) error {
		conversation, err = threadFound(q.ThreadOf(ctx, db.ThreadOfParams{Channel: channel, Owner: owner, Name: name})) // made meanwhile
		if !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		conversation = name
		for range maxSame {
			err = q.InsertThread(ctx, db.InsertThreadParams{Channel: channel, Owner: owner, Name: name, Conversation: conversation})
			if !breaks(err, "thread.conversation") {
				break
			}
			conversation += fmt.Sprintf("~%d", owner)
		}
		if err != nil {
			return fmt.Errorf("insert thread: %w", err)
		}
		return nil
	})
	return conversation, err
}
