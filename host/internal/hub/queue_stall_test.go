package hub_test

import (
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// A queue whose commits the disk refused goes on when the disk is back, though
// nobody sends or attaches then.
func TestQueueGoesOnAfterRefusal(t *testing.T) {
	t.Parallel()
	b := newBedWith(t, impatient, nil)
	for i := range 3 {
		b.send(string(rune('0' + i)))
	}
	unlock := b.lock()
	log := new(written)
	b.attach(&port{log: log, room: -1})
	b.wantLogged("queue not written")
	unlock()
	b.wantWritten(log, 3)
}

// A question about an agent changes nothing: that it is away is news when
// somebody needs it.
func TestAwayIsOnlyLookedAt(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.row.Agent = "nobody"
	events, end := b.Hub.Events.Subscribe()
	defer end()
	if since, away := b.Hub.AgentAway("nobody"); !away || !since.IsZero() {
		t.Errorf("an agent that there is none of, and nobody asked, is away: %v, since %v", away, since)
	}
	a := b.attach(&port{log: new(written), room: -1})
	asked := time.Now()
	a.Receive(&wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, Text: "hello"})
	e := await.Value(t, "somebody is told that the agent is away", events)
	for e.Type != hub.EventAgentDetached {
		e = await.Value(t, "somebody is told that the agent is away", events)
	}
	if since, away := b.Hub.AgentAway("nobody"); !away || since.Before(asked.Truncate(0)) || since != e.Since {
		t.Errorf("away: %v, since %v, expected %v", away, since, e.Since)
	}
}
