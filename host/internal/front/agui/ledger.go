package agui

import (
	"context"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Ledger is what this front end reads.
type Ledger interface {
	ledger.Reader
	Thread(ctx context.Context, channel, owner int64, name string) (conversation string, err error)
	OpenThread(ctx context.Context, channel, owner int64, name string) (conversation string, err error)
	ChannelOfKind(ctx context.Context, kind string) (ledger.Channel, error)
	CreateChannel(ctx context.Context, c ledger.Channel, token *ledger.NewCredential, by ledger.Change) (ledger.Channel, error)
}
