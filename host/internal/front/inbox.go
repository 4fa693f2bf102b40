package front

import (
	"context"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Hub is the hub as front ends see it; Local is that of this process.
type Hub interface {
	// Attach puts the front end into its channel's slot.
	Attach(ctx context.Context, row ledger.Channel, p hub.Port, i hub.Info) (Inbox, error)
	// Shown is the message of a parcel as a client may see it; nil of a lossy one.
	Shown(p *hub.Parcel) *message.Message
	// Seen is a stored message as a client may see it.
	Seen(e ledger.Entry) *message.Message
	// Roster knows the agents.
	Roster() hub.Roster
	// AgentAway reports whether an agent can't be asked, and since when.
	AgentAway(name string) (since time.Time, away bool)
}

// Inbox takes what clients say, until Detach.
type Inbox interface {
	// Allow counts something that a client says; false if there was too much: most is
	// how much a second there may be.
	Allow(at time.Time) (ok bool, most int)
	// Say takes a message; how it went, the port's Settled tells, and hub.Follower.
	Say(in *wire.Inbound, m message.Message)
	// SayTo is Say to an agent, which the conversation is routed to from now on.
	SayTo(in *wire.Inbound, m message.Message, agent string)
	Detach()
}

// Local is the hub of this process.
type Local struct{ *hub.Hub }

var _ Hub = Local{}

// Attach implements Hub.
func (l Local) Attach(ctx context.Context, row ledger.Channel, p hub.Port, i hub.Info) (Inbox, error) {
	a, _, err := l.Hub.Attach(ctx, row, p, i)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Roster implements Hub.
func (l Local) Roster() hub.Roster { return l.Agents }
