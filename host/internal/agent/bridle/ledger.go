package bridle

import (
	"context"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Ledger is where this package finds its channel and what was said.
type Ledger interface {
	Before(ctx context.Context, in ledger.Scope, before ledger.MessageID, n int) ([]ledger.Entry, error)
	Channel(ctx context.Context, ref string) (ledger.Channel, error)
	ChannelOfKind(ctx context.Context, kind string) (ledger.Channel, error)
}
