package hub_test

import (
	"context"
	"testing"
	"time"

	_ "modernc.org/sqlite" // locks the database like another program

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// impatient is a store that gives up on a locked database at once.
var impatient = sqlite.Options{BusyTimeout: 10 * time.Millisecond}

// What a port gives back while the disk takes nothing waits for the disk, and
// then goes to the next port, once and in order.
func TestStateWaitsForDisk(t *testing.T) {
	t.Parallel()
	b := newBedWith(t, impatient, nil)
	a := b.attach(&port{log: new(written), room: -1, lazy: true})
	for i := range 3 {
		b.send(string(rune('0' + i)))
	}
	unlock := b.lock()
	a.Detach()
	log := new(written)
	next := &port{log: log, room: -1}
	b.attach(next)
	if _, err := b.Hub.Send(t.Context(), b.row, hub.Outgoing{Conversation: "c", Message: message.Text("refused")}); !ledger.Failing(err) {
		t.Errorf("sent while the disk takes nothing: %v", err)
	}
	if got := log.list(); len(got) != 0 {
		t.Errorf("written before it was stored: %v", got)
	}
	unlock()
	b.wantWritten(log, 3)
	b.send("3")
	b.wantWritten(log, 4)
}

// answering is an agent that says when it was asked, and answers once it may.
type answering struct{ asked, may chan struct{} }

func (a answering) Handle(ctx context.Context, _ hub.Turn, r hub.Reply) error {
	close(a.asked)
	<-a.may
	_, err := r.Send(ctx, message.Text("0"))
	return err
}

// An answer that comes while the disk takes nothing waits for the disk.
func TestAnswerWaitsForDisk(t *testing.T) {
	t.Parallel()
	agent := answering{make(chan struct{}), make(chan struct{})}
	b := newBedWith(t, impatient, agent)
	log := new(written)
	a := b.attach(&port{log: log, room: -1})
	a.Receive(&wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, Text: "hello"})
	await.Value(t, "the agent is asked", agent.asked)
	unlock := b.lock()
	close(agent.may)
	await.Until(t, "it is tried in vain", func() bool { return b.Store.Stats().Refused.Load() >= 3 })
	if got := log.list(); len(got) != 0 {
		t.Errorf("written before it was stored: %v", got)
	}
	unlock()
	b.wantWritten(log, 1)
}
