package bridge_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
)

const replaced = "replaced by a newer connection"

func TestTakeover(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("takeover")
	first := h.attach(t, row, "card")
	second := h.attach(t, row, "buttons")
	if a, _ := h.hub.Attached(row.Key); a.Effective.String() != "text,buttons" {
		t.Errorf("attached with %s", a.Effective)
	}
	first.wantClose(4001, replaced)
	_ = first.ws.Close()
	eventually(t, "the first has ended", func() bool { return h.log.count("adapter detached channel=takeover") == 1 })
	if !h.attached(row) {
		t.Error("the first's end detached the second")
	}
	second.works()
	h.mustSend(row, "c", "unasked")
	second.want(`{"type":"send","session_key":"","conversation_id":"c","reply_ctx":null,"text":"unasked"}`)

	// A peer that never answers the close frame is gone soon too.
	mute := h.attach(t, row)
	second.wantClose(4001, replaced)
	third := h.attach(t, row)
	eventually(t, "the mute one has ended", func() bool { return h.log.count("adapter detached channel=takeover") == 3 })
	_ = mute
	third.works()
}

func TestTakeoverFails(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("stays")
	current := h.attach(t, row)
	for name, first := range map[string]string{
		"wrong token": registerFrame("a-wrong-token-of-some-length"),
		"no token":    `{"type":"register"}`,
		"bad frame":   `{"type":"register","token":` + quote(tokenOf(row.Name)) + `,"platform":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := h.dial(t, credentials{})
			c.send(first)
			if got := c.mustNext(); !strings.HasPrefix(got, `{"type":"register_ack","ok":false`) {
				t.Errorf("read %s", got)
			}
			current.works()
		})
	}
	t.Run("nothing sent", func(t *testing.T) {
		_ = h.dial(t, credentials{header: http.Header{"X-Bridge-Token": {tokenOf(row.Name)}}}).ws.Close()
		current.works()
	})
}

// What the replaced connection still sends is neither stored nor answered.
func TestTakeoverEndsReading(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("late")
	first := h.attach(t, row)
	first.works()
	second := h.attach(t, row)
	first.raw(frame(true, opText, say("c", "late")), frame(true, opText, say("c", "later")))
	frames, code := first.rest()
	for _, f := range frames { // refused is right too
		if !strings.HasPrefix(f, `{"type":"error","code":"internal"`) {
			t.Errorf("read %s", f)
		}
	}
	if code != 4001 {
		t.Errorf("closed with %d, want 4001", code)
	}
	_ = first.ws.Close()
	eventually(t, "the first has ended", func() bool { return h.log.count("adapter detached channel=late") == 1 })
	second.send(say("c", "in time"))
	second.want(answer("c", "echo: in time"))
	h.wantHistory(row, "in handled does it work?", "out sent echo: does it work?", "in handled in time", "out sent echo: in time")
}

// A turn that the replaced connection asked for is answered on the new one.
func TestTakeoverDuringTurn(t *testing.T) {
	t.Parallel()
	slow := newHeld()
	h := start(t, agents(map[string]hub.Agent{"held": slow}))
	row := h.channel("turn", withAgent("held"))
	first := h.attach(t, row)
	first.send(say("c", "x"))
	receive(t, "turn", slow.turns)
	second := h.attach(t, row)
	slow.answers <- "for the second"
	second.want(answer("c", "for the second"))
	first.wantClose(4001, replaced)
}

// Messages that wait for the replaced connection go to the new one, in order
// and once.
func TestTakeoverHandsOver(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.smallBuffer = true })
	row := h.channel("hands-over")
	first := h.slow(t, row)
	n := h.burst(row, 40, 20_000)
	begun := first.mustNext() // these are being written when the others come
	if n += h.burst(row, 80, 20_000); n != 120 {
		t.Fatalf("%d messages were taken", n)
	}
	var want []string
	for _, e := range h.history(row) {
		want = append(want, unasked("c", e.Text))
	}
	second := h.attach(t, row)
	rest, code := first.rest()
	if code != 4001 {
		t.Errorf("first closed with %d, want 4001", code)
	}
	got := append([]string{begun}, rest...)
	if len(got) == len(want) {
		t.Fatal("nothing waited: the test shows nothing")
	}
	t.Logf("%d to the first, %d to the second", len(got), len(want)-len(got))
	for len(got) < len(want) {
		got = append(got, second.mustNext())
	}
	if !slices.Equal(got, want) {
		t.Error("the two together did not get every message once and in order")
	}
	second.works()
	for _, e := range h.history(row)[:120] {
		if e.State.String() != "sent" {
			t.Errorf("%.40s", line(e))
		}
	}
}

// unasked is a send that answers nothing.
func unasked(conversation, text string) string {
	return `{"type":"send","session_key":"","conversation_id":` + quote(conversation) + `,"reply_ctx":null,"text":` + quote(text) + `}`
}

// Of a thousand connections that register as fast as they can, one stays and
// works; every other is told.
func TestTakeoverRace(t *testing.T) {
	t.Parallel()
	const racers, atOnce = 1000, 50
	h := start(t)
	row := h.channel("race")
	last := unasked("last", "who is it?")
	var wg sync.WaitGroup
	results := make(chan string, racers)
	room := make(chan struct{}, atOnce)
	for i := range racers {
		room <- struct{}{}
		c := h.dial(t, credentials{})
		wg.Go(func() {
			c.send(registerFrame(tokenOf(row.Name)), say("c", fmt.Sprint(i)))
			got, err := c.next()
			if err == nil && got != ackOK {
				err = fmt.Errorf("registered with %s", got)
			}
			<-room
			for err == nil && got != last {
				got, err = c.next()
			}
			if err != nil {
				_ = c.ws.Close()
				results <- err.Error()
				return
			}
			c.send(say("works", "does it work?"))
			for err == nil && got != answer("works", "echo: does it work?") { // behind what was asked before
				got, err = c.next()
			}
			results <- "current"
		})
	}
	for range racers - 1 {
		if got := receive(t, "end", results); got != "websocket: close 4001: "+replaced {
			t.Errorf("ended with %s", got)
		}
	}
	h.mustSend(row, "last", "who is it?")
	if got := receive(t, "current one", results); got != "current" {
		t.Errorf("the last ended with %s", got)
	}
	wg.Wait()
	eventually(t, "all but one are freed", func() bool { return h.log.count("adapter detached")+h.log.count("adapter refused") == racers-1 })
	if got := h.log.count("adapter attached"); got != h.log.count("adapter detached")+1 || !h.attached(row) {
		t.Errorf("%d attached", got)
	}
}
