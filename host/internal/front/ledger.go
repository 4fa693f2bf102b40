package front

import (
	"context"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Ledger is where a front end finds its channel.
type Ledger interface {
	ChannelOfKind(ctx context.Context, kind string) (ledger.Channel, error)
	CreateChannel(ctx context.Context, c ledger.Channel, token *ledger.NewCredential, by ledger.Change) (ledger.Channel, error)
}
