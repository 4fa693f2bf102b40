package hub

import (
	"context"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Ledger is what the hub needs of the engine that keeps the messages.
type Ledger interface {
	Life(ctx context.Context, id ledger.MessageID) ([]ledger.Life, error)
	ledger.Log
	ledger.Reader
	ChannelByKey(ctx context.Context, key int64) (ledger.Channel, error)
	Conversation(ctx context.Context, tail *ledger.Tail, key string) (ledger.Recall, error)
	CountPending(ctx context.Context, channel int64) (int64, error)
	Entry(r ledger.Row, c *ledger.Conversation) (ledger.Entry, error)
	// EntriesWithin reads the messages with these ids, in this order, but for those that
	// are deleted: up to so many bytes, and one at least. It looked at the first so many.
	EntriesWithin(ctx context.Context, ids []ledger.MessageID, bytes int) (found []ledger.Entry, looked int, err error)
	Handled(id ledger.MessageID)
	NewID() ledger.MessageID
	Pending(ctx context.Context, channel int64, id ledger.MessageID, n int) ([]ledger.Entry, error)
	PendingChannels(ctx context.Context) ([]int64, error)
	Reopen(ctx context.Context, id ledger.MessageID) error
	Replayed(ctx context.Context, ids []ledger.MessageID) (map[ledger.MessageID]time.Time, error)
	Unanswered(ctx context.Context) ([]ledger.OpenMessage, error)
	Waiting(ctx context.Context, channel int64) ([]ledger.Waiting, error)
}
