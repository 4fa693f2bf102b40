package hub_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// does sends what does something to an earlier message.
func (b *bed) does(text string, meta message.Meta) {
	b.T.Helper()
	m := message.Text(text)
	m.Meta = meta
	if _, err := b.Hub.Send(context.Background(), b.row, hub.Outgoing{Conversation: "c", Message: m}); err != nil {
		b.T.Fatal(err)
	}
}

// wantMade tells how many messages were made since it was asked last.
func (h *historian) wantMade(t *testing.T, want int64) {
	t.Helper()
	if got := h.made.Swap(0); got != want {
		t.Errorf("%d messages were made for the turn, want %d", got, want)
	}
}

// What was made of a message is kept for later turns, until something changes it.
func TestHistoryIsKept(t *testing.T) {
	t.Parallel()
	h := &historian{seen: make(chan string, 10), answer: echoBack, n: 20}
	b := newBedWith(t, sqlite.Options{}, h)
	a := b.attach(&port{log: new(written), room: -1})
	a.Receive(says("one"))
	h.want(t, "u:one")
	h.wantMade(t, 1)
	all := b.rows(2)
	id := func(i int) string { return all[i].ID.String() }
	a.Receive(says("two"))
	h.want(t, "u:one a:re one u:two")
	h.wantMade(t, 2)
	b.rows(4)
	b.does("+1", message.Meta{}.With(message.MetaReactsTo, id(1)).With(message.MetaReaction, "+1"))
	a.Receive(says("/help"))
	b.rows(7)
	a.Receive(says("three"))
	h.want(t, "u:one a:re one u:two a:re two u:three")
	h.wantMade(t, 2)
	b.rows(9)

	b.does("edited", message.Meta{}.With(message.MetaEdits, id(1)))
	a.Receive(says("four"))
	h.want(t, "u:one a:edited u:two a:re two u:three a:re three u:four")
	h.wantMade(t, 8) // all anew, and one before the edit was found
	b.rows(12)
	a.Receive(says("five"))
	h.want(t, "u:one a:edited u:two a:re two u:three a:re three u:four a:re four u:five")
	h.wantMade(t, 2)
	b.rows(14)

	b.does("", message.Meta{}.With(message.MetaDeletes, id(0)))
	a.Receive(says("six"))
	h.want(t, "a:edited u:two a:re two u:three a:re three u:four a:re four u:five a:re five u:six")
	b.rows(17)
	h.made.Store(0)

	h.n = 4 // what an agent is told does not depend on what another was told
	a.Receive(says("seven"))
	h.want(t, "a:re five u:six a:re six u:seven")
	h.wantMade(t, 2)
	b.rows(19)
}

// What retention deletes is told to nobody any more.
func TestHistoryForgetsWhatWasDeleted(t *testing.T) {
	t.Parallel()
	h := &historian{seen: make(chan string, 10), answer: echoBack, n: 20}
	b := newBedWith(t, sqlite.Options{}, h)
	a := b.attach(&port{log: new(written), room: -1})
	a.Receive(says("one"))
	h.want(t, "u:one")
	b.rows(2)
	a.Receive(says("two"))
	h.want(t, "u:one a:re one u:two")
	all := b.rows(4)
	other, err := sql.Open("sqlite", "file:"+filepath.Join(b.Dir, sqlite.File)+"?_pragma=busy_timeout(60000)") // a commit may wait for the disk
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	// The broom's way: the oldest of a channel, nothing between two that stay.
	if _, err := other.ExecContext(t.Context(), "DELETE FROM message WHERE id <= ?", int64(all[1].ID)); err != nil {
		t.Fatal(err)
	}
	a.Receive(says("three"))
	h.want(t, "u:two a:re two u:three")
	b.rows(4)
	if _, err := other.ExecContext(t.Context(), "DELETE FROM message"); err != nil {
		t.Fatal(err)
	}
	a.Receive(says("four"))
	h.want(t, "u:four")
}

// A conversation that is begun anew under another key, and one of another channel
// under the same, are told nothing of the first.
func TestHistoryIsOfOneConversation(t *testing.T) {
	t.Parallel()
	h := &historian{seen: make(chan string, 10), answer: echoBack, n: 20}
	b := newBedWith(t, sqlite.Options{}, h)
	a := b.attach(&port{log: new(written), room: -1})
	for i, key := range []string{"c", "new", "c"} {
		a.Receive(&wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: key}, Text: key})
		h.want(t, []string{"u:c", "u:new", "u:c a:re c u:c"}[i])
		b.rows(2 * (i + 1))
	}
}

// An address that ends is made for each turn anew.
func TestHistorySignsAnew(t *testing.T) {
	t.Parallel()
	h := &historian{seen: make(chan string, 10), answer: echoBack, n: 20}
	host := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"agent": h})) // which has a public url
	row := host.Channel("c", hosttest.WithAgent("agent"))
	c := host.Attach(t, row)
	ask := func(pictures int) {
		t.Helper()
		c.Send(hosttest.Say("c", "more"))
		if got := await.Value(t, "a turn begins", h.seen); strings.Count(got, "a.png") != pictures {
			t.Errorf("told %q", got)
		}
		c.Want(hosttest.Answer("c", "re more"))
	}
	ask(0)
	o, err := host.Files.PutBytes(t.Context(), row.ID, pngBytes(t), attach.Claim{Name: "a.png", MimeType: "image/png"})
	if err != nil {
		t.Fatal(err)
	}
	picture := message.New(message.NewVision(message.VisionPart{Kind: message.VisionOutput, MimeType: "image/png", URL: host.Files.SignID(o.ID(), 0), Caption: "a.png"}))
	if _, err := host.Hub.Send(t.Context(), row, hub.Outgoing{Conversation: "c", Message: picture}); err != nil {
		t.Fatal(err)
	}
	c.MustNext()
	h.made.Store(0)
	for range 3 {
		ask(1)
		h.wantMade(t, 3) // of which one is the picture
	}
}
