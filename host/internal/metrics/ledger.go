package metrics

import (
	"context"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/disk"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
)

// Ledger is what is measured and where it is written down.
type Ledger interface {
	Channels(ctx context.Context, after int64, n int) ([]ledger.Channel, error)
	CountDead(ctx context.Context) (ledger.DeadCounts, error)
	Minutes(ctx context.Context, channel int64, first, past time.Time) ([]tally.Minute, error)
	OldestQueued(ctx context.Context, channel int64) (ledger.MessageID, error)
	Reading() (busy, most int)
	SaveMinutes(ctx context.Context, all []tally.Minute) error
	Sizes() disk.Sizes
	Stats() *tally.Storage
}
