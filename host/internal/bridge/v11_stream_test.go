package bridge_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
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

func (s streaming) show(text string) {
	s.do <- func(_ context.Context, r hub.Reply) error { r.Stream(text); return nil }
}

func (s streaming) say(m message.Message) {
	s.do <- func(ctx context.Context, r hub.Reply) error { _, err := r.Send(ctx, m); return err }
}

func TestStream(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]string{"text": "stream", "parts": "stream parts"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := streaming{make(chan func(context.Context, hub.Reply) error)}
			h := start(t, agents(map[string]hub.Agent{"s": s}))
			row := h.channel("s", withAgent("s"))
			c := h.attach11(t, row, caps)
			want := func(f sent, text string) {
				t.Helper()
				parts := "[]"
				if name == "parts" {
					parts = `[{"type":"text","text":` + quote(text) + `,"id":"p1"}]`
				}
				if f.Text != text || string(f.Parts) != parts {
					t.Errorf("read %+v with parts %s, want %q", f, f.Parts, text)
				}
			}
			c.send(say("c", "go"))
			s.show("one")
			first := c.nextSent("stream")
			want(first, "one")
			if e := h.last(row, ledger.Out); e.Status != ledger.StatusStreaming || e.State != ledger.Sent || e.Text != "" {
				t.Errorf("kept as %+v", e.Row)
			}
			s.show("one two")
			want(c.nextSent("stream"), "one two")
			s.say(message.Text("one two three"))
			s.do <- nil
			end := c.nextSent("stream_end")
			want(end, "one two three")
			if end.MessageID != first.MessageID {
				t.Errorf("ended %s, began %s", end.MessageID, first.MessageID)
			}
			h.wantHistory(row, "in handled go", "out sent one two three")
			if e := h.last(row, ledger.Out); e.Status != ledger.StatusCompleted || e.ReplyTo == 0 {
				t.Errorf("kept as %+v", e.Row)
			}

			// The agent fails: what it said stands, marked as broken.
			c.send(say("c", "fail"))
			s.show("half an ans")
			c.nextSent("stream")
			s.do <- func(context.Context, hub.Reply) error { return errors.New("agent broke") }
			broken := c.nextSent("stream_end")
			want(broken, "half an ans")
			for _, e := range h.history(row) {
				if (e.ID.String() == broken.MessageID) != (e.Status == ledger.StatusError) {
					t.Errorf("kept as %+v", e.Row)
				}
			}
			c.mustNext() // the host's apology
			eventually(t, "the question fails", func() bool { return h.last(row, ledger.In).State == ledger.Failed })

			// The user stops it: nothing is broken.
			c.send(say("c", "stop"))
			s.show("half")
			c.nextSent("stream")
			c.send(say("c", "/stop"))
			frames := []sent{{}, {}}
			for i := range frames {
				c.read(&frames[i])
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
	h := start(t, agents(map[string]hub.Agent{"s": s}))
	row := h.channel("s", withAgent("s"))
	c := h.attach11(t, row, "stream buttons")
	c.send(say("c", "go"))
	s.show("Pick")
	c.nextSent("stream")
	s.say(message.New(message.NewText("Pick one"), message.NewButtons("Which?", [][]wire.Button{{{Text: "a", Value: "b"}}})))
	s.do <- nil
	if end, rest := c.nextSent("stream_end"), c.nextSent("send_buttons"); end.Text != "Pick one" || rest.Text != "Which?" || rest.MessageID != end.MessageID+"/2" {
		t.Errorf("read %+v and %+v", end, rest)
	}
	c.send(say("c", "a"))
	eventually(t, "the choice is taken", func() bool { return strings.Contains(string(h.last(row, ledger.In).Meta), `"action":"b"`) })
	s.do <- nil
}

// An adapter that goes while an answer is streamed gets it whole when it is
// back, or it fails; who shows no streams gets the answer alone.
func TestStreamInterrupted(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	h := start(t, agents(map[string]hub.Agent{"s": s}))
	for name, queue := range map[string]bool{"queue": true, "none": false} {
		row := h.channel(name, withAgent("s"), func(c *ledger.Channel) { c.Queue = queue })
		c := h.attach11(t, row, "stream")
		c.send(say("c", "go"))
		s.show("one")
		id := c.nextSent("stream").MessageID
		_ = c.ws.Close()
		eventually(t, "the adapter goes", func() bool { return !h.attached(row) })
		s.show("one two")
		s.say(message.Text("one two three"))
		s.do <- nil
		if !queue {
			h.wantHistory(row, "in handled go", "out failed/adapter_not_attached one two three")
			continue
		}
		h.wantHistory(row, "in handled go", "out queued one two three")
		c = h.attach11(t, row, "stream")
		if f := c.nextSent("stream_end"); f.Text != "one two three" || f.MessageID != id {
			t.Errorf("read %+v", f)
		}
		old := h.attach(t, row)
		old.send(say("c", "again"))
		s.show("four")
		s.say(message.Text("four five"))
		s.do <- nil
		old.want(answer("c", "four five"))
	}
}

// A host that is stopped in the middle of an answer does not take it for one:
// the question is handed over again.
func TestStreamAcrossRestart(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	h := start(t, agents(map[string]hub.Agent{"s": s}))
	row := h.channel("s", withAgent("s"))
	c := h.attach11(t, row, "stream")
	c.send(say("c", "go"))
	s.show("one")
	c.nextSent("stream")
	h = h.again(agents(map[string]hub.Agent{"s": s}))
	h.wantHistory(row, "in received go", "out sent ")
	if e := h.last(row, ledger.Out); e.Status != ledger.StatusError {
		t.Errorf("kept as %+v", e.Row)
	}
	c = h.attach11(t, row, "stream")
	s.say(message.Text("the answer"))
	s.do <- nil
	if f := c.nextSent("send"); f.Text != "the answer" {
		t.Errorf("read %+v", f)
	}
	h.wantHistory(row, "in handled go", "out sent ", "out sent the answer")
}
