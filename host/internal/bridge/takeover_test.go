package bridge_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

const replaced = "replaced by a newer connection"

func TestTakeover(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("takeover")
	first := h.Attach(t, row, "card")
	second := h.Attach(t, row, "buttons")
	if a, _ := h.Hub.Attached(row.Key); a.Effective.String() != "text,buttons" {
		t.Errorf("attached with %s", a.Effective)
	}
	first.WantClose(4001, replaced)
	_ = first.WS.Close()
	await.Until(t, "the first has ended", func() bool { return h.Log.Count("adapter detached channel=takeover") == 1 })
	if !h.Attached(row) {
		t.Error("the first's end detached the second")
	}
	second.Works()
	h.MustSend(row, "c", "unasked")
	second.Want(`{"type":"send","session_key":"","conversation_id":"c","reply_ctx":null,"text":"unasked"}`)

	// A peer that never answers the close frame is gone soon too.
	mute := h.Attach(t, row)
	second.WantClose(4001, replaced)
	third := h.Attach(t, row)
	await.Until(t, "the mute one has ended", func() bool { return h.Log.Count("adapter detached channel=takeover") == 3 })
	_ = mute
	third.Works()
}

func TestTakeoverFails(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("stays")
	current := h.Attach(t, row)
	for name, first := range map[string]string{
		"wrong token": hosttest.RegisterFrame("a-wrong-token-of-some-length"),
		"no token":    `{"type":"register"}`,
		"bad frame":   `{"type":"register","token":` + hosttest.Quote(hosttest.TokenOf(row.Name)) + `,"platform":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := h.Dial(t, hosttest.Credentials{})
			c.Send(first)
			if got := c.MustNext(); !strings.HasPrefix(got, `{"type":"register_ack","ok":false`) {
				t.Errorf("read %s", got)
			}
			current.Works()
		})
	}
	t.Run("nothing sent", func(t *testing.T) {
		_ = h.Dial(t, hosttest.Credentials{Header: http.Header{"X-Bridge-Token": {hosttest.TokenOf(row.Name)}}}).WS.Close()
		current.Works()
	})
}

// What the replaced connection still sends is neither stored nor answered.
func TestTakeoverEndsReading(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("late")
	first := h.Attach(t, row)
	first.Works()
	second := h.Attach(t, row)
	first.Raw(hosttest.RawFrame(true, hosttest.OpText, hosttest.Say("c", "late")), hosttest.RawFrame(true, hosttest.OpText, hosttest.Say("c", "later")))
	frames, code := first.Rest()
	for _, f := range frames { // refused is right too
		if !strings.HasPrefix(f, `{"type":"error","code":"internal"`) {
			t.Errorf("read %s", f)
		}
	}
	if code != 4001 {
		t.Errorf("closed with %d, want 4001", code)
	}
	_ = first.WS.Close()
	await.Until(t, "the first has ended", func() bool { return h.Log.Count("adapter detached channel=late") == 1 })
	second.Send(hosttest.Say("c", "in time"))
	second.Want(hosttest.Answer("c", "echo: in time"))
	h.WantHistory(row, "in handled does it work?", "out sent echo: does it work?", "in handled in time", "out sent echo: in time")
}

// A turn that the replaced connection asked for is answered on the new one.
func TestTakeoverDuringTurn(t *testing.T) {
	t.Parallel()
	slow := hosttest.NewHeld()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"held": slow}))
	row := h.Channel("turn", hosttest.WithAgent("held"))
	first := h.Attach(t, row)
	first.Send(hosttest.Say("c", "x"))
	await.Value(t, "turn", slow.Turns)
	second := h.Attach(t, row)
	slow.Answer(t, "for the second")
	second.Want(hosttest.Answer("c", "for the second"))
	first.WantClose(4001, replaced)
}

// Messages that wait for the replaced connection go to the new one, in order
// and once.
func TestTakeoverHandsOver(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.SmallBuffer = true })
	for i := range 10 {
		if handsOver(t, h, h.Channel(fmt.Sprint("hands-over-", i))) {
			return
		}
	}
	t.Error("in each of ten tries the first connection's write held everything, or missed its deadline before the second one came")
}

// handsOver reports whether the second connection came in time to take over what was
// not being written, and whether there was any.
func handsOver(t *testing.T, h *hosttest.Host, row ledger.Channel) bool {
	t.Helper()
	first := h.AttachSmall(t, row)
	n := h.Burst(row, 40, 20_000)
	begun := first.MustNext() // these are being written when the others come
	if n += h.Burst(row, 80, 20_000); n != 120 {
		return false
	}
	var want []string
	for _, e := range h.History(row) {
		want = append(want, hosttest.Unasked("c", e.Text))
	}
	second := h.Attach(t, row)
	rest, code := first.Rest()
	if code == 1006 {
		return false
	}
	if code != 4001 {
		t.Errorf("first closed with %d, want 4001", code)
	}
	got := append([]string{begun}, rest...)
	if len(got) == len(want) { // the write that was under way had begun late, and held all
		return false
	}
	t.Logf("%d to the first, %d to the second", len(got), len(want)-len(got))
	for len(got) < len(want) {
		got = append(got, second.MustNext())
	}
	if !slices.Equal(got, want) {
		t.Error("the two together did not get every message once and in order")
	}
	second.Works()
	for _, e := range h.History(row)[:120] {
		if e.State.String() != "sent" {
			t.Errorf("%.40s", hosttest.Line(e))
		}
	}
	return true
}

// Of a thousand connections that register as fast as they can, one stays and
// works; every other is told.
func TestTakeoverRace(t *testing.T) {
	t.Parallel()
	const racers, atOnce = 1000, 50
	h := hosttest.Start(t)
	row := h.Channel("race")
	last := hosttest.Unasked("last", "who is it?")
	var wg sync.WaitGroup
	results := make(chan string, racers)
	room := make(chan struct{}, atOnce)
	for i := range racers {
		room <- struct{}{}
		c := h.Dial(t, hosttest.Credentials{})
		wg.Go(func() {
			c.Send(hosttest.RegisterFrame(hosttest.TokenOf(row.Name)), hosttest.Say("c", fmt.Sprint(i)))
			got, err := c.Next()
			if err == nil && got != hosttest.AckOK {
				err = fmt.Errorf("registered with %s", got)
			}
			<-room
			for err == nil && got != last {
				got, err = c.Next()
			}
			if err != nil {
				_ = c.WS.Close()
				results <- err.Error()
				return
			}
			c.Send(hosttest.Say("works", "does it work?"))
			for err == nil && got != hosttest.Answer("works", "echo: does it work?") { // behind what was asked before
				got, err = c.Next()
			}
			results <- "current"
		})
	}
	for range racers - 1 {
		if got := await.Value(t, "end", results); got != "websocket: close 4001: "+replaced {
			t.Errorf("ended with %s", got)
		}
	}
	h.MustSend(row, "last", "who is it?")
	if got := await.Value(t, "current one", results); got != "current" {
		t.Errorf("the last ended with %s", got)
	}
	wg.Wait()
	await.Until(t, "all but one are freed", func() bool { return h.Log.Count("adapter detached")+h.Log.Count("adapter refused") == racers-1 })
	if got := h.Log.Count("adapter attached"); got != h.Log.Count("adapter detached")+1 || !h.Attached(row) {
		t.Errorf("%d attached", got)
	}
}
