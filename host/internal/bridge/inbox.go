package bridge

import (
	"context"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Inbox is where sessions deliver to, and who may open a slot. Local is the hub of
// this process.
type Inbox interface {
	// Attach puts a session into its channel's slot. before is who had it; the caller
	// closes it. hub.ErrOutdated: somebody has the slot who asked for it later.
	Attach(ctx context.Context, row ledger.Channel, p hub.Port, i hub.Info) (a Attachment, before hub.Port, err error)
}

// Attachment is a session's stay in its slot. One that was replaced does not count.
type Attachment interface {
	// Receive takes a message, an action, or what is said of an earlier message. The
	// port's Settled tells how it went.
	Receive(in *wire.Inbound)
	// Acknowledge takes the adapter's word on a frame; false if it ignores it, since no
	// message is in flight whose frame has the id. The caller flushes the session.
	Acknowledge(in *wire.Inbound) bool
	// Upload makes room for a file that comes by HTTP. It waits for the disk.
	Upload(in *wire.Inbound) wire.UploadAck
	// Allow counts a frame; false if there were too many: most is how many a second
	// there may be.
	Allow(at time.Time) (ok bool, most int)
	// TellPlatform takes the adapter's word on its platform; true if the state is another one.
	TellPlatform(said *wire.PlatformStatus) (changed bool)
	// Remember commits where the adapter reads on, of a frame that leaves nothing else.
	Remember(cursor string)
	// Caps is what the adapter may be sent now.
	Caps() wire.Caps
	// Broken fails parcels of which it is unknown whether they were written.
	Broken(parcels []hub.Parcel)
	// Detach ends the stay. What was not written is queued or fails.
	Detach()
}

// Local is the hub of this process as sessions see it.
func Local(h *hub.Hub) Inbox { return local{h} }

type local struct{ *hub.Hub }

func (l local) Attach(ctx context.Context, row ledger.Channel, p hub.Port, i hub.Info) (Attachment, hub.Port, error) {
	a, before, err := l.Hub.Attach(ctx, row, p, i)
	if err != nil {
		return nil, nil, err
	}
	return a, before, nil
}
