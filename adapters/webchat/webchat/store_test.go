package webchat

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// small bounds show what happens at them.
var small = bounds{conversations: 3, entries: 4, bytes: 4000, total: 6000, queue: 2, queued: 1 << 20, typing: time.Millisecond}

func (s *store) conv(t *testing.T, id string) *conversation {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.open(id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// check compares what the store counts with what it holds.
func (s *store) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	total, files := 0, 0
	for id, c := range s.convs {
		bytes := 0
		for _, e := range c.entries {
			bytes += len(e.frame)
			for _, p := range e.Pieces {
				if p.grant != nil {
					files++
				}
			}
			if c.byID[e.ID] != e {
				t.Errorf("%s: %s is not found", id, e.ID)
			}
		}
		if bytes != c.bytes {
			t.Errorf("%s: counts %d bytes, holds %d", id, c.bytes, bytes)
		}
		total += bytes
	}
	if total != s.bytes || files != len(s.files) {
		t.Errorf("counts %d bytes and %d files, holds %d and %d", s.bytes, len(s.files), total, files)
	}
}

func TestBounds(t *testing.T) {
	s := newStore(small)
	for i := range 10 {
		g := &grant{token: fmt.Sprint("T", i)}
		if _, err := s.post("a", &entry{Pieces: []*piece{{Kind: kindFile, Text: fmt.Sprint(i), grant: g, Media: &media{URL: g.url()}}}}); err != nil {
			t.Fatal(err)
		}
	}
	a := s.conv(t, "a")
	if len(a.entries) != 4 || a.entries[0].Pieces[0].Text != "6" || s.granted("T5") != nil || s.granted("T6") == nil {
		t.Errorf("keeps %d entries from %q, %d files", len(a.entries), a.entries[0].Pieces[0].Text, len(s.files))
	}
	s.check(t)
	_, _ = s.post("a", &entry{Kind: kindText, Text: strings.Repeat("x", 3900)})
	if len(a.entries) != 1 {
		t.Errorf("keeps %d entries beside a large one", len(a.entries))
	}
	s.check(t)
	_, _ = s.post("b", &entry{Kind: kindText, Text: strings.Repeat("x", 3000)})
	s.check(t)
	if s.convs["a"] != nil || s.bytes > small.total {
		t.Errorf("holds %d bytes of %d conversations", s.bytes, len(s.convs))
	}
}

// Conversations go by their last use, and never while they are needed.
func TestEviction(t *testing.T) {
	s := newStore(small)
	open := &stream{wake: make(chan struct{}, 1)}
	if _, err := s.attach("open", open); err != nil {
		t.Fatal(err)
	}
	busy := s.conv(t, "busy")
	if no := s.act(busy, &entry{Client: "1", Kind: kindText, event: sdk.Event{Text: "x"}}); no != nil {
		t.Fatal(no)
	}
	for i := range 5 {
		s.conv(t, fmt.Sprint("idle", i))
	}
	if len(s.convs) != 3 || s.convs["open"] == nil || s.convs["busy"] == nil || s.convs["idle4"] == nil {
		t.Errorf("keeps %v", s.convs)
	}
	if _, err := s.attach("idle4", &stream{wake: make(chan struct{}, 1)}); err != nil {
		t.Fatal(err)
	}
	a := &Adapter{store: s}
	var retry *sdk.RetryError
	if _, err := a.Send(t.Context(), sdk.Target{ConversationID: conversationOf(hexID())}, "x"); !errors.As(err, &retry) {
		t.Errorf("all in use: found %v, expected sdk.Retry", err)
	}
	s.detach(s.conv(t, "open"), open)
	if _, err := a.Send(t.Context(), sdk.Target{ConversationID: conversationOf(hexID())}, "x"); err != nil {
		t.Error(err)
	}
}

func TestQueue(t *testing.T) {
	s := newStore(small)
	c := s.conv(t, "a")
	for i, want := range []bool{true, true, false} {
		if no := s.act(c, &entry{Client: fmt.Sprint(i), Kind: kindText}); (no == nil) != want {
			t.Errorf("message %d: refused %v", i, no)
		}
	}
	if no := s.act(c, &entry{Client: "1", Kind: kindText}); no != nil || len(c.queue) != 2 {
		t.Errorf("a repetition: refused %v, %d wait", no, len(c.queue))
	}
	tight := newStore(bounds{conversations: 1, entries: 4, bytes: 4000, total: 6000, queue: 2, queued: 10})
	if no := tight.act(tight.conv(t, "a"), &entry{Client: "1", Kind: kindText, Text: "eleven char"}); no == nil || no.Retry == 0 {
		t.Errorf("over the bytes that may wait: refused %v", no)
	}
	if got := s.claim(); len(got) != 1 || len(s.claim()) != 0 {
		t.Error("a claimed conversation is claimed twice")
	}
	first := s.head(c)
	s.settle(c, first, stateSent, "")
	s.waits(c, first)
	if first.State != stateSent {
		t.Errorf("state %q after sent", first.State)
	}
	s.unclaim(c)
	if got := s.claim(); len(got) != 1 || s.head(c).Client != "1" {
		t.Error("what is left can't be claimed again")
	}
	s.settle(c, s.head(c), stateFailed, "because")
	if s.head(c) != nil || c.draining || s.wait != 0 || c.entries[1].Reason != "because" {
		t.Errorf("in the end: draining %v, %d bytes wait", c.draining, s.wait)
	}
}

// An edit finds its message by our handle, by the host's own, or by what both
// answer; an old one never touches a new message.
func TestEdit(t *testing.T) {
	s := newStore(defaultBounds)
	post := func(text, replies string) string {
		h, err := s.post("a", &entry{Kind: kindMessage, Pieces: []*piece{{Kind: kindText, Text: text}}, replies: replies})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	edit := func(handle, replies, text string) {
		if _, err := s.edit("a", handle, replies, text); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(want ...string) {
		t.Helper()
		var got []string
		for _, e := range s.conv(t, "a").entries {
			got = append(got, e.alone(kindText).Text)
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("found %q, expected %q", got, want)
		}
	}
	one := post("one", "q1")
	post("two", "q1")
	post("three", "q2")
	edit(one, "q1", "ONE")
	shows("ONE", "two", "three")
	edit("h", "q1", "TWO")
	shows("ONE", "TWO", "three")
	edit("h", "q1", "Two") // the same message again
	shows("ONE", "Two", "three")
	edit("otherepoch-7", "q9", "four") // nothing answers q9
	shows("ONE", "Two", "three", "four")
	edit(s.epoch+"-zzz", "q2", "five") // ours, and forgotten
	shows("ONE", "Two", "three", "four", "five")
	card, err := s.post("a", &entry{Kind: kindMessage, Pieces: []*piece{cardPiece(&wire.Card{}), {Kind: kindText, Text: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	edit(card, "", "six")
	shows("ONE", "Two", "three", "four", "five", "six")
	s.check(t)
}

func TestTypingEnds(t *testing.T) {
	s := newStore(small)
	st := &stream{wake: make(chan struct{}, 1)}
	c, err := s.attach("a", st)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.setTyping("a", true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody types for ever", func() bool { _, _, on := s.since(c, 0); return !on })
}

// Whatever a browser sends, it is refused with a reason or fits a frame.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"type":"hello","key":"0123456789abcdef0123456789abcdef","epoch":"x","since":1}`,
		`{"type":"say","id":"0123456789abcdef0123456789abcdef","text":"hello\n","name":"Ann"}`,
		`{"type":"press","id":"0123456789abcdef0123456789abcdef","message":"a-1","group":0,"index":1,"value":"yes","label":"Yes","name":""}`,
		`{"type":"say"}`, `{`, `[]`, `null`, "{\"type\":\"say\",\"text\":\"\xff\"}", `{"type":"say"} {}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		req, err := decodeRequest(frame)
		if err != nil {
			return
		}
		e, err := req.entry()
		if err != nil {
			return
		}
		if e.event.UserName == "" || e.event.Text == "" && e.event.Action == "" || len(e.event.Text) > maxText {
			t.Errorf("found %+v", e.event)
		}
		e.encode()
	})
}
