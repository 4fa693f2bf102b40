package hub_test

import (
	"fmt"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What a port refused, and what it gave back, goes to the next one before all
// that came later.
func TestRefusedStaysInOrder(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	log := new(written)
	n := 0
	for round := range 50 {
		full := &port{log: log, room: 2 + round%3, lazy: true}
		a := b.attach(full)
		for range 5 {
			b.send(fmt.Sprint(n))
			n++
		}
		if round%2 == 0 {
			a.Detach()
		}
		next := &port{log: log, room: -1}
		b.attach(next)
		b.send(fmt.Sprint(n))
		n++
		b.wantWritten(log, n)
		a.Detach()
	}
}

// A port that refuses is not offered more, and the queue rests meanwhile.
func TestRefusedRests(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	log := new(written)
	events, end := b.Hub.Events.Subscribe()
	defer end()
	a := b.attach(&port{log: log, room: 0})
	const n = 20
	for i := range n {
		b.send(fmt.Sprint(i))
	}
	for queued := false; !queued; {
		e := await.Value(t, "a message is queued", events)
		queued = e.Type == hub.EventState
	}
	for range 20 { // commits, each after whatever a restless queue would commit
		if err := b.Store.Writable(); err != nil {
			t.Fatal(err)
		}
	}
	changes := 0
	for len(events) > 0 {
		if e := <-events; e.Type == hub.EventState {
			changes++
		}
	}
	if changes != 0 {
		t.Errorf("%d more changes of state, want none", changes)
	}
	a.Detach()
	b.attach(&port{log: log, room: -1})
	b.wantWritten(log, n)
}

// Ports come and go while the queue is written: nothing is lost, doubled, or
// left lying.
func TestQueueSurvivesComingAndGoing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	log := new(written)
	const n = 300
	for i := range n {
		b.send(fmt.Sprint(i))
	}
	for len(log.list()) < n/2 {
		b.attach(&port{log: log, room: -1}).Detach()
		b.attach(&port{log: log, room: 3}).Detach()
		a := b.attach(&port{log: log, room: -1})
		b.attach(&port{log: log, room: 5})
		a.Detach()
		for range 3 { // commits, so that the queue gets on between two of them
			if err := b.Store.Writable(); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.attach(&port{log: log, room: -1})
	b.wantWritten(log, n)
}

// A frame of a port that is not current any more is refused and not stored.
func TestReceiveFromReplaced(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	old, current := &port{log: new(written), room: -1}, &port{log: new(written), room: -1}
	first, second := b.attach(old), b.attach(current)
	first.Detach()
	in := func(text string) *wire.Inbound {
		return &wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, Text: text}
	}
	first.Receive(in("late"))
	second.Receive(in("in time"))
	if err := b.Store.Writable(); err != nil { // behind both
		t.Fatal(err)
	}
	all, err := b.Store.Before(t.Context(), ledger.Scope{Channel: b.row.Key}, 0, 10)
	if err != nil || len(all) != 1 || all[0].Text != "in time" {
		t.Errorf("stored %v, %v", all, err)
	}
	old.mu.Lock()
	defer old.mu.Unlock()
	if len(old.settled) != 1 || old.settled[0] == nil || !old.settled[0].Retryable() {
		t.Errorf("settled with %v", old.settled)
	}
	if _, attached := b.Hub.Attached(b.row.Key); !attached {
		t.Error("the old one's end detached the current one")
	}
}
