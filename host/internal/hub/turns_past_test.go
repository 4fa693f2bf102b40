package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// historian answers each turn as it is told, and notes the history of it.
type historian struct {
	seen   chan string
	answer func(ctx context.Context, t hub.Turn, r hub.Reply) error
	n      int
	made   atomic.Int64 // messages
}

// lineForm makes a line of a message, and counts.
type lineForm struct{ made *atomic.Int64 }

func (f lineForm) Make(m *message.Message) (any, int) {
	f.made.Add(1)
	return fmt.Sprintf("%.1s:%s", m.Role, m.Text), len(m.Text)
}

func (h *historian) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	past, err := t.History(ctx, h.n, lineForm{&h.made})
	if err != nil {
		return err
	}
	all := past.Made
	past.Release()
	var lines []string
	for _, m := range all {
		lines = append(lines, m.(string))
	}
	lines = append(lines, "u:"+t.Message.Text)
	h.seen <- strings.Join(lines, " ")
	return h.answer(ctx, t, r)
}

func echoBack(ctx context.Context, t hub.Turn, r hub.Reply) error {
	_, err := r.Send(ctx, message.Text("re "+t.Message.Text))
	return err
}

func says(text string) *wire.Inbound {
	return &wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, Text: text}
}

func (h *historian) want(t *testing.T, want string) {
	t.Helper()
	if got := await.Value(t, "a turn begins", h.seen); got != want {
		t.Errorf("history %q, want %q", got, want)
	}
}

// rows waits until the conversation has n messages, and returns them, oldest first.
func (b *bed) rows(n int) []ledger.Entry {
	b.T.Helper()
	var all []ledger.Entry
	var err error
	await.UntilElse(b.T, func() bool {
		if all, err = b.Store.Before(context.Background(), ledger.Scope{Channel: b.row.Key}, 0, 1000); err != nil || len(all) > n {
			b.T.Fatalf("%d messages, want %d: %v", len(all), n, err)
		}
		return len(all) == n
	}, func() string { return fmt.Sprintf("%d messages, there are %d", n, len(all)) })
	slices.Reverse(all)
	return all
}

func TestHistory(t *testing.T) {
	t.Parallel()
	h := &historian{seen: make(chan string, 10), answer: echoBack, n: 6}
	b := newBedWith(t, sqlite.Options{}, h)
	a := b.attach(&port{log: new(written), room: -1})
	a.Receive(says("one"))
	h.want(t, "u:one")
	b.rows(2)
	a.Receive(says("/help")) // neither it nor its answer
	b.rows(4)
	b.send("by REST")
	all := b.rows(5)
	ctx := context.Background()
	for _, act := range []message.Meta{
		message.Meta{}.With(message.MetaReactsTo, all[1].ID.String()).With(message.MetaReaction, "+1"),
		message.Meta{}.With(message.MetaEdits, all[1].ID.String()),
	} {
		m := message.Text("re one, edited")
		m.Meta = act
		if _, err := b.Hub.Send(ctx, b.row, hub.Outgoing{Conversation: "c", Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Hub.Send(ctx, b.row, hub.Outgoing{Conversation: "elsewhere", Message: message.Text("not here")}); err != nil {
		t.Fatal(err)
	}
	a.Receive(says("two"))
	h.want(t, "u:one a:re one, edited a:by REST u:two")
	b.rows(10)
	gone := message.Message{Role: message.RoleAgent, Meta: message.Meta{}.With(message.MetaDeletes, all[4].ID.String())}
	if _, err := b.Hub.Send(ctx, b.row, hub.Outgoing{Conversation: "c", Message: gone}); err != nil {
		t.Fatal(err)
	}
	a.Receive(says("three"))
	h.want(t, "u:one a:re one, edited u:two a:re two u:three")
	b.rows(13)
	a.Receive(says("four")) // no more than six
	h.want(t, "a:re one, edited u:two a:re two u:three a:re three u:four")
	b.rows(15)
}

// A question that came before the last one was answered is told the answer, and
// no question that came after it.
func TestHistoryOfWaitingTurns(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	h := &historian{seen: make(chan string, 10), n: 10}
	h.answer = func(ctx context.Context, turn hub.Turn, r hub.Reply) error {
		if turn.Message.Text == "one" {
			<-goOn
		}
		return echoBack(ctx, turn, r)
	}
	b := newBedWith(t, sqlite.Options{}, h)
	a := b.attach(&port{log: new(written), room: -1})
	for _, text := range []string{"one", "two", "three"} {
		a.Receive(says(text))
	}
	b.rows(3)
	close(goOn)
	h.want(t, "u:one")
	h.want(t, "u:one a:re one u:two")
	h.want(t, "u:one u:two a:re one a:re two u:three")
}

func TestTurnKnowsItsPlace(t *testing.T) {
	t.Parallel()
	type known struct {
		e      message.Envelope
		err    error
		handle [3]error
	}
	seen := make(chan known, 2)
	first := make(chan ledger.MessageID, 2)
	b := newBedWith(t, sqlite.Options{}, agentFunc(func(ctx context.Context, turn hub.Turn, r hub.Reply) error {
		var k known
		k.e = turn.Envelope()
		_, k.handle[0] = turn.Handle(ctx, turn.ID.String())
		_, k.handle[1] = turn.Handle(ctx, "no id")
		_, k.handle[2] = turn.Handle(ctx, (turn.ID + 1).String())
		if n, ok := ledger.ParseCursor(turn.Cursor()); !ok || ledger.MessageID(n) != turn.ID || turn.Session() != k.e.SessionID {
			t.Errorf("cursor %s, session %s", turn.Cursor(), turn.Session())
		}
		seen <- k
		first <- turn.ID
		return nil
	}))
	a := b.attach(&port{log: new(written), room: -1})
	for i := range 2 {
		a.Receive(says("hello"))
		k := await.Value(t, "a turn", seen)
		if k.err != nil || k.e.ID != await.Value(t, "its id", first).String() || k.e.TurnIndex != int64(i) || k.e.SessionID == "" || k.e.CreatedAt == "" || k.e.Role != message.RoleUser || len(k.e.Parts) != 1 {
			t.Errorf("%+v, %v", k.e, k.err)
		}
		if k.handle[0] != nil || !errors.Is(k.handle[1], ledger.ErrNotFound) || !errors.Is(k.handle[2], ledger.ErrNotFound) {
			t.Errorf("handles: %v", k.handle)
		}
	}
}

type agentFunc func(context.Context, hub.Turn, hub.Reply) error

func (f agentFunc) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error { return f(ctx, t, r) }

// What an agent showed before it failed is kept, also for a far end that shows
// no streams.
func TestBrokenAnswerIsKept(t *testing.T) {
	t.Parallel()
	b := newBedWith(t, sqlite.Options{}, agentFunc(func(ctx context.Context, turn hub.Turn, r hub.Reply) error {
		r.Stream("whole")
		if _, err := r.Send(ctx, message.Text("whole")); err != nil {
			return err
		}
		if turn.Message.Text == "fail" {
			r.Stream("ha")
			r.Stream("half")
			return errors.New("broken")
		}
		return nil
	}))
	log := new(written)
	a := b.attach(&port{log: log, room: -1})
	a.Receive(says("work"))
	b.rows(2)
	a.Receive(says("fail"))
	all := b.rows(6)
	for i, want := range []string{"work completed", "whole completed", "fail completed", "whole completed", "half error", "Sorry, no answer could be made. Please try again. completed"} {
		if got := fmt.Sprintf("%s %s", all[i].Text, all[i].Status); got != want {
			t.Errorf("message %d: %s, want %s", i, got, want)
		}
	}
	await.UntilElse(t, func() bool { // what is stored is written a little later
		return slices.Equal(log.list(), []string{"whole", "whole", "half", "Sorry, no answer could be made. Please try again."})
	}, func() string { return fmt.Sprintf("written %q", log.list()) })
}
