package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// newHost11 is a host that grants everything of protocol 1.1, or caps.
func newHost11(t *testing.T, caps ...wire.Caps) *testHost {
	h := newHost(t)
	h.grant = wire.CapsV11
	for _, c := range caps {
		h.grant = c
	}
	return h
}

// frame11 is a content frame with an id.
func frame11(id string, f wire.Frame) string {
	f.MessageID = id
	return string(f.Append(nil, wire.Routing{ConversationID: "c"}))
}

func send11(id, text string) string { return frame11(id, wire.Frame{Type: wire.TypeSend, Text: text}) }

// next is the adapter's next frame, as a host reads it.
func (p *peer) next(t *testing.T) *wire.Inbound {
	t.Helper()
	frame := receive(t, "frame", p.frames)
	in, bad := wire.DecodeInboundAs([]byte(frame), wire.Dialect{Protocol: wire.V11, Caps: wire.CapsV11})
	if bad != nil {
		t.Fatalf("%s: %v", frame, bad)
	}
	return in
}

// wantAck reads the acknowledgement of a frame; what is its state and handle or error.
func (p *peer) wantAck(t *testing.T, id, what string) {
	t.Helper()
	in := p.next(t)
	if in.Type != wire.TypeMessageAck {
		t.Fatalf("found %+v, want an acknowledgement", in)
	}
	l, got := in.Later, ""
	switch {
	case l.OK:
		got = "ok " + l.PreviewHandle
	case l.Retryable:
		got = "retryable " + l.Error
	case l.Ambiguous:
		got = "ambiguous " + l.Error
	default:
		got = "refused " + l.Error
	}
	if in.MessageID != id || strings.TrimSpace(got) != what {
		t.Errorf("found %s: %s, want %s: %s", in.MessageID, got, id, what)
	}
}

func (p *peer) quiet(t *testing.T) {
	t.Helper()
	select {
	case f := <-p.frames:
		t.Errorf("found %s, want nothing", f)
	case <-time.After(20 * time.Millisecond):
	}
}

func (p *peer) took(t *testing.T, id string) {
	t.Helper()
	p.write(t, string(wire.MessageAck{MessageID: id, OK: true}.Append(nil)))
}

func (p *peer) refused(t *testing.T, id, why string, retryable bool) {
	t.Helper()
	p.write(t, string(wire.MessageAck{MessageID: id, Error: why, Retryable: retryable}.Append(nil)))
}

// receipts is an adapter whose Send does what the test says.
type receipts struct {
	plain
	do func(ctx context.Context, to Target, text string) (Receipt, error)
}

func (a *receipts) Send(ctx context.Context, to Target, text string) (Receipt, error) {
	return a.do(ctx, to, text)
}

func TestProtocolIsNegotiated(t *testing.T) {
	for name, c := range map[string]struct {
		grant    wire.Caps
		option   Options
		protocol string // in register
		want     dialect
	}{
		"1.1":                  {wire.CapsV11, Options{}, "1.1", dialect{wire.V11, wire.CapText | wire.CapAck}},
		"1.1 without ack":      {wire.CapsV11, Options{NoAck: true}, "1.1", dialect{wire.V11, wire.CapText}},
		"operator allows less": {wire.CapText, Options{}, "1.1", dialect{wire.V11, wire.CapText}},
		"host of 1.0":          {0, Options{}, "1.1", dialect{wire.V10, wire.CapText}},
		"forced":               {wire.CapsV11, Options{Protocol: "1.0"}, "", dialect{wire.V10, wire.CapText}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.grant = c.grant
			a, hosts := handed()
			run(t, h, a, c.option)
			p := receive(t, "connection", h.peers)
			host := receive(t, "Run", hosts)
			l, err := host.links.wait(t.Context())
			if err != nil || l.dialect != c.want || p.register.Register.Protocol != c.protocol {
				t.Errorf("asked for %q, got %+v, %v, want %+v", p.register.Register.Protocol, l.dialect, err, c.want)
			}
			delivered := make(chan error, 1)
			go func() { delivered <- host.Deliver(t.Context(), Event{ID: "tg-1", Text: "hi", Cursor: "7"}) }()
			frame := receive(t, "frame", p.frames)
			want := `{"type":"message","text":"hi","message_id":"tg-1","cursor":"7"}`
			if c.want.protocol == wire.V10 {
				want = `{"type":"message","text":"hi"}`
			}
			if frame != want {
				t.Errorf("frame = %s, want %s", frame, want)
			}
			if c.want.has(wire.CapAck) {
				p.took(t, "tg-1")
			}
			if err := receive(t, "Deliver", delivered); err != nil {
				t.Errorf("Deliver = %v", err)
			}
			p.write(t, send11("m1", "x"))
			if c.want.has(wire.CapAck) {
				p.wantAck(t, "m1", "ok")
			} else {
				p.quiet(t)
			}
		})
	}
	if err := Run(t.Context(), "test", &plain{}, Options{Protocol: "2"}); err == nil || !strings.Contains(err.Error(), `"2"`) {
		t.Errorf("protocol 2: %v", err)
	}
}

// What an adapter says is acknowledged truthfully.
func TestOutcomesAreAcknowledged(t *testing.T) {
	no := errors.New("no such chat")
	for name, c := range map[string]struct {
		receipt Receipt
		err     error
		want    string
	}{
		"ok":          {Receipt{"tg-9"}, nil, "ok tg-9"},
		"long handle": {Receipt{strings.Repeat("x", wire.MaxField+1)}, nil, "ok"},
		"retry":       {Receipt{}, Retry(time.Millisecond, no), "retryable try again in 1ms: no such chat"},
		"refused":     {Receipt{}, fmt.Errorf("post: %w", Refused(no)), "refused post: refused: no such chat"},
		"plain":       {Receipt{}, no, "ambiguous no such chat"},
		"long reason": {Receipt{}, Refused(errors.New(strings.Repeat("ä", 9000))), "refused refused: " + strings.Repeat("ä", 495)},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost11(t)
			var got Target
			run(t, h, &receipts{do: func(_ context.Context, to Target, _ string) (Receipt, error) { got = to; return c.receipt, c.err }}, Options{})
			p := receive(t, "connection", h.peers)
			p.write(t, send11("m1/2", "x"))
			p.wantAck(t, "m1/2", c.want)
			if got.MessageID != "m1/2" {
				t.Errorf("Target = %+v", got)
			}
		})
	}
	t.Run("panic", func(t *testing.T) {
		h := newHost11(t)
		run(t, h, &plain{send: func(context.Context, Target, string) error { panic("out of cheese") }}, Options{})
		p := receive(t, "connection", h.peers)
		p.write(t, send11("m1", "x"), frame11("m2", wire.Frame{Type: wire.TypeSendCard, Card: &wire.Card{Elements: []wire.Element{}}}))
		p.wantAck(t, "m1", "ambiguous adapter panicked: out of cheese")
		p.wantAck(t, "m2", "refused "+errLacking.Error())
	})
}

// A Retry is not told before its time, unless the adapter stops.
func TestRetryIsHeldBack(t *testing.T) {
	h := newHost11(t)
	called := make(chan token, 1)
	r := run(t, h, &receipts{do: func(context.Context, Target, string) (Receipt, error) {
		called <- token{}
		return Receipt{}, Retry(time.Hour, errors.New("flood"))
	}}, Options{})
	p := receive(t, "connection", h.peers)
	p.write(t, send11("m1", "x"))
	receive(t, "Send", called)
	p.quiet(t)
	r.stop()
	p.wantAck(t, "m1", "retryable try again in 1h0m0s: flood")
	if err := r.wait(t); err != nil {
		t.Errorf("Run = %v", err)
	}
}

// What the host sends again is not shown again, on the same connection or the next.
func TestRepeatedMessageIsShownOnce(t *testing.T) {
	h := newHost11(t)
	shown := make(chan string, 100)
	release := make(chan error)
	run(t, h, &receipts{do: func(_ context.Context, _ Target, text string) (Receipt, error) {
		shown <- text
		return Receipt{Handle: "h-" + text}, <-release
	}}, Options{})
	p := receive(t, "connection", h.peers)
	p.write(t, send11("m1", "one"), send11("m1", "one")) // the second while the first is under way
	receive(t, "Send", shown)
	release <- nil
	p.wantAck(t, "m1", "ok h-one")
	p.write(t, send11("m1", "one")) // after its acknowledgement
	p.wantAck(t, "m1", "ok h-one")

	// The connection is lost in the middle: the next one gets the answer.
	p.write(t, send11("m2", "two"))
	receive(t, "Send", shown)
	_ = p.conn.Close(wire.CloseDraining, "")
	p = receive(t, "new connection", h.peers)
	p.write(t, send11("m1", "one"), send11("m2", "two"))
	release <- nil
	for range 2 { // in any order: m2 was under way
		if in := p.next(t); in.Later == nil || !in.Later.OK || in.MessageID != "m1" && in.MessageID != "m2" {
			t.Errorf("found %+v", in)
		}
	}

	// Refused: an operator may want it again. Unknown: too, once the host was told.
	for _, no := range []error{Refused(errors.New("no")), errors.New("no")} {
		p.write(t, send11("m3", "three"))
		receive(t, "Send", shown)
		release <- no
		if in := p.next(t); in.MessageID != "m3" || in.Later.OK {
			t.Errorf("found %+v", in)
		}
	}
	p.write(t, send11("m3", "three"))
	receive(t, "Send", shown)
	release <- nil
	p.wantAck(t, "m3", "ok h-three")
	if len(shown) > 0 {
		t.Errorf("%q was shown again", <-shown)
	}
}

// Of what nobody knows the host is told, however often the connection is lost
// before it hears it.
func TestUnknownOutcomeIsToldOnTheNextConnection(t *testing.T) {
	l := &logs{}
	calls := 0
	s := sender{memory: newMemory(), links: newLinks(), log: l.logger(), adapter: &plain{send: func(context.Context, Target, string) error {
		calls++
		return errors.New("broken pipe")
	}}}
	j := job{Outbound: &wire.Outbound{Frame: wire.Frame{Type: wire.TypeSend, Text: "x", MessageID: "m1"}}, acked: true}
	s.serve(t.Context(), j) // nobody to tell
	s.serve(t.Context(), j)
	if said := s.memory.recall(j.Outbound); calls != 1 || said == nil || !said.Ambiguous {
		t.Errorf("called %d times, remembers %+v", calls, said)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m := newMemory()
	out := func(i int) *wire.Outbound {
		return &wire.Outbound{Frame: wire.Frame{Type: wire.TypeSend, MessageID: fmt.Sprint(i)}}
	}
	for i := range 3 * mostKnown {
		m.keep(out(i), &wire.Later{OK: true, PreviewHandle: "h"})
	}
	if len(m.known) != mostKnown || len(m.ring) != mostKnown || m.recall(out(2*mostKnown-1)) != nil || m.recall(out(2*mostKnown)) == nil || m.handle("0") != "" {
		t.Errorf("%d known, %d in the ring", len(m.known), len(m.ring))
	}
}

// Deletions and reactions have the id of another message: theirs is the
// acknowledgement, and the platform's name of the message is found.
func TestChangesOfEarlierMessages(t *testing.T) {
	h := newHost11(t)
	a := &recorder{calls: make(chan string, 100)}
	run(t, h, a, Options{})
	p := receive(t, "connection", h.peers)
	p.write(t, frame11("m1", wire.Frame{Type: wire.TypeDeleteMessage}))
	p.wantAck(t, "m1", "refused refused: "+errNoHandle.Error())
	p.write(t, frame11("m1", wire.Frame{Type: wire.TypeSendCard, Card: &wire.Card{Header: &wire.Header{Title: "T"}, Elements: []wire.Element{
		{Type: wire.ElementMarkdown}, {Type: wire.ElementSelect, Options: []wire.Option{{}}}}}}))
	receive(t, "card", a.calls)
	p.wantAck(t, "m1", "ok card-1")
	for range 2 {
		p.write(t, frame11("m1", wire.Frame{Type: wire.TypeSendReaction, Emoji: "x"}), frame11("tg-7", wire.Frame{Type: wire.TypeSendReaction, Emoji: "x", Remove: true}))
		p.wantAck(t, "m1", "ok")
		p.wantAck(t, "tg-7", "ok")
	}
	p.write(t, frame11("m1", wire.Frame{Type: wire.TypeDeleteMessage}), frame11("m1", wire.Frame{Type: wire.TypeDeleteMessage, PreviewHandle: "given"}))
	p.wantAck(t, "m1", "ok")
	p.wantAck(t, "m1", "ok")
	for _, want := range []string{"react c card-1 x false", "react c tg-7 x true", "react c card-1 x false", "react c tg-7 x true", "delete c card-1", "delete c given"} {
		if got := receive(t, want, a.calls); got != want {
			t.Errorf("call = %q, want %q", got, want)
		}
	}
}

// Drafts that wait are skipped, the end never is, and it alone is acknowledged.
func TestStream(t *testing.T) {
	h := newHost11(t)
	a := &recorder{calls: make(chan string), plain: plain{}}
	run(t, h, a, Options{})
	p := receive(t, "connection", h.peers)
	frames := []string{frame11("m0", wire.Frame{Type: wire.TypeSend, Text: "first"})}
	for i := range 3000 { // more than wait at once
		frames = append(frames, frame11("m1", wire.Frame{Type: wire.TypeStream, Text: fmt.Sprint("so far ", i), Parts: json.RawMessage(`[]`)}))
	}
	frames = append(frames, frame11("m1", wire.Frame{Type: wire.TypeStreamEnd, Text: "all", Parts: json.RawMessage(`[{"type":"text","text":"all"}]`)}))
	p.write(t, frames...)
	// Nothing is taken from the recorder until the end is in: read with it.
	p.write(t, `{"type":"pong"}`, frame11("m2", wire.Frame{Type: wire.TypeSend, Text: "last"}))
	var calls []string
	for len(calls) == 0 || calls[len(calls)-1] != "send c last" {
		calls = append(calls, receive(t, "call", a.calls))
		if len(calls) == 1 {
			time.Sleep(50 * time.Millisecond) // time to read what follows: fewer calls, never other ones
		}
	}
	if n := len(calls); n > 1000 || calls[n-2] != "stream c m1 all 1 true" || calls[n-3] != "stream c m1 so far 2999 0 false" {
		t.Errorf("%d calls, the last %q", len(calls), calls[max(0, len(calls)-4):])
	}
	for _, id := range []string{"m0", "m1", "m2"} {
		p.wantAck(t, id, "ok")
	}
}

// Deliver returns when the host has the event; what a lost connection left
// open is delivered again under the same id.
func TestDeliverWaitsForTheAcknowledgement(t *testing.T) {
	h := newHost11(t)
	h.cursor = "40"
	a, hosts := handed()
	run(t, h, a, Options{})
	p := receive(t, "connection", h.peers)
	host := receive(t, "Run", hosts)
	if got := host.Cursor(); got != "40" {
		t.Errorf("Cursor = %q", got)
	}
	deliver := func(e Event) chan error {
		c := make(chan error, 1)
		go func() { c <- host.Deliver(t.Context(), e) }()
		return c
	}
	delivered := deliver(Event{Text: "no id", Cursor: "41"})
	first := p.next(t)
	if first.MessageID == "" {
		t.Fatalf("found %+v", first)
	}
	p.refused(t, first.MessageID, "storage_unavailable: full", true)
	if again := p.next(t); again.MessageID != first.MessageID {
		t.Errorf("again as %+v", again)
	}
	_ = p.conn.Close(wire.CloseDraining, "")
	p = receive(t, "new connection", h.peers)
	again := p.next(t)
	if again.MessageID != first.MessageID || again.Text != "no id" || again.Cursor != "41" {
		t.Errorf("again as %+v", again)
	}
	if len(delivered) > 0 || host.Cursor() != "40" {
		t.Fatalf("returned %v, cursor %s, without an acknowledgement", <-delivered, host.Cursor())
	}
	p.took(t, first.MessageID)
	if err := receive(t, "Deliver", delivered); err != nil || host.Cursor() != "41" {
		t.Errorf("Deliver = %v, cursor %q", err, host.Cursor())
	}

	other := deliver(Event{Text: "another"})
	if in := p.next(t); in.MessageID == first.MessageID {
		t.Errorf("found the id of the first in %+v", in)
	} else {
		p.took(t, in.MessageID)
	}
	if err := receive(t, "Deliver", other); err != nil {
		t.Errorf("Deliver = %v", err)
	}

	for what, no := range map[string]func(id string){
		"acknowledgement": func(id string) { p.refused(t, id, "why not", false) },
		"error frame": func(id string) {
			p.write(t, string((&wire.Error{Code: wire.CodeTooLarge, Message: "why not", Ref: id}).Append(nil)))
		},
	} {
		delivered = deliver(Event{ID: "tg-1", Text: "refused"})
		no(p.next(t).MessageID)
		var rejected *RejectedError
		if err := receive(t, "Deliver", delivered); !errors.As(err, &rejected) || !strings.Contains(rejected.Reason, "why not") {
			t.Errorf("%s: Deliver = %v", what, err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	c := make(chan error, 1)
	go func() { c <- host.Deliver(ctx, Event{ID: "tg-2", Text: "given up"}) }()
	p.next(t)
	cancel()
	if err := receive(t, "Deliver", c); !errors.Is(err, context.Canceled) {
		t.Errorf("Deliver = %v", err)
	}
	p.took(t, "tg-2") // late: nobody minds
	l, err := host.links.wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) != 0 || len(l.window) != 0 {
		t.Errorf("%d still wait, window %d", len(l.waiting), len(l.window))
	}
}

// No more events are under way than the host wants.
func TestDeliverKeepsToTheWindow(t *testing.T) {
	const events = 50
	h := newHost11(t)
	h.window = 3
	a, hosts := handed()
	run(t, h, a, Options{})
	p := receive(t, "connection", h.peers)
	host := receive(t, "Run", hosts)
	var done atomic.Int32
	for i := range events {
		go func() {
			if err := host.Deliver(t.Context(), Event{ID: fmt.Sprint(i), Text: "x"}); err != nil {
				t.Errorf("Deliver: %v", err)
			}
			done.Add(1)
		}()
	}
	var open []string
	for range events {
		if len(open) == 3 {
			if len(p.frames) > 0 {
				t.Fatal("a fourth event is under way")
			}
			p.took(t, open[0])
			open = open[1:]
		}
		open = append(open, p.next(t).MessageID)
	}
	p.quiet(t)
	for _, id := range open {
		p.took(t, id)
	}
	eventually(t, "all are delivered", func() bool { return done.Load() == events })
}

func TestEveryKindOfEvent(t *testing.T) {
	all, none := newest, dialect{wire.V11, wire.CapText | wire.CapAck}
	file := []wire.Attachment{{URL: "https://x/a.png", Name: "a.png", Caption: "A"}}
	parts := []message.Part{message.NewText("P")}
	for name, c := range map[string]struct {
		event Event
		as    dialect
		want  string // the frame, or what the error has
	}{
		"parts":           {Event{Text: "t", Parts: parts}, all, `{"type":"message","text":"t","parts":[{"type":"text","text":"P"}],"message_id":"1"}`},
		"parts, no text":  {Event{Parts: parts}, all, `{"type":"message","parts":[{"type":"text","text":"P"}],"message_id":"1"}`},
		"parts as text":   {Event{Parts: parts}, none, `{"type":"message","text":"P","message_id":"1"}`},
		"attachment":      {Event{Attachments: file}, all, `{"type":"message","attachments":[{"url":"https://x/a.png","name":"a.png","caption":"A"}],"message_id":"1"}`},
		"as text":         {Event{Text: "t", Attachments: file}, none, `{"type":"message","text":"t\nA\na.png https://x/a.png","message_id":"1"}`},
		"as text in 1.0":  {Event{Attachments: file}, dialect{}, `{"type":"message","text":"A\na.png https://x/a.png"}`},
		"form":            {Event{UserID: "u", Form: &Form{"f", map[string]any{"a": "<b>", "c": []string{"d"}, "e": true}}, ReplyCtx: 1}, all, `{"type":"form_submit","user_id":"u","ui_id":"f","values":{"a":"<b>","c":["d"],"e":true},"reply_ctx":1,"message_id":"1"}`},
		"form, no grant":  {Event{Form: &Form{"f", map[string]any{}}}, none, "form_submit: " + errLacks.Error()},
		"form, nothing":   {Event{Form: &Form{}}, all, "Form"},
		"edit":            {Event{Edits: "tg-1", Text: "t"}, none, `{"type":"message_edit","text":"t","message_id":"tg-1"}`},
		"edit in 1.0":     {Event{Edits: "tg-1", Text: "t"}, dialect{}, errLacks.Error()},
		"deletion":        {Event{Deletes: "tg-1", Cursor: "9"}, all, `{"type":"message_delete","message_id":"tg-1","cursor":"9"}`},
		"reaction":        {Event{Reaction: &Reaction{"tg-1", "👍", true}}, all, `{"type":"reaction","emoji":"👍","remove":true,"message_id":"tg-1"}`},
		"reaction, empty": {Event{Reaction: &Reaction{To: "tg-1"}}, all, "Emoji"},
		"two at once":     {Event{Action: "a", Edits: "b"}, all, "at most one"},
		"long cursor":     {Event{Cursor: strings.Repeat("x", wire.MaxField+1)}, all, "Cursor"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := encode(&c.event, "1", c.as)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %s", err, c.want)
				}
				return
			}
			if string(got) != c.want {
				t.Errorf("encode = %s\nwant %s", got, c.want)
			}
			if c.as.protocol == wire.V11 {
				if _, bad := wire.DecodeInboundAs(got, wire.Dialect{Protocol: wire.V11, Caps: c.as.caps}); bad != nil {
					t.Errorf("the host reads %v", bad)
				}
			}
		})
	}
}
