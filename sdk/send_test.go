package sdk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// recorder implements everything and notes each call.
type recorder struct {
	plain
	calls chan string
}

func (a *recorder) Send(_ context.Context, to Target, text string) (Receipt, error) {
	a.calls <- fmt.Sprintf("send %s %s", to.ConversationID, text)
	return Receipt{}, nil
}

func (a *recorder) SendCard(_ context.Context, to Target, card *wire.Card) (Receipt, error) {
	a.calls <- fmt.Sprintf("card %s %s %s %s", to.ConversationID, card.Header.Title, card.Elements[0].Content, card.Elements[1].Options[0].Value)
	return Receipt{Handle: "card-1"}, nil
}

func (a *recorder) SendButtons(_ context.Context, to Target, text string, rows [][]wire.Button) (Receipt, error) {
	a.calls <- fmt.Sprintf("buttons %s %s %s", to.ConversationID, text, rows[0][1].Value)
	return Receipt{}, nil
}

func (a *recorder) SendImage(_ context.Context, to Target, i wire.Image) (Receipt, error) {
	a.calls <- fmt.Sprintf("image %s %s %s", to.ConversationID, i.URL, i.Caption)
	return Receipt{}, nil
}

func (a *recorder) SendFile(_ context.Context, to Target, f wire.File) (Receipt, error) {
	a.calls <- fmt.Sprintf("file %s %s %s", to.ConversationID, f.Path, f.Filename)
	return Receipt{}, nil
}

func (a *recorder) Typing(_ context.Context, to Target, on bool) error {
	a.calls <- fmt.Sprintf("typing %s %t", to.ConversationID, on)
	return nil
}

func (a *recorder) Edit(_ context.Context, to Target, handle, text string) (Receipt, error) {
	a.calls <- fmt.Sprintf("edit %s %s %s", to.ConversationID, handle, text)
	return Receipt{}, nil
}

func (a *recorder) Delete(_ context.Context, to Target, handle string) error {
	a.calls <- fmt.Sprintf("delete %s %s", to.ConversationID, handle)
	return nil
}

func (a *recorder) React(_ context.Context, to Target, handle, emoji string, remove bool) error {
	a.calls <- fmt.Sprintf("react %s %s %s %t", to.ConversationID, handle, emoji, remove)
	return nil
}

func (a *recorder) SendParts(_ context.Context, to Target, text string, parts []message.Part) (Receipt, error) {
	a.calls <- fmt.Sprintf("parts %s %s %s", to.ConversationID, text, message.AppendParts(nil, parts))
	return Receipt{}, nil
}

func (a *recorder) Stream(_ context.Context, to Target, d Draft) (Receipt, error) {
	a.calls <- fmt.Sprintf("stream %s %s %s %d %t", to.ConversationID, d.ID, d.Text, len(d.Parts), d.Final)
	return Receipt{}, nil
}

// everyFrame is one frame of each type that needs the adapter, and its call.
func everyFrame() (frames, calls []string) {
	card := &wire.Card{Header: &wire.Header{Title: "T"}, Elements: []wire.Element{
		{Type: wire.ElementMarkdown, Content: "**m**"},
		{Type: wire.ElementSelect, Options: []wire.Option{{Text: "o", Value: "1"}}},
	}}
	for _, f := range []struct {
		frame wire.Frame
		call  string
	}{
		{wire.Frame{Type: wire.TypeStartTyping}, "typing c true"},
		{wire.Frame{Type: wire.TypeSend, Text: "hi"}, "send c hi"},
		{wire.Frame{Type: wire.TypeStopTyping}, "typing c false"},
		{wire.Frame{Type: wire.TypeSendCard, Card: card}, "card c T **m** 1"},
		{wire.Frame{Type: wire.TypeSendButtons, Text: "?", Buttons: [][]wire.Button{{{Text: "a", Value: "1"}, {Text: "b", Value: "2"}}}}, "buttons c ? 2"},
		{wire.Frame{Type: wire.TypeSendImage, Image: &wire.Image{URL: "u", Caption: "cap"}}, "image c u cap"},
		{wire.Frame{Type: wire.TypeSendFile, File: &wire.File{Path: "/p", Filename: "n"}}, "file c /p n"},
		{wire.Frame{Type: wire.TypeUpdateMessage, PreviewHandle: "h", Text: "new"}, "edit c h new"},
		{wire.Frame{Type: wire.TypeDeleteMessage, MessageID: "m", PreviewHandle: "h"}, "delete c h"},
		{wire.Frame{Type: wire.TypeSendReaction, MessageID: "m", Emoji: "👀", Remove: true}, "react c m 👀 true"},
		{wire.Frame{Type: wire.TypeSendParts, Text: "t", Parts: []byte(`[{"type":"text","text":"t"}]`)}, `parts c t [{"type":"text","text":"t"}]`},
		{wire.Frame{Type: wire.TypeSendForm, UI: []byte(`{"type":"ui","uiId":"f","components":[{"type":"heading","text":"H"}]}`)},
			`parts c H [{"type":"ui","uiId":"f","components":[{"type":"heading","text":"H"}]}]`},
		{wire.Frame{Type: wire.TypeSendAudio, Audio: &wire.Audio{URL: "u", MimeType: "audio/ogg", DurationMS: 5, Caption: "cap"}},
			`parts c cap [{"type":"audio-output","mimeType":"audio/ogg","status":"completed","durationMs":5,"url":"u"}]`},
		{wire.Frame{Type: wire.TypeStream, MessageID: "m", Text: "on", Parts: []byte(`[]`)}, "stream c m on 0 false"},
		{wire.Frame{Type: wire.TypeStreamEnd, MessageID: "m", Text: "one", Parts: []byte(`[{"type":"text","text":"one"}]`)}, "stream c m one 1 true"},
	} {
		frames = append(frames, string(f.frame.Append(nil, wire.Routing{ConversationID: "c"})))
		calls = append(calls, f.call)
	}
	return frames, calls
}

func TestEveryFrameReachesItsMethodInOrder(t *testing.T) {
	h := newHost(t)
	a := &recorder{calls: make(chan string, 100)}
	run(t, h, a, Options{})
	frames, calls := everyFrame()
	receive(t, "connection", h.peers).write(t, frames...)
	for _, want := range calls {
		if got := receive(t, want, a.calls); got != want {
			t.Errorf("call = %q, want %q", got, want)
		}
	}
}

func TestWhatTheAdapterCannotShowIsLoggedAndSkipped(t *testing.T) {
	h := newHost(t)
	texts := make(chan string, 10)
	r := run(t, h, &plain{send: func(_ context.Context, _ Target, text string) error {
		texts <- text
		return nil
	}}, Options{})
	frames, _ := everyFrame()
	p := receive(t, "connection", h.peers)
	p.write(t, frames...)
	p.write(t,
		`{"type":"of_the_future","text":"?"}`, `{"type":"send_card","conversation_id":"c"}`, `no JSON`, `{"type":"pong"}`,
		`{"type":"error","code":"bad_json","message":"the reason"}`, send("c", "last"))
	for _, want := range []string{"hi", "last"} {
		if got := receive(t, want, texts); got != want {
			t.Errorf("send = %q, want %q", got, want)
		}
	}
	r.stop()
	_ = r.wait(t)
	log := r.logs.String()
	for want, n := range map[string]int{
		errLacking.Error(): 14, "fault=host outcome=refused": 14, "level=DEBUG msg=\"frame of unknown type ignored\" platform=test type=of_the_future": 1,
		"can't be read": 2, "code=bad_json": 1, "the reason": 1,
	} {
		if got := strings.Count(log, want); got != n {
			t.Errorf("log has %q %d times, want %d:\n%s", want, got, n, log)
		}
	}
}

func TestFailuresSayWhoseFaultItWas(t *testing.T) {
	limit := errors.New("rate limit")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"retry":   {fmt.Errorf("post: %w", Retry(time.Second, limit)), "fault=platform outcome=retryable err=\"post: try again in 1s: rate limit\""},
		"refused": {Refused(limit), "fault=platform outcome=refused err=\"refused: rate limit\""},
		"plain":   {limit, "fault=platform outcome=unknown err=\"rate limit\""},
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(c.err, limit) {
				t.Errorf("%v does not wrap its cause", c.err)
			}
			var l logs
			s := sender{memory: newMemory(), adapter: &plain{send: func(context.Context, Target, string) error { return c.err }}, log: l.logger()}
			s.serve(t.Context(), job{Outbound: &wire.Outbound{Frame: wire.Frame{Type: wire.TypeSend, Text: "private"}}})
			if !strings.Contains(l.String(), c.want) || strings.Contains(l.String(), "private") {
				t.Errorf("log = %s, want %s, and not the text", l.String(), c.want)
			}
		})
	}
	if Retry(0, nil) != nil || Refused(nil) != nil {
		t.Error("no error became one")
	}
}

func TestPanicInSendCostsOnlyThatCall(t *testing.T) {
	h := newHost(t)
	texts := make(chan string, 10)
	r := run(t, h, &plain{send: func(_ context.Context, _ Target, text string) error {
		if text == "bad" {
			panic("out of cheese")
		}
		texts <- text
		return nil
	}}, Options{})
	receive(t, "connection", h.peers).write(t, send("c", "bad"), send("c", "good"))
	if got := receive(t, "send", texts); got != "good" {
		t.Errorf("send = %q", got)
	}
	for _, want := range []string{"out of cheese", "send_test.go", "fault=adapter outcome=unknown"} {
		if !strings.Contains(r.logs.String(), want) {
			t.Errorf("log lacks %q:\n%s", want, r.logs)
		}
	}
}

func TestOneConversationInOrderManyAtOnce(t *testing.T) {
	const conversations, each = 20, 50
	h := newHost(t)
	var mu sync.Mutex
	got, busy := map[string][]string{}, map[string]bool{}
	inside, together := 0, make(chan struct{})
	run(t, h, &plain{send: func(ctx context.Context, to Target, text string) error {
		mu.Lock()
		if busy[to.ConversationID] {
			t.Errorf("two sends at once in conversation %s", to.ConversationID)
		}
		busy[to.ConversationID] = true
		if inside++; inside == conversations {
			close(together) // every conversation is in its first send: they run in parallel
		}
		mu.Unlock()
		select {
		case <-together:
		case <-ctx.Done():
		}
		mu.Lock()
		defer mu.Unlock()
		busy[to.ConversationID] = false
		got[to.ConversationID] = append(got[to.ConversationID], text)
		return nil
	}}, Options{})
	p := receive(t, "connection", h.peers)
	for c := range conversations { // all of one conversation, then the next
		frames := make([]string, each)
		for i := range frames {
			frames[i] = send(fmt.Sprint(c), fmt.Sprint(i))
		}
		p.write(t, frames...)
	}
	receive(t, "parallel sends", together)
	eventually(t, "every send", func() bool {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, texts := range got {
			n += len(texts)
		}
		return n == conversations*each
	})
	for c, texts := range got {
		for i, text := range texts {
			if text != fmt.Sprint(i) {
				t.Fatalf("conversation %s: %q at place %d", c, text, i)
			}
		}
	}
}

func TestLanesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := newLanes(3, func(ctx context.Context, _ job) { <-release })
		defer s.crew.Close()
		if !s.drained(t.Context()) {
			t.Error("empty lanes are not drained")
		}
		accepted := 0
		go func() {
			for i := range 5 {
				if _, err := s.put(t.Context(), job{Outbound: &wire.Outbound{Routing: wire.Routing{ConversationID: fmt.Sprint(i % 2)}}}); err == nil {
					accepted++
				}
			}
		}()
		synctest.Wait()
		if accepted != 3 {
			t.Errorf("%d frames accepted, want 3", accepted)
		}
		for _, lossy := range []wire.Type{wire.TypeStartTyping, wire.TypeStream} {
			if _, err := s.put(t.Context(), job{Outbound: &wire.Outbound{Frame: wire.Frame{Type: lossy}}}); err != nil || len(s.waiting) > 2 {
				t.Errorf("%s over the bound: %v, %d lanes", lossy, err, len(s.waiting))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if s.drained(ctx) {
			t.Error("busy lanes are drained")
		}
		if _, err := s.put(ctx, job{Outbound: &wire.Outbound{}}); err == nil {
			t.Error("put over the bound did not end with its context")
		}
		close(release)
		synctest.Wait()
		if !s.drained(t.Context()) || accepted != 5 || len(s.waiting) != 0 {
			t.Errorf("in the end %d accepted, %d lanes left", accepted, len(s.waiting))
		}
	})
}

func TestRetryIsRepeatedUntilItHasAnOutcome(t *testing.T) {
	calls := 0
	l := &logs{}
	s := sender{memory: newMemory(), insist: time.Minute, log: l.logger(), adapter: &plain{send: func(context.Context, Target, string) error {
		if calls++; calls < 3 {
			return Retry(time.Millisecond, errors.New("busy"))
		}
		return nil
	}}}
	s.serve(t.Context(), job{Outbound: &wire.Outbound{Frame: wire.Frame{Type: wire.TypeSend, Text: "x"}}})
	if calls != 3 || l.String() != "" {
		t.Errorf("called %d times, logged %q", calls, l.String())
	}
}
