package hub_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// drafted is a channel whose answers are shown by edits, at most one in 3 s of the clock.
type drafted struct {
	*hosttest.Host
	t     *testing.T
	s     streaming
	clock *hosttest.SteadyClock
	row   ledger.Channel
	c     *hosttest.Client
}

func newDrafted(t *testing.T) *drafted {
	t.Helper()
	d := &drafted{t: t, s: streaming{make(chan func(context.Context, hub.Reply) error)}, clock: hosttest.HeldClock()}
	d.Host = hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"s": d.s}), func(s *hosttest.Setup) { s.Steady = d.clock })
	d.row = d.Channel("s", hosttest.WithAgent("s"), hosttest.WithQueue, func(c *ledger.Channel) { c.Profile.EditIntervalMS = 3000 })
	d.attach()
	return d
}

func (d *drafted) attach() {
	d.c = d.Attach11(d.t, d.row, "update_message ack", `"profile":{"in_flight":16}`)
}

// begins asks, shows the beginning of an answer, and takes it with what the
// acknowledgement says.
func (d *drafted) begins(question, text string, ack ...string) {
	d.t.Helper()
	d.c.Send(hosttest.Say("c", question))
	d.show(text)
	d.takes("send", text, ack...)
	await.Until(d.t, "the beginning is delivered", func() bool { return d.Last(d.row, ledger.Out).State == ledger.Delivered })
}

// takes reads the next frame, which must have this type and text, and takes it.
func (d *drafted) takes(kind, text string, ack ...string) string {
	d.t.Helper()
	f := d.c.NextSent(kind)
	if f.Text != text {
		d.t.Fatalf("read %+v, want %q", f, text)
	}
	if f.MessageID != "" {
		d.c.OK(f.MessageID, ack...)
	}
	return f.MessageID
}

// says ends the answer; the turn is over then.
func (d *drafted) says(question, text string) {
	d.t.Helper()
	d.s.say(d.t, message.Text(text))
	d.s.over(d.t)
	await.Until(d.t, "the turn is over", func() bool { e := d.Last(d.row, ledger.In); return e.Text == question && e.State == ledger.Handled })
}

// show streams a text, and waits until the hub has it.
func (d *drafted) show(text string) {
	d.t.Helper()
	shown := make(chan struct{})
	d.s.does(d.t, func(_ context.Context, r hub.Reply) error { r.Stream(text); close(shown); return nil })
	await.Value(d.t, "the hub has the text", shown)
}

func (d *drafted) refuses(id string) {
	d.c.Send(`{"type":"message_ack","message_id":` + hosttest.Quote(id) + `,"ok":false,"error":"no such message"}`)
}

const named = `"preview_handle":"h"`

// A last edit that is refused for good is sent as a new message: whole, once, and before
// what is behind it.
func TestDraftEditRefused(t *testing.T) {
	t.Parallel()
	d := newDrafted(t)
	d.begins("go", "half", named)
	d.says("go", "half and half.")
	d.MustSend(d.row, "c", "behind")
	d.clock.Advance(3 * time.Second)
	f := d.c.NextSent("update_message")
	d.refuses(f.MessageID)
	d.MustSend(d.row, "c", "last")
	if again := d.c.NextSent("send"); again.MessageID != f.MessageID || again.Text != "half and half." {
		t.Errorf("read %+v, want the answer", again)
	}
	d.c.Quiet()
	d.c.Vanish(d.Host, d.row) // before it is taken: it comes again as it was sent last
	d.attach()
	if id := d.takes("send", "half and half.", named); id != f.MessageID {
		t.Errorf("sent as %s, want %s", id, f.MessageID)
	}
	for _, text := range []string{"behind", "last"} {
		d.takes("send", text)
	}
	await.Until(t, "all is delivered", func() bool { return d.Last(d.row, ledger.Out).State == ledger.Delivered })
	d.WantHistory(d.row, "in handled go", "out delivered half", "out delivered half and half.", "out delivered behind", "out delivered last")
	id, err := ledger.ParseMessageID(f.MessageID)
	if err != nil {
		t.Fatal(err)
	}
	life, err := d.Store.Life(t.Context(), id)
	if err != nil || !slices.ContainsFunc(life, func(l ledger.Life) bool { return l.What == "edit refused" && l.Detail == "no such message" }) {
		t.Errorf("what happened to it: %+v, %v", life, err)
	}
	d.begins("again", "one", named) // edits are tried again
	d.says("again", "one two.")
	d.clock.Advance(3 * time.Second)
	d.takes("update_message", "one two.")
}

// An adapter that does not say what it calls a draft gets answers whole from then on,
// until it says it of a message.
func TestDraftHandleNeverComes(t *testing.T) {
	t.Parallel()
	d := newDrafted(t)
	d.begins("first", "one")
	d.says("first", "one two.")
	d.takes("send", "one two.")
	d.c.Send(hosttest.Say("c", "second"))
	d.show("three")
	d.clock.Advance(time.Minute)
	d.says("second", "three four.")
	d.takes("send", "three four.", named)
	await.Until(t, "it is delivered", func() bool { return d.Last(d.row, ledger.Out).State == ledger.Delivered })
	d.begins("third", "five", named)
	d.says("third", "five six.")
	d.clock.Advance(3 * time.Second)
	d.takes("update_message", "five six.")
}

// An edit that changes nothing is left out; the last one only if that is sure.
func TestDraftSameText(t *testing.T) {
	t.Parallel()
	d := newDrafted(t)
	d.begins("go", "one", named)
	d.show("one")
	d.clock.Advance(time.Minute)
	d.c.Quiet()
	d.show("one two")
	d.clock.Advance(3 * time.Second)
	d.takes("update_message", "one two")
	d.show("one two")
	d.clock.Advance(time.Minute)
	d.c.Quiet()
	d.says("go", "one two")
	d.clock.Advance(time.Minute)
	f := d.c.NextSent("update_message") // the one before may have been lost
	if f.Text != "one two" || f.MessageID == "" {
		t.Errorf("read %+v", f)
	}
	d.refuses(f.MessageID) // as a platform may that it has it already: it is not said twice
	await.Until(t, "it has failed", func() bool { return d.Last(d.row, ledger.Out).State == ledger.Failed })
	d.c.Quiet()
	d.begins("short", "yes", named)
	d.says("short", "yes")
	await.Until(t, "it is delivered", func() bool { e := d.Last(d.row, ledger.Out); return e.ReplyTo != 0 && e.State == ledger.Delivered })
	d.c.Quiet()
}

// A last edit that waits for its time is queued, and counted as that.
func TestDraftRestIsQueued(t *testing.T) {
	t.Parallel()
	d := newDrafted(t)
	want := func(when string, n int, state ledger.State) {
		t.Helper()
		await.Until(t, when, func() bool {
			got, err := d.Hub.Waiting(t.Context(), d.row.Key)
			return err == nil && got == n && d.Last(d.row, ledger.Out).State == state
		})
	}
	want0 := func() {
		t.Helper()
		f := d.c.NextSent("update_message")
		want("it is sent", 0, ledger.Sent)
		d.c.OK(f.MessageID)
		want("it is delivered", 0, ledger.Delivered)
	}
	d.begins("go", "one", named)
	d.says("go", "one two.")
	want("it rests", 1, ledger.Queued)
	d.clock.Advance(3 * time.Second)
	want0()

	d.begins("again", "a", named) // its adapter goes meanwhile
	d.says("again", "a b.")
	want("it rests", 1, ledger.Queued)
	d.c.Vanish(d.Host, d.row)
	want("it waits", 1, ledger.Queued)
	d.attach()
	d.c.Quiet()
	want("it rests with the next one", 1, ledger.Queued)
	d.clock.Advance(3 * time.Second)
	want0()
}
