package hub_test

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// called is what the hub calls its channel: the event of a port that goes has the name.
func (b *bed) called(a *hub.Attachment) string {
	b.T.Helper()
	events, cancel := b.Hub.Events.SubscribeTo(func(ev *hub.Event) bool { return ev.Type == hub.EventDetached })
	defer cancel()
	a.Detach()
	return await.Value(b.T, "somebody is told that the port goes", events).ChannelName
}

// rename changes the channel's row, and tells nobody.
func (b *bed) rename(row ledger.Channel, name string) ledger.Channel {
	b.T.Helper()
	row.Name = name
	row, err := b.Store.UpdateChannel(b.T.Context(), row, ledger.Change{Actor: "test", Action: "test"})
	if err != nil {
		b.T.Fatal(err)
	}
	return row
}

// Of two changes of a channel the one that was stored last takes effect, whichever the
// hub is told of first, and also if it is told before anybody has used the channel.
func TestNewestRowTakesEffect(t *testing.T) {
	t.Parallel()
	t.Run("okToldInOrder", func(t *testing.T) {
		b := newBed(t)
		a := b.attach(&port{log: &written{}})
		second := b.rename(b.row, "second")
		third := b.rename(second, "third")
		b.Hub.Update(second)
		b.Hub.Update(third)
		if got := b.called(a); got != "third" {
			t.Errorf("the channel is called %s", got)
		}
	})
	t.Run("okOlderToldLast", func(t *testing.T) {
		b := newBed(t)
		a := b.attach(&port{log: &written{}})
		second := b.rename(b.row, "second")
		third := b.rename(second, "third")
		b.Hub.Update(third)
		b.Hub.Update(second)
		if got := b.called(a); got != "third" {
			t.Errorf("the channel is called %s", got)
		}
	})
	t.Run("okToldBeforeUse", func(t *testing.T) {
		b := newBed(t)
		b.Hub.Update(b.rename(b.row, "second"))
		if got := b.called(b.attach(&port{log: &written{}})); got != "second" { // attach knows the row of before
			t.Errorf("the channel is called %s", got)
		}
	})
}
