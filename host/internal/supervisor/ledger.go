package supervisor

import (
	"context"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Ledger is where the supervisor keeps the channels of plugins.
type Ledger interface {
	Channel(ctx context.Context, ref string) (ledger.Channel, error)
	CreateChannel(ctx context.Context, c ledger.Channel, token *ledger.NewCredential, by ledger.Change) (ledger.Channel, error)
	UpdateChannel(ctx context.Context, c ledger.Channel, by ledger.Change) (ledger.Channel, error)
}
