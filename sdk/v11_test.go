package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

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
		"ok":          {Receipt{Handle: "tg-9"}, nil, "ok tg-9"},
		"long handle": {Receipt{Handle: strings.Repeat("x", wire.MaxField+1)}, nil, "ok"},
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

// How long the platform wants to be left alone, the host is told at once: it waits. That
// it did not know an acknowledgement concerns nobody.
func TestRetryNamesItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		want  int64
	}{
		"none": {0, 0}, "negative": {-time.Second, 0}, "a part of a millisecond": {time.Microsecond, 1}, "some": {90 * time.Second, 90_000}, "too long": {48 * time.Hour, 3_600_000},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost11(t)
			r := run(t, h, &receipts{do: func(context.Context, Target, string) (Receipt, error) {
				return Receipt{}, Retry(c.after, errors.New("flood"))
			}}, Options{})
			p := receive(t, "connection", h.peers)
			p.write(t, `{"type":"error","code":"unknown_message","message":"message_id: …","ref":"m0"}`, send11("m1", "x"))
			in, bad := wire.DecodeInboundAs([]byte(receive(t, "acknowledgement", p.frames)), wire.Dialect{Protocol: wire.V11, Caps: wire.CapsV11})
			if bad != nil || in.MessageID != "m1" || !in.Later.Retryable || in.Later.RetryAfterMS != c.want {
				t.Errorf("acknowledged with %+v, %v, want %d ms", in.Later, bad, c.want)
			}
			if text := r.logs.String(); strings.Contains(text, "host refused a frame") {
				t.Errorf("log: %s", text)
			}
		})
	}
}

// What the host sends again is not shown again, on the same connection or the next.
func TestRepeatedMessageIsShownOnce(t *testing.T) {
	h := newHost11(t)
	shown := make(chan string, 100)
	release := make(chan error)
	run(t, h, &receipts{do: func(_ context.Context, to Target, text string) (Receipt, error) {
		shown <- text
		if to.ConversationID == "d" {
			return Receipt{}, nil
		}
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
	p.write(t, send11("m1", "one"), send11("m2", "two"), send("d", "all is read"))
	receive(t, "Send", shown)
	release <- nil
	p.wantAck(t, "m2", "ok h-two")
	p.wantAck(t, "m1", "ok h-one")

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

// streamer notes what it shows, of conversation c not before something of d.
type streamer struct {
	receipts
	calls chan string
}

func (a *streamer) Stream(_ context.Context, _ Target, d Draft) (Receipt, error) {
	a.calls <- fmt.Sprint(d.ID, " ", d.Text, " ", len(d.Parts), " ", d.Final)
	return Receipt{}, nil
}

// Drafts that wait are skipped, the end never is, and it alone is acknowledged.
func TestStream(t *testing.T) {
	h := newHost11(t)
	allRead := make(chan token)
	a := &streamer{calls: make(chan string, 100)}
	a.do = func(_ context.Context, to Target, text string) (Receipt, error) {
		if to.ConversationID == "d" {
			close(allRead)
			return Receipt{}, nil
		}
		<-allRead
		a.calls <- text
		return Receipt{}, nil
	}
	run(t, h, a, Options{})
	p := receive(t, "connection", h.peers)
	frames := []string{send11("m0", "first")}
	for i := range 2 * maxPending {
		frames = append(frames, frame11("m1", wire.Frame{Type: wire.TypeStream, Text: fmt.Sprint("so far ", i), Parts: json.RawMessage(`[]`)}))
	}
	frames = append(frames, frame11("m1", wire.Frame{Type: wire.TypeStreamEnd, Text: "all", Parts: json.RawMessage(`[{"type":"text","text":"all"}]`)}))
	p.write(t, append(frames, send11("m2", "last"), send("d", "all is read"))...)
	for _, want := range []string{"first", fmt.Sprintf("m1 so far %d 0 false", 2*maxPending-1), "m1 all 1 true", "last"} {
		if got := receive(t, want, a.calls); got != want {
			t.Errorf("call = %q, want %q", got, want)
		}
	}
	for _, id := range []string{"m0", "m1", "m2"} {
		p.wantAck(t, id, "ok")
	}
}

// A message that the platform takes later comes before all behind it: what the host had
// sent ahead is dropped, also what still comes, and taken when the host sends it again.
func TestRefusedTakesBackThoseBehind(t *testing.T) {
	h := newHost11(t)
	h.ahead = 16
	shown, refuse := make(chan string, 10), make(chan struct{})
	a := &receipts{do: func(_ context.Context, _ Target, text string) (Receipt, error) {
		select {
		case <-refuse:
			shown <- text
			return Receipt{}, nil
		default:
			defer close(refuse)
			return Receipt{}, Retry(0, errors.New("flood"))
		}
	}}
	run(t, h, a, Options{})
	p := receive(t, "connection", h.peers)
	if got := p.register.Register.Profile.InFlight; got != usualInFlight {
		t.Errorf("in_flight %d, want %d", got, usualInFlight)
	}
	other := string((&wire.Frame{Type: wire.TypeSend, MessageID: "o1", Text: "other"}).Append(nil, wire.Routing{ConversationID: "d"}))
	p.write(t, send11("m1", "one"), send11("m2", "two"))
	p.wantAck(t, "m1", "retryable try again: flood")
	p.write(t, send11("m3", "three"), other)
	p.wantAck(t, "o1", "ok")
	again := frame11("m1", wire.Frame{Type: wire.TypeSend, Text: "one", Resumed: true})
	p.write(t, again, send11("m2", "two"), send11("m3", "three"))
	for _, id := range []string{"m1", "m2", "m3"} {
		p.wantAck(t, id, "ok")
	}
	for _, want := range []string{"other", "one", "two", "three"} {
		if got := receive(t, "message", shown); got != want {
			t.Errorf("shown %q, want %q", got, want)
		}
	}
	p.quiet(t)
}
