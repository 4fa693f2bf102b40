package hub_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// counting is an agent that answers 0, 1, 2, … without waiting for the commit,
// once it may.
type counting struct {
	n      atomic.Int64
	may    chan struct{}
	begun  chan struct{} // is told of each turn; nil = not wanted
	stored atomic.Int64
	after  func(ctx context.Context, r hub.Reply) // nil = nothing
}

func (a *counting) Handle(ctx context.Context, _ hub.Turn, r hub.Reply) error {
	if a.begun != nil {
		a.begun <- struct{}{}
	}
	<-a.may
	err := r.Last(ctx, message.Text(strconv.FormatInt(a.n.Add(1)-1, 10)), func(id ledger.MessageID, err error) {
		if err == nil && id != 0 {
			a.stored.Add(1)
		}
	})
	if a.after != nil {
		a.after(ctx, r)
	}
	return err
}

func ask(a *hub.Attachment, n int) {
	for range n {
		a.Receive(&wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, Text: "next"})
	}
}

// wantOpen waits until n messages are stored and not answered.
func (b *bed) wantOpen(n int) {
	b.T.Helper()
	var open []ledger.OpenMessage
	var err error
	await.UntilElse(b.T, func() bool {
		open, err = b.Store.Unanswered(b.T.Context())
		return err == nil && len(open) == n
	}, func() string {
		return fmt.Sprintf("%d messages without an answer, there are %d, %v", n, len(open), err)
	})
}

// Answers that nobody waits for stay in order and come once each, also when the
// disk refuses some of them for a while.
func TestLastAnswersInOrder(t *testing.T) {
	t.Parallel()
	const questions, locks = 100, 3
	agent := &counting{may: make(chan struct{}, questions)}
	b := newBedWith(t, impatient, agent)
	t.Cleanup(func() { close(agent.may) }) // if the test ends early
	log := new(written)
	a := b.attach(&port{log: log, room: -1})
	ask(a, questions)
	b.wantOpen(questions)
	answered := 0
	for range locks {
		unlock, refused := b.lock(), b.Store.Stats().Refused.Load()
		for range questions / (locks + 1) {
			agent.may <- struct{}{}
		}
		await.Until(t, "they are tried in vain", func() bool { return b.Store.Stats().Refused.Load() > refused })
		if got := log.list(); len(got) != answered {
			t.Errorf("%d written before they were stored", len(got)-answered)
		}
		unlock()
		answered += questions / (locks + 1)
		b.wantWritten(log, answered)
	}
	for range questions - answered {
		agent.may <- struct{}{}
	}
	b.wantWritten(log, questions)
	b.wantOpen(0)
	await.UntilElse(t, func() bool { return agent.stored.Load() == questions }, func() string {
		return fmt.Sprintf("told of %d stored answers of %d", agent.stored.Load(), questions)
	})
}

// A turn that gave its last answer says no more.
func TestLastEndsTurn(t *testing.T) {
	t.Parallel()
	errs := make(chan error, 2)
	agent := &counting{may: make(chan struct{}, 2), after: func(ctx context.Context, r hub.Reply) {
		_, err := r.Send(ctx, message.Text("more"))
		errs <- err
		errs <- r.Last(ctx, message.Text("more"), nil)
	}}
	b := newBedWith(t, sqlite.Options{}, agent)
	log := new(written)
	a := b.attach(&port{log: log, room: -1})
	ask(a, 1)
	agent.may <- struct{}{}
	for range 2 {
		if err := await.Value(t, "what the turn was told", errs); err == nil {
			t.Error("an answer behind the last one was taken")
		}
	}
	b.wantWritten(log, 1)
	agent.after = nil
	ask(a, 1)
	agent.may <- struct{}{}
	b.wantWritten(log, 2)
}

// An answer whose turn had begun when the one before it was refused goes behind that
// one, also if the disk is back before that is tried again.
func TestLastStaysBehindRefused(t *testing.T) {
	t.Parallel()
	agent := &counting{may: make(chan struct{}, 2), begun: make(chan struct{}, 2)}
	b := newBedWith(t, sqlite.Options{BusyTimeout: 500 * time.Millisecond}, agent)
	log := new(written)
	a := b.attach(&port{log: log, room: -1})
	ask(a, 2)
	b.wantOpen(2)
	await.Value(t, "the first turn begins", agent.begun)
	unlock := b.lock()
	agent.may <- struct{}{}
	select {
	case <-agent.begun: // while the first answer waits for the disk
	case <-time.After(await.Limit):
		t.Fatal("the second turn does not begin")
	}
	await.Until(t, "the first answer is refused", func() bool { return b.Store.Stats().Refused.Load() > 0 })
	unlock()
	agent.may <- struct{}{}
	b.wantWritten(log, 2)
}
