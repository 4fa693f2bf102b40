package hub_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// A far end that has no streams, but edits, gets a message, then throttled edits
// of it, and one that makes it whole.
func TestDraft(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	clock := hosttest.HeldClock()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"s": s}), func(s *hosttest.Setup) { s.Steady = clock })
	row := h.Channel("s", hosttest.WithAgent("s"), func(c *ledger.Channel) { c.Profile.EditIntervalMS = 3000 })
	c := h.Attach11(t, row, "update_message ack buttons")
	acks := func(f hosttest.Sent, handle string) {
		t.Helper()
		c.Send(`{"type":"message_ack","message_id":` + hosttest.Quote(f.MessageID) + `,"ok":true,"preview_handle":` + hosttest.Quote(handle) + `}`)
	}
	quiet := func(when string) {
		t.Helper()
		c.Send(`{"type":"ping"}`)
		if got := c.MustNext(); got != `{"type":"pong"}` {
			t.Errorf("%s: read %s, want nothing", when, got)
		}
	}
	over := func(question string) {
		t.Helper()
		await.Until(t, "the turn is over", func() bool { e := h.Last(row, ledger.In); return e.Text == question && e.State != ledger.Received })
	}
	shown := make(chan struct{})
	show := func(text string) { // and waits until the hub has it
		s.does(t, func(_ context.Context, r hub.Reply) error { r.Stream(text); shown <- struct{}{}; return nil })
		await.Value(t, "the hub has it", shown)
	}
	c.Send(hosttest.Say("c", "go"))
	show("one")
	first := c.NextSent("send")
	if first.Text != "one" || first.MessageID == "" {
		t.Fatalf("read %+v", first)
	}
	show("one two")
	clock.Advance(10 * time.Second)
	quiet("before its handle is known")
	acks(first, "h1")
	await.Until(t, "the beginning is delivered", func() bool { return h.Last(row, ledger.Out).State == ledger.Delivered })
	clock.Advance(3 * time.Second)
	if f := c.NextSent("update_message"); f.Text != "one two" || f.PreviewHandle != "h1" || f.MessageID != "" {
		t.Errorf("read %+v", f)
	}
	show("one two three")
	clock.Advance(2 * time.Second)
	show("one two three four")
	quiet("within the interval")
	clock.Advance(time.Second)
	if f := c.NextSent("update_message"); f.Text != "one two three four" {
		t.Errorf("read %+v", f)
	}
	show("one two three four f")
	s.say(t, message.Text("one two three four five."))
	s.over(t)
	over("go")
	clock.Advance(3*time.Second - 1)
	quiet("before the last edit may be written")
	clock.Advance(1)
	last := c.NextSent("update_message")
	if last.Text != "one two three four five." || last.PreviewHandle != "h1" || last.MessageID == "" {
		t.Errorf("read %+v", last)
	}
	acks(last, "")
	clock.Advance(time.Minute)
	quiet("after the end")
	h.WantHistory(row, "in handled go", "out delivered one", "out delivered one two three four five.")
	if e := h.History(row); e[1].ReplyTo != 0 || e[2].ReplyTo != e[0].ID {
		t.Errorf("the question is answered by %s and %s", e[1].ReplyTo, e[2].ReplyTo)
	}

	// Buttons don't go into an edit: they come behind it.
	c.Send(hosttest.Say("c", "buttons"))
	show("Pick")
	acks(c.NextSent("send"), "h2")
	s.say(t, message.New(message.NewText("Pick one"), message.NewButtons("Which?", [][]wire.Button{{{Text: "a", Value: "b"}}})))
	s.over(t)
	over("buttons")
	clock.Advance(3 * time.Second)
	f := c.NextSent("update_message")
	if f.Text != "Pick one" || f.PreviewHandle != "h2" {
		t.Errorf("read %+v", f)
	}
	acks(f, "")
	f = c.NextSent("send_buttons")
	acks(f, "")

	// The agent fails: what it said stands, marked as broken, and the user is told.
	c.Send(hosttest.Say("c", "fail"))
	show("half")
	acks(c.NextSent("send"), "h3")
	show("half an ans")
	s.does(t, func(context.Context, hub.Reply) error { return errors.New("agent broke") })
	over("fail")
	clock.Advance(3 * time.Second)
	f = c.NextSent("update_message")
	if f.Text != "half an ans" || f.PreviewHandle != "h3" {
		t.Errorf("read %+v", f)
	}
	acks(f, "")
	f = c.NextSent("send")
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
	clock := hosttest.HeldClock()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"s": s}), func(s *hosttest.Setup) { s.Steady = clock })
	row := h.Channel("s", hosttest.WithAgent("s"))
	c := h.Attach11(t, row, "update_message ack")
	c.Send(hosttest.Say("c", "go"))
	s.show(t, "one")
	f := c.NextSent("send")
	c.Send(`{"type":"message_ack","message_id":` + hosttest.Quote(f.MessageID) + `,"ok":true}`)
	s.show(t, "one two")
	clock.Advance(time.Minute)
	s.say(t, message.Text("one two three"))
	s.over(t)
	if f = c.NextSent("send"); f.Text != "one two three" {
		t.Errorf("read %+v", f)
	}
	for _, caps := range []string{"ack", "update_message"} {
		row := h.Channel(caps, hosttest.WithAgent("s"))
		c := h.Attach11(t, row, caps)
		c.Send(hosttest.Say("c", "go"))
		s.show(t, "one")
		clock.Advance(time.Minute)
		s.say(t, message.Text("one two"))
		s.over(t)
		if f := c.NextSent("send"); f.Text != "one two" {
			t.Errorf("with %s: read %+v", caps, f)
		}
	}
}
