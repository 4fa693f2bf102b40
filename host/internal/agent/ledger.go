package agent

import (
	"context"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Ledger is what agents are read from.
type Ledger interface {
	Agents(ctx context.Context, after int64, n int) ([]ledger.Agent, error)
	Channel(ctx context.Context, ref string) (ledger.Channel, error)
	Message(ctx context.Context, id ledger.MessageID) (ledger.Entry, error)
}
