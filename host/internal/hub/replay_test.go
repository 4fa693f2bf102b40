package hub_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// fickle is an agent that answers only what it is asked again.
type fickle struct{}

func (fickle) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	if !t.Repeated {
		return errors.New("not now")
	}
	_, err := r.Send(ctx, message.Text("1"))
	return err
}

// What no agent handled is a dead letter too, and is handed over again by a replay.
func TestReplayToAgent(t *testing.T) {
	t.Parallel()
	b := newBedWith(t, sqlite.Options{}, fickle{})
	log := new(written)
	a := b.attach(&port{log: log, room: -1})
	a.Receive(&wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, Text: "hello"})
	dead := b.dead(1)[0]
	if dead.Text != "hello" || dead.State != ledger.Failed || dead.Reason != ledger.ReasonAgentFailed {
		t.Fatalf("dead letter %+v", dead)
	}
	if err := b.Hub.Replay(t.Context(), b.row, dead); err != nil {
		t.Fatal(err)
	}
	b.dead(0)
	if err := b.Hub.Replay(t.Context(), b.row, dead); !errors.Is(err, hub.ErrNotDead) {
		t.Errorf("replayed twice: %v", err)
	}
	await.UntilElse(t, func() bool {
		got := log.list()
		return len(got) == 2 && got[1] == "1" // behind the apology
	}, func() string { return fmt.Sprintf("an apology and the answer are written: %v", log.list()) })
}

// dead waits until there are n dead letters.
func (b *bed) dead(n int) []ledger.Entry {
	b.T.Helper()
	var all []ledger.DeadHeading
	await.UntilElse(b.T, func() bool {
		var err error
		if all, err = b.Store.Dead(b.T.Context(), 0, "", ledger.Death{}, 10); err != nil {
			b.T.Fatal(err)
		}
		return len(all) == n
	}, func() string { return fmt.Sprintf("%d dead letters, there are %d", n, len(all)) })
	var ids []ledger.MessageID
	for _, h := range all {
		ids = append(ids, h.ID)
	}
	entries, err := b.Store.Entries(b.T.Context(), ids)
	if err != nil {
		b.T.Fatal(err)
	}
	return entries
}

// What was handed over again and not answered is so after the next start, too,
// however old it is.
func TestReopenedSurvives(t *testing.T) {
	t.Parallel()
	b := newBedWith(t, sqlite.Options{}, fickle{})
	a := b.attach(&port{log: new(written), room: -1})
	a.Receive(&wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, Text: "hello"})
	dead := b.dead(1)[0]
	for i := range 3 { // later ones
		b.send(string(rune('a' + i)))
	}
	if err := b.Store.Reopen(t.Context(), dead.ID); err != nil {
		t.Fatal(err)
	}
	b.Hub.Close()
	if err := b.Store.Close(); err != nil {
		t.Fatal(err)
	}
	st, err := sqlite.Open(t.Context(), b.Dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	open, err := st.Unanswered(t.Context())
	if err != nil || len(open) != 1 || open[0].ID != dead.ID {
		t.Errorf("open: %+v, %v", open, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}
