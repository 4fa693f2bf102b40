// Package front is what front ends share: each is a channel of its own, which the
// host makes, and whose far end is many clients at once.
package front

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Unqueued is the part of a hub.Port that is the same for all whose delivery is
// the history: nothing waits for them.
type Unqueued struct{}

// always is a channel on which nobody waits.
var always = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Retire implements hub.Port: nothing waits here.
func (Unqueued) Retire() []hub.Parcel { return nil }

// Room implements hub.Port: there is always room.
func (Unqueued) Room() <-chan struct{} { return always }

// Admitted implements hub.Port.
func (Unqueued) Admitted(wire.View, string) {}

// Overdue implements hub.Port: nothing is acknowledged here, so nothing is due.
func (Unqueued) Overdue() {}

// Flush implements hub.Port: what is offered wakes its reader.
func (Unqueued) Flush() {}

// Channel finds the channel of a front end's kind, or makes it, answered by agent.
func Channel(ctx context.Context, st Ledger, kind, agent string) (ledger.Channel, error) {
	row, err := st.ChannelOfKind(ctx, kind)
	if !errors.Is(err, ledger.ErrNotFound) {
		return row, err
	}
	return st.CreateChannel(ctx, ledger.Channel{ID: uuid.NewString(), Name: kind, Kind: kind, Enabled: true, Agent: agent}, nil,
		ledger.Change{Actor: "host", Action: "channel.create", Detail: json.RawMessage(`{"kind":"` + kind + `"}`)})
}

// Shown reports the messages of history that a client sees: not those that were
// not taken, that are still being made, or that only do something to another one.
func Shown(e ledger.Entry) bool {
	if e.Direction == ledger.In && e.Reason == ledger.ReasonRejected || e.Status == ledger.StatusStreaming {
		return false
	}
	m := message.Message{Meta: packed.Metadata(&e)}
	switch render.ActOf(&m).Kind {
	case render.ActDelete, render.ActReact:
		return false
	}
	return true
}
