package bridge_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// steadyClock is the machine's, until the test takes it in hand.
type steadyClock struct {
	mu   sync.Mutex
	hand bool
	now  time.Time
	due  []*due
}

type due struct {
	at time.Time
	f  func()
}

func (c *steadyClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hand {
		return time.Now()
	}
	return c.now
}

func (c *steadyClock) After(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hand {
		return time.AfterFunc(d, f).Stop
	}
	one := &due{c.now.Add(d), f}
	c.due = append(c.due, one)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		was := one.f != nil
		one.f = nil
		return was
	}
}

// advance lets time pass and runs what is due.
func (c *steadyClock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var run []func()
	kept := c.due[:0]
	for _, one := range c.due {
		switch {
		case one.f == nil:
		case one.at.After(c.now):
			kept = append(kept, one)
		default:
			run = append(run, one.f)
			one.f = nil
		}
	}
	c.due = kept
	c.mu.Unlock()
	for _, f := range run {
		f()
	}
}

// A far end that has no streams, but edits, gets a message, then throttled edits
// of it, and one that makes it whole.
func TestDraft(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	clock := &steadyClock{hand: true, now: time.Now()}
	h := start(t, agents(map[string]hub.Agent{"s": s}), func(s *setup) { s.steady = clock })
	row := h.channel("s", withAgent("s"), func(c *ledger.Channel) { c.Profile.EditIntervalMS = 3000 })
	c := h.attach11(t, row, "update_message ack buttons")
	acks := func(f sent, handle string) {
		t.Helper()
		c.send(`{"type":"message_ack","message_id":` + quote(f.MessageID) + `,"ok":true,"preview_handle":` + quote(handle) + `}`)
	}
	quiet := func(when string) {
		t.Helper()
		c.send(`{"type":"ping"}`)
		if got := c.mustNext(); got != `{"type":"pong"}` {
			t.Errorf("%s: read %s, want nothing", when, got)
		}
	}
	shown := make(chan struct{})
	show := func(text string) { // and waits until the hub has it
		s.do <- func(_ context.Context, r hub.Reply) error { r.Stream(text); shown <- struct{}{}; return nil }
		<-shown
	}
	c.send(say("c", "go"))
	show("one")
	first := c.nextSent("send")
	if first.Text != "one" || first.MessageID == "" {
		t.Fatalf("read %+v", first)
	}
	show("one two")
	clock.advance(10 * time.Second)
	quiet("before its handle is known")
	acks(first, "h1")
	eventually(t, "the beginning is delivered", func() bool { return h.last(row, ledger.Out).State == ledger.Delivered })
	clock.advance(3 * time.Second)
	if f := c.nextSent("update_message"); f.Text != "one two" || f.PreviewHandle != "h1" || f.MessageID != "" {
		t.Errorf("read %+v", f)
	}
	show("one two three")
	clock.advance(2 * time.Second)
	show("one two three four")
	quiet("within the interval")
	clock.advance(time.Second)
	if f := c.nextSent("update_message"); f.Text != "one two three four" {
		t.Errorf("read %+v", f)
	}
	show("one two three four f")
	s.say(message.Text("one two three four five."))
	s.do <- nil
	last := c.nextSent("update_message")
	if last.Text != "one two three four five." || last.PreviewHandle != "h1" || last.MessageID == "" {
		t.Errorf("read %+v", last)
	}
	acks(last, "")
	clock.advance(time.Minute)
	quiet("after the end")
	h.wantHistory(row, "in handled go", "out delivered one", "out delivered one two three four five.")
	if e := h.history(row); e[1].ReplyTo != 0 || e[2].ReplyTo != e[0].ID {
		t.Errorf("the question is answered by %s and %s", e[1].ReplyTo, e[2].ReplyTo)
	}

	// Buttons don't go into an edit: they come behind it.
	c.send(say("c", "buttons"))
	show("Pick")
	acks(c.nextSent("send"), "h2")
	s.say(message.New(message.NewText("Pick one"), message.NewButtons("Which?", [][]wire.Button{{{Text: "a", Value: "b"}}})))
	s.do <- nil
	f := c.nextSent("update_message")
	if f.Text != "Pick one" || f.PreviewHandle != "h2" {
		t.Errorf("read %+v", f)
	}
	acks(f, "")
	f = c.nextSent("send_buttons")
	acks(f, "")

	// The agent fails: what it said stands, marked as broken, and the user is told.
	c.send(say("c", "fail"))
	show("half")
	acks(c.nextSent("send"), "h3")
	show("half an ans")
	s.do <- func(context.Context, hub.Reply) error { return errors.New("agent broke") }
	f = c.nextSent("update_message")
	if f.Text != "half an ans" || f.PreviewHandle != "h3" {
		t.Errorf("read %+v", f)
	}
	acks(f, "")
	f = c.nextSent("send")
	acks(f, "")
	if id, _ := ledger.ParseMessageID(last.MessageID); f.Text != "Sorry, no answer could be made. Please try again." || id == 0 {
		t.Errorf("read %+v", f)
	}
}

// A far end that does not say how it calls the beginning gets the answer whole, as
// does one that shows neither streams nor edits.
func TestDraftWithoutHandle(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	clock := &steadyClock{hand: true, now: time.Now()}
	h := start(t, agents(map[string]hub.Agent{"s": s}), func(s *setup) { s.steady = clock })
	row := h.channel("s", withAgent("s"))
	c := h.attach11(t, row, "update_message ack")
	c.send(say("c", "go"))
	s.show("one")
	f := c.nextSent("send")
	c.send(`{"type":"message_ack","message_id":` + quote(f.MessageID) + `,"ok":true}`)
	s.show("one two")
	clock.advance(time.Minute)
	s.say(message.Text("one two three"))
	s.do <- nil
	if f = c.nextSent("send"); f.Text != "one two three" {
		t.Errorf("read %+v", f)
	}
	for _, caps := range []string{"ack", "update_message"} {
		row := h.channel(caps, withAgent("s"))
		c := h.attach11(t, row, caps)
		c.send(say("c", "go"))
		s.show("one")
		clock.advance(time.Minute)
		s.say(message.Text("one two"))
		s.do <- nil
		if f := c.nextSent("send"); f.Text != "one two" {
			t.Errorf("with %s: read %+v", caps, f)
		}
	}
}
