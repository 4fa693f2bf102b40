package bridle

import (
	"context"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
)

// Ledger is what this front end reads.
type Ledger interface {
	paging.Store
	ChannelOfKind(ctx context.Context, kind string) (ledger.Channel, error)
	CreateChannel(ctx context.Context, c ledger.Channel, token *ledger.NewCredential, by ledger.Change) (ledger.Channel, error)
	ClearedUpTo(ctx context.Context, channel int64, conversation string) (ledger.MessageID, error)
	Clear(ctx context.Context, channel int64, conversation string, upTo ledger.MessageID) error
}
