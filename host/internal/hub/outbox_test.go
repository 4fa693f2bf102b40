package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// attachAs is attach for an adapter of 1.1 that declares capabilities.
func (b *bed) attachAs(p *port, caps wire.Caps) *hub.Attachment {
	b.T.Helper()
	a, _, err := b.Hub.Attach(b.T.Context(), b.row, p, hub.Info{Heard: time.Now, Protocol: wire.V11, Declared: wire.CapText | caps})
	if err != nil {
		b.T.Fatal(err)
	}
	return a
}

// policy changes the channel as an operator does.
func (b *bed) policy(change func(*ledger.Channel)) {
	b.T.Helper()
	change(&b.row)
	var err error
	if b.row, err = b.Store.UpdateChannel(b.T.Context(), b.row, ledger.Change{Actor: "test", Action: "test"}); err != nil {
		b.T.Fatal(err)
	}
	b.Hub.Update(b.row)
}

// acknowledge tells that the far end has a message.
func acknowledge(t *testing.T, a *hub.Attachment, p *port, id ledger.MessageID) {
	t.Helper()
	if !a.Acknowledge(&wire.Inbound{Type: wire.TypeMessageAck, MessageID: id.String(), Later: &wire.Later{OK: true}}) {
		t.Errorf("the acknowledgement of %s was ignored", id)
	}
	p.Flush()
}

// What becomes of a message is decided when it is planned, by who would take it then.
// What an operator can't send is not stored; see TestOutboxRecordsAnswers for agents.
func TestOutboxDecides(t *testing.T) {
	t.Parallel()
	far := func(b *bed, room int) { b.attach(&port{log: new(written), room: room}) }
	for name, c := range map[string]struct {
		given func(b *bed)
		want  string // Line of the message, or the error
	}{
		"okAttached":       {func(b *bed) { far(b, -1) }, "out sent it"},
		"okNobodyButQueue": {func(*bed) {}, "out queued it"},
		"okOthersWait": {func(b *bed) {
			far(b, 0)
			b.send("first")
			b.WantHistory(b.row, "out queued first")
		}, "out queued it"},
		"okLaneFree": {func(b *bed) { b.attachAs(&port{log: new(written), room: -1}, wire.CapAck) }, "out sent it"},
		"okLaneTaken": {func(b *bed) {
			b.attachAs(&port{log: new(written), room: -1}, wire.CapAck)
			b.send("first")
		}, "out queued it"},
		"okLaneOfAnother": {func(b *bed) {
			b.attachAs(&port{log: new(written), room: -1}, wire.CapAck)
			b.MustSend(b.row, "elsewhere", "first")
		}, "out sent it"},
		"errNobody": {func(b *bed) { b.policy(func(c *ledger.Channel) { c.Queue = false }) }, hub.ErrNotAttached.Error()},
		"errQueueFull": {func(b *bed) {
			b.policy(func(c *ledger.Channel) { c.Limits.Length = 2 })
			b.send("first")
			b.send("second")
		}, hub.ErrQueueFull.Error() + ": 2 messages may wait (queue_limits.length)"},
		"errTooLarge": {func(b *bed) {
			a := b.attach(&port{log: new(written), room: -1})
			a.Receive(&wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c", ReplyCtx: wire.Raw(`"` + strings.Repeat("x", wire.MaxFrame) + `"`)}, Text: "first"})
			b.WantHistory(b.row, "in handled first")
		}, hub.ErrTooLarge.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			c.given(b)
			before := len(b.History(b.row))
			sent, err := b.Send(b.row, "c", "it")
			got, kept := "", b.History(b.row)[before:]
			if err != nil {
				got = err.Error()
				if len(kept) != 0 {
					t.Errorf("kept %s though it was refused", hosttest.Line(kept[0]))
				}
			} else if len(kept) == 1 && kept[0].ID == sent.ID && kept[0].State == sent.State {
				got = hosttest.Line(kept[0])
			}
			if got != c.want {
				t.Errorf("%q, want %q; kept %d, told %+v", got, c.want, len(kept), sent)
			}
		})
	}
}

// An agent's answer that nobody can take is stored as failed, with the reason, and
// waits for nobody.
func TestOutboxRecordsAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy func(*ledger.Channel)
		want   []string
	}{
		"notAttached": {func(c *ledger.Channel) { c.Queue = false }, []string{"in handled hello", "out failed/adapter_not_attached late"}},
		"queueFull":   {func(c *ledger.Channel) { c.Limits.Length = 1 }, []string{"in handled hello", "out queued first", "out failed/queue_full late"}},
		"ok":          {func(*ledger.Channel) {}, []string{"in handled hello", "out queued first", "out queued late"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := hosttest.NewHeld()
			b := newBedWith(t, sqlite.Options{}, agent)
			a := b.attach(&port{log: new(written), room: -1})
			a.Receive(says("hello"))
			await.Value(t, "turn", agent.Turns)
			a.Detach()
			b.policy(c.policy)
			if b.row.Queue {
				b.send("first")
			}
			agent.Answer(t, "late")
			b.WantHistory(b.row, c.want...)
			if n, err := b.Store.CountPending(t.Context(), b.row.Key); err != nil || int(n) != strings.Count(strings.Join(c.want, "\n"), "out queued") {
				t.Errorf("%d wait, %v", n, err)
			}
		})
	}
}

// What the disk refuses is undone: nothing is written or kept, and what was booked
// for it, the place in the queue or the lane, is free for the next.
func TestOutboxUndoesRefused(t *testing.T) {
	t.Parallel()
	refuse := func(t *testing.T, b *bed, n int) {
		t.Helper()
		unlock := b.lock()
		defer unlock()
		for range n {
			if _, err := b.Send(b.row, "c", "refused"); !ledger.Failing(err) {
				t.Fatalf("sent while the disk takes nothing: %v", err)
			}
		}
	}
	t.Run("placeInQueue", func(t *testing.T) {
		t.Parallel()
		b := newBedWith(t, impatient, nil)
		b.policy(func(c *ledger.Channel) { c.Limits.Length = 2 })
		refuse(t, b, 3) // more than there are places
		b.send("0")
		b.send("1")
		if _, err := b.Send(b.row, "c", "2"); !errors.Is(err, hub.ErrQueueFull) {
			t.Errorf("a third of two places: %v", err)
		}
		b.WantHistory(b.row, "out queued 0", "out queued 1")
		log := new(written)
		b.attach(&port{log: log, room: -1})
		b.wantWritten(log, 2)
	})
	t.Run("lane", func(t *testing.T) {
		t.Parallel()
		b := newBedWith(t, impatient, nil)
		log := new(written)
		p := &port{log: log, room: -1}
		a := b.attachAs(p, wire.CapAck)
		refuse(t, b, 3)
		for i := range 3 { // each finds the lane free, once the one before is acknowledged
			sent, err := b.Send(b.row, "c", fmt.Sprint(i))
			if err != nil || sent.State != ledger.Sent {
				t.Fatalf("message %d is %s, %v, expected it to be sent at once", i, sent.State, err)
			}
			b.wantWritten(log, i+1)
			acknowledge(t, a, p, sent.ID)
			await.Until(t, "it is delivered", func() bool { return b.Last(b.row, ledger.Out).State == ledger.Delivered })
		}
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		b := newBedWith(t, impatient, nil)
		log := new(written)
		b.attach(&port{log: log, room: -1})
		refuse(t, b, 3)
		if got := log.list(); len(got) != 0 {
			t.Errorf("written and not stored: %v", got)
		}
		b.send("0")
		b.wantWritten(log, 1)
		b.WantHistory(b.row, "out sent 0")
	})
}

// Messages go out in the order in which they were committed, whoever sends them, and
// each once, with the id under which it is kept; also by way of the queue.
func TestOutboxKeepsOrder(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]wire.Caps{"plain": 0, "acknowledged": wire.CapAck} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			log := new(written)
			const senders, each = 8, 25
			b.policy(func(c *ledger.Channel) { c.Limits.Length = senders * each })
			p := &port{log: log, room: -1}
			a := b.attachAs(p, caps)
			var wg sync.WaitGroup
			for s := range senders {
				wg.Go(func() {
					for n := range each {
						if _, err := b.Send(b.row, "c", fmt.Sprint(s, " ", n)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			if caps != 0 {
				for n := range senders * each {
					await.Until(t, "another one is written", func() bool { return len(log.all()) > n })
					acknowledge(t, a, p, log.all()[n].ID)
				}
			}
			wg.Wait()
			await.UntilElse(t, func() bool { return len(log.list()) >= senders*each }, func() string {
				return fmt.Sprintf("%d of %d are written", len(log.list()), senders*each)
			})
			var want []string
			for i, e := range b.History(b.row) {
				want = append(want, e.Text)
				if p := log.all()[i]; p.ID != e.ID {
					t.Errorf("message %d was written as %s, and is kept as %s", i, p.ID, e.ID)
				}
			}
			if got := log.list(); !slices.Equal(got, want) {
				t.Errorf("written %q\nkept %q", got, want)
			}
		})
	}
}

// planned sends a message whose commit waits for the disk; it was decided on when it
// returns. go on lets it be committed, and told says what became of it.
func (b *bed) planned(texts <-chan string, text string) (goOn func(), told <-chan error) {
	b.T.Helper()
	unlock := b.lock()
	errs := make(chan error, 1)
	go func() {
		_, err := b.Send(b.row, "c", text)
		errs <- err
	}()
	for await.Value(b.T, "it is planned", texts) != text {
	}
	return unlock, errs
}

// patientBed is a bed whose disk may take its time, and that tells what is planned.
func patientBed(t *testing.T) (*bed, <-chan string) {
	t.Helper()
	texts := make(chan string, 100)
	c := hosttest.Open(t, func(s *hosttest.Setup) {
		s.Store.BusyTimeout = await.Limit
		s.Ledger = func(l hub.Ledger) hub.Ledger { return watched{l, texts} }
	})
	return &bed{c, c.Channel("c", hosttest.WithAgent(hub.AgentNone), hosttest.WithQueue)}, texts
}

// Between the decision and its commit the far end may go, or another one come: what
// was to be sent is for whoever is there then, as it can show it, or waits.
func TestOutboxDispatchesToWhoIsThere(t *testing.T) {
	t.Parallel()
	t.Run("nobody", func(t *testing.T) {
		t.Parallel()
		b, texts := patientBed(t)
		a := b.attach(&port{log: new(written), room: -1})
		goOn, told := b.planned(texts, "0")
		a.Detach()
		goOn()
		if err := await.Value(t, "commit", told); err != nil {
			t.Fatal(err)
		}
		b.WantHistory(b.row, "out queued 0")
		log := new(written)
		b.attach(&port{log: log, room: -1})
		b.wantWritten(log, 1)
	})
	t.Run("nobodyAndNoQueue", func(t *testing.T) {
		t.Parallel()
		b, texts := patientBed(t)
		b.policy(func(c *ledger.Channel) { c.Queue = false })
		a := b.attach(&port{log: new(written), room: -1})
		goOn, told := b.planned(texts, "0")
		a.Detach()
		goOn()
		if err := await.Value(t, "commit", told); err != nil {
			t.Fatal(err)
		}
		b.WantHistory(b.row, "out failed/adapter_not_attached 0")
	})
	t.Run("another", func(t *testing.T) {
		t.Parallel()
		b, texts := patientBed(t)
		b.attachAs(&port{log: new(written), room: -1}, wire.CapParts)
		goOn, told := b.planned(texts, "0")
		log := new(written)
		second := b.attach(&port{log: log, room: -1}) // of 1.0, which knows no ids and no parts
		goOn()
		if err := await.Value(t, "commit", told); err != nil {
			t.Fatal(err)
		}
		b.wantWritten(log, 1)
		if p := log.all()[0]; p.Frames[0].Type != wire.TypeSend || p.Frames[0].MessageID != "" {
			t.Errorf("the second, of 1.0, was sent %+v", p.Frames[0])
		}
		second.Detach()
	})
}

// What is queued is planned for whoever takes it, not for whom it was queued.
func TestOutboxPlansWhatIsQueuedLate(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	m := message.New(message.NewButtons("Pick:", [][]wire.Button{{{Text: "Yes", Value: "y"}}}))
	sent, err := b.Hub.Send(context.Background(), b.row, hub.Outgoing{Conversation: "c", Message: m})
	if err != nil || sent.State != ledger.Queued || len(sent.Notes) != 0 {
		t.Fatalf("%+v, %v", sent, err)
	}
	log := new(written)
	b.attachAs(&port{log: log, room: -1}, wire.CapButtons)
	await.Until(t, "it is written", func() bool { return len(log.all()) == 1 })
	if p := log.all()[0]; p.ID != sent.ID || p.Frames[0].Type != wire.TypeSendButtons || p.Frames[0].Text != "Pick:" {
		t.Errorf("written %+v", p)
	}
	if e := b.Last(b.row, ledger.Out); len(e.Notes) != 0 {
		t.Errorf("noted %s, though it is shown as it was meant", e.Notes)
	}
}
