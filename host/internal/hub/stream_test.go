package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// streaming is an agent that the test makes speak.
type streaming struct {
	do chan func(context.Context, hub.Reply) error
}

func (s streaming) Handle(ctx context.Context, _ hub.Turn, r hub.Reply) error {
	for {
		select {
		case f := <-s.do:
			if f == nil {
				return nil
			}
			if err := f(ctx, r); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// does lets the turn that is under way do this; nil = end.
func (s streaming) does(t *testing.T, f func(context.Context, hub.Reply) error) {
	t.Helper()
	await.Give(t, "a turn is under way", s.do, f)
}

func (s streaming) over(t *testing.T) {
	t.Helper()
	s.does(t, nil)
}

func (s streaming) show(t *testing.T, text string) {
	t.Helper()
	s.does(t, func(_ context.Context, r hub.Reply) error { r.Stream(text); return nil })
}

func (s streaming) say(t *testing.T, m message.Message) {
	t.Helper()
	s.does(t, func(ctx context.Context, r hub.Reply) error { _, err := r.Send(ctx, m); return err })
}

func TestStream(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]string{"text": "stream", "parts": "stream parts"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := streaming{make(chan func(context.Context, hub.Reply) error)}
			h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"s": s}))
			row := h.Channel("s", hosttest.WithAgent("s"))
			c := h.Attach11(t, row, caps)
			want := func(f hosttest.Sent, text string) {
				t.Helper()
				parts := "[]"
				if name == "parts" {
					parts = `[{"type":"text","text":` + hosttest.Quote(text) + `,"id":"p1"}]`
				}
				if f.Text != text || string(f.Parts) != parts {
					t.Errorf("read %+v with parts %s, want %q", f, f.Parts, text)
				}
			}
			c.Send(hosttest.Say("c", "go"))
			s.show(t, "one")
			first := c.NextSent("stream")
			want(first, "one")
			if e := h.Last(row, ledger.Out); e.Status != ledger.StatusStreaming || e.State != ledger.Sent || e.Text != "" {
				t.Errorf("kept as %+v", e.Row)
			}
			s.show(t, "one two")
			want(c.NextSent("stream"), "one two")
			s.say(t, message.Text("one two three"))
			s.over(t)
			end := c.NextSent("stream_end")
			want(end, "one two three")
			if end.MessageID != first.MessageID {
				t.Errorf("ended %s, began %s", end.MessageID, first.MessageID)
			}
			h.WantHistory(row, "in handled go", "out sent one two three")
			if e := h.Last(row, ledger.Out); e.Status != ledger.StatusCompleted || e.ReplyTo == 0 {
				t.Errorf("kept as %+v", e.Row)
			}

			// The agent fails: what it said stands, marked as broken.
			c.Send(hosttest.Say("c", "fail"))
			s.show(t, "half an ans")
			c.NextSent("stream")
			s.does(t, func(context.Context, hub.Reply) error { return errors.New("agent broke") })
			broken := c.NextSent("stream_end")
			want(broken, "half an ans")
			for _, e := range h.History(row) {
				if (e.ID.String() == broken.MessageID) != (e.Status == ledger.StatusError) {
					t.Errorf("kept as %+v", e.Row)
				}
			}
			c.MustNext() // the host's apology
			await.Until(t, "the question fails", func() bool { return h.Last(row, ledger.In).State == ledger.Failed })

			// The user stops it: nothing is broken.
			c.Send(hosttest.Say("c", "stop"))
			s.show(t, "half")
			c.NextSent("stream")
			c.Send(hosttest.Say("c", "/stop"))
			frames := []hosttest.Sent{{}, {}}
			for i := range frames {
				c.Read(&frames[i])
			}
			if frames[0].Text == "half" {
				frames[0], frames[1] = frames[1], frames[0]
			}
			if frames[0].Text != "Stopped." || frames[1].Type != "stream_end" || frames[1].Text != "half" {
				t.Errorf("read %+v", frames)
			}
		})
	}
}

// An answer with more than text ends its stream first.
func TestStreamEndsWithButtons(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"s": s}))
	row := h.Channel("s", hosttest.WithAgent("s"))
	c := h.Attach11(t, row, "stream buttons")
	c.Send(hosttest.Say("c", "go"))
	s.show(t, "Pick")
	c.NextSent("stream")
	s.say(t, message.New(message.NewText("Pick one"), message.NewButtons("Which?", [][]wire.Button{{{Text: "a", Value: "b"}}})))
	s.over(t)
	if end, rest := c.NextSent("stream_end"), c.NextSent("send_buttons"); end.Text != "Pick one" || rest.Text != "Which?" || rest.MessageID != end.MessageID+"/2" {
		t.Errorf("read %+v and %+v", end, rest)
	}
	c.Send(hosttest.Say("c", "a"))
	await.Until(t, "the choice is taken", func() bool { return strings.Contains(string(h.Last(row, ledger.In).Meta), `"action":"b"`) })
	s.over(t)
}

// An adapter that goes while an answer is streamed gets it whole when it is
// back, or it fails; who shows no streams gets the answer alone.
func TestStreamInterrupted(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"s": s}))
	for name, queue := range map[string]bool{"queue": true, "none": false} {
		row := h.Channel(name, hosttest.WithAgent("s"), func(c *ledger.Channel) { c.Queue = queue })
		c := h.Attach11(t, row, "stream")
		c.Send(hosttest.Say("c", "go"))
		s.show(t, "one")
		id := c.NextSent("stream").MessageID
		_ = c.WS.Close()
		await.Until(t, "the adapter goes", func() bool { return !h.Attached(row) })
		s.show(t, "one two")
		s.say(t, message.Text("one two three"))
		s.over(t)
		if !queue {
			h.WantHistory(row, "in handled go", "out failed/adapter_not_attached one two three")
			continue
		}
		h.WantHistory(row, "in handled go", "out queued one two three")
		c = h.Attach11(t, row, "stream")
		if f := c.NextSent("stream_end"); f.Text != "one two three" || f.MessageID != id {
			t.Errorf("read %+v", f)
		}
		old := h.Attach(t, row)
		old.Send(hosttest.Say("c", "again"))
		s.show(t, "four")
		s.say(t, message.Text("four five"))
		s.over(t)
		old.Want(hosttest.Answer("c", "four five"))
	}
}

// A host that is stopped in the middle of an answer does not take it for one:
// the question is handed over again.
func TestStreamAcrossRestart(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"s": s}))
	row := h.Channel("s", hosttest.WithAgent("s"))
	c := h.Attach11(t, row, "stream")
	c.Send(hosttest.Say("c", "go"))
	s.show(t, "one")
	c.NextSent("stream")
	h = h.Again(hosttest.WithAgents(map[string]hub.Agent{"s": s}))
	h.WantHistory(row, "in received go", "out sent ")
	if e := h.Last(row, ledger.Out); e.Status != ledger.StatusError {
		t.Errorf("kept as %+v", e.Row)
	}
	c = h.Attach11(t, row, "stream")
	s.say(t, message.Text("the answer"))
	s.over(t)
	if f := c.NextSent("send"); f.Text != "the answer" {
		t.Errorf("read %+v", f)
	}
	h.WantHistory(row, "in handled go", "out sent ", "out sent the answer")
}
