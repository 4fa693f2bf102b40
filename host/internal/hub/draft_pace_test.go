package hub_test

import (
	"context"
	"fmt"
	"slices"
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

// timedPort is a port that notes when it was handed frames.
type timedPort struct {
	port

	mu     sync.Mutex
	frames []timedFrame
}

type timedFrame struct {
	wire.Frame
	at time.Time
}

func (p *timedPort) Offer(parcel hub.Parcel) bool {
	p.mu.Lock()
	for _, f := range parcel.Frames {
		p.frames = append(p.frames, timedFrame{f, time.Now()})
	}
	p.mu.Unlock()
	return p.port.Offer(parcel)
}

func (p *timedPort) seen() []timedFrame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.frames)
}

// wait waits for so many frames and returns the last of them.
func (p *timedPort) wait(t *testing.T, n int) timedFrame {
	t.Helper()
	await.Until(t, fmt.Sprint(n, " frames"), func() bool { return len(p.seen()) >= n })
	return p.seen()[n-1]
}

// paced are an answer's agent and its far end, which edits by the machine's clock.
func paced(t *testing.T, interval time.Duration) (*bed, streaming, *timedPort, *hub.Attachment) {
	t.Helper()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	b := newBedWith(t, sqlite.Options{}, s)
	p := &timedPort{port: port{log: new(written), room: -1}}
	a, _, err := b.Hub.Attach(t.Context(), b.row, p, hub.Info{
		Heard: time.Now, Protocol: wire.V11, Declared: wire.CapText | wire.CapAck | wire.CapUpdateMessage,
		Profile: wire.Profile{EditIntervalMS: int(interval.Milliseconds()), InFlight: 16},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, s, p, a
}

func say(a *hub.Attachment, text string) {
	a.Receive(&wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, UserID: "u", Text: text})
}

func settled(a *hub.Attachment, f timedFrame, later wire.Later) {
	a.Acknowledge(&wire.Inbound{Type: wire.TypeMessageAck, MessageID: f.MessageID, Later: &later})
}

// No two frames that change one message are handed over within its interval, however
// often the agent writes.
func TestDraftPace(t *testing.T) {
	t.Parallel()
	const interval = 100 * time.Millisecond
	b, s, p, a := paced(t, interval)
	for round := range 4 {
		before := len(p.seen())
		say(a, fmt.Sprint("question ", round))
		replies := make(chan hub.Reply)
		s.does(t, func(_ context.Context, r hub.Reply) error { replies <- r; return nil })
		r, text := await.Value(t, "the turn", replies), "so"
		r.Stream(text)
		settled(a, p.wait(t, before+1), wire.Later{OK: true, PreviewHandle: "h"})
		await.Until(t, "edits", func() bool { // each time it looks, more is said
			text += " on"
			r.Stream(text)
			return len(p.seen()) > before+round%3 // the last one comes behind the beginning, or behind edits
		})
		s.say(t, message.Text(text+"."))
		s.over(t)
		var last timedFrame
		await.Until(t, "the last edit", func() bool {
			all := p.seen()
			last = all[len(all)-1]
			return last.Text == text+"."
		})
		settled(a, last, wire.Later{OK: true})
		frames := p.seen()[before:]
		for i, f := range frames[1:] {
			if since := f.at.Sub(frames[i].at); since < interval {
				t.Errorf("round %d: frame %d of %d came %s behind the one before, expected at least %s", round, i+2, len(frames), since, interval)
			}
		}
	}
	await.Until(t, "all is delivered", func() bool {
		return !slices.ContainsFunc(b.History(b.row), func(e ledger.Entry) bool { return e.Direction == ledger.Out && e.State != ledger.Delivered })
	})
}

// A last edit that is refused for now isn't written again within the interval either,
// though the pause before the next try is shorter.
func TestDraftPaceOfRetry(t *testing.T) {
	t.Parallel()
	const interval = 1500 * time.Millisecond
	b, s, p, a := paced(t, interval)
	say(a, "go")
	s.show(t, "one")
	settled(a, p.wait(t, 1), wire.Later{OK: true, PreviewHandle: "h"})
	await.Until(t, "the beginning is delivered", func() bool { return b.Last(b.row, ledger.Out).State == ledger.Delivered })
	s.say(t, message.Text("one two."))
	s.over(t)
	settled(a, p.wait(t, 2), wire.Later{Error: "too fast", Retryable: true})
	settled(a, p.wait(t, 3), wire.Later{OK: true})
	frames := p.seen()
	for i, f := range frames[1:] {
		if since := f.at.Sub(frames[i].at); since < interval || f.Text != "one two." {
			t.Errorf("%q came %s behind the one before, expected at least %s", f.Text, since, interval)
		}
	}
	b.WantHistory(b.row, "in handled go", "out delivered one", "out delivered one two.")
}

// While the last edit waits for its time, the turn is over and the answer safe: what
// comes behind it in its conversation stays there, and it outlives adapter and host.
func TestDraftRests(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	clock := hosttest.HeldClock()
	setup := []func(*hosttest.Setup){hosttest.WithAgents(map[string]hub.Agent{"s": s}), func(s *hosttest.Setup) { s.Steady = clock }}
	h := hosttest.Start(t, setup...)
	row := h.Channel("s", hosttest.WithAgent("s"), hosttest.WithQueue, func(c *ledger.Channel) { c.Profile.EditIntervalMS = 3000 })
	const caps, ahead = "update_message ack", `"profile":{"in_flight":16}`
	c := h.Attach11(t, row, caps, ahead)
	answer := func(question, begins, whole string) { // which rests then
		t.Helper()
		c.Send(hosttest.Say("c", question))
		s.show(t, begins)
		f := c.NextSent("send")
		if f.Text != begins {
			t.Fatalf("read %+v, want %q", f, begins)
		}
		c.OK(f.MessageID, `"preview_handle":"h"`)
		await.Until(t, "the beginning is delivered", func() bool { return h.Last(row, ledger.Out).State == ledger.Delivered })
		s.say(t, message.Text(whole))
		s.over(t)
		await.Until(t, "the turn is over", func() bool { e := h.Last(row, ledger.In); return e.Text == question && e.State == ledger.Handled })
		c.Quiet()
	}
	ends := func(whole string) {
		t.Helper()
		f := c.NextSent("update_message")
		if f.Text != whole || f.PreviewHandle != "h" || f.MessageID != h.Last(row, ledger.Out).ID.String() {
			t.Errorf("read %+v, want %q", f, whole)
		}
		c.OK(f.MessageID)
		await.Until(t, "the answer is delivered", func() bool { return h.Last(row, ledger.Out).State == ledger.Delivered })
	}

	answer("first", "one", "one two.")
	h.MustSend(row, "c", "behind")
	c.Send(hosttest.Say("elsewhere", "second"))
	s.show(t, "three") // nothing that rests keeps others from their drafts
	f := c.NextSent("send")
	if f.Text != "three" {
		t.Errorf("read %+v", f)
	}
	c.OK(f.MessageID)
	s.say(t, message.Text("three four."))
	s.over(t)
	f = c.NextSent("send")
	c.OK(f.MessageID)
	clock.Advance(3*time.Second - 1)
	c.Quiet()
	clock.Advance(1)
	last := c.NextSent("update_message")
	if last.Text != "one two." {
		t.Errorf("read %+v", last)
	}
	c.Quiet()
	c.OK(last.MessageID)
	if f = c.NextSent("send"); f.Text != "behind" {
		t.Errorf("read %+v", f)
	}
	c.OK(f.MessageID)
	await.Until(t, "all is delivered", func() bool {
		return !slices.ContainsFunc(h.History(row), func(e ledger.Entry) bool { return e.Direction == ledger.Out && e.State != ledger.Delivered })
	})

	answer("third", "five", "five six.") // its adapter goes
	c.Vanish(h, row)
	c = h.Attach11(t, row, caps, ahead)
	c.Quiet()
	clock.Advance(3 * time.Second)
	ends("five six.")

	answer("again", "a", "a b.") // its adapter goes, and something waits behind it
	h.MustSend(row, "c", "waits behind")
	c.Vanish(h, row)
	h.MustSend(row, "c", "came meanwhile")
	c = h.Attach11(t, row, caps, ahead)
	c.Quiet()
	clock.Advance(3 * time.Second)
	if f = c.NextSent("update_message"); f.Text != "a b." {
		t.Errorf("read %+v", f)
	}
	c.OK(f.MessageID)
	for _, text := range []string{"waits behind", "came meanwhile"} {
		if f = c.NextSent("send"); f.Text != text {
			t.Errorf("read %+v, want %q", f, text)
		}
		c.OK(f.MessageID)
	}
	await.Until(t, "all that waited is delivered", func() bool { return h.Last(row, ledger.Out).State == ledger.Delivered })

	answer("fourth", "seven", "seven eight.") // its host is killed
	h = h.Killed(setup...)
	c = h.Attach11(t, row, caps, ahead)
	ends("seven eight.")

	answer("fifth", "nine", "nine ten.") // its host stops
	h = h.Again(setup...)
	c = h.Attach11(t, row, caps, ahead)
	ends("nine ten.")
	c.Quiet()
}
