package bridle

import (
	"context"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Ledger is what this front end reads.
type Ledger interface {
	Before(ctx context.Context, in ledger.Scope, before ledger.MessageID, n int) ([]ledger.Entry, error)
	ChannelOfKind(ctx context.Context, kind string) (ledger.Channel, error)
	CreateChannel(ctx context.Context, c ledger.Channel, token *ledger.NewCredential, by ledger.Change) (ledger.Channel, error)
	ClearedUpTo(ctx context.Context, channel int64, conversation string) (ledger.MessageID, error)
	Clear(ctx context.Context, channel int64, conversation string, upTo ledger.MessageID) error
}
