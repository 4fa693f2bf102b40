package bridge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func ackFrame(id string, more ...string) string {
	return `{"type":"message_ack","message_id":` + quote(id) + `,"ok":` + strings.Join(append([]string{fmt.Sprint(len(more) == 0 || strings.HasPrefix(more[0], `"preview`))}, more...), ",") + `}`
}

func (c *client) ok(id string, more ...string) {
	c.t.Helper()
	c.send(ackFrame(id, more...))
}

// What the host has committed it says so, once for each frame with an id.
func TestInboundAck(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("a", withAgent("none"), func(c *ledger.Channel) { c.Users = []string{"u"} })
	c := h.attach11(t, row, "ack reaction")
	msg := func(id, text string) string {
		return `{"type":"message","conversation_id":"c","user_id":"u","text":` + quote(text) + `,"message_id":` + quote(id) + `}`
	}
	taken := func(id string) string { return `{"type":"message_ack","message_id":` + quote(id) + `,"ok":true}` }
	c.send(msg("1", "one"), msg("2", "two"), msg("1", "one again"), say("c", "no id"))
	c.want(taken("1"), taken("2"), taken("1"))
	c.send(`{"type":"reaction","user_id":"u","message_id":"1","emoji":"x"}`, strings.Replace(msg("3", "no"), `"u"`, `"stranger"`, 1))
	c.want(taken("1"), taken("3"))
	c.send(`{"type":"message","message_id":"4","text":4}`)
	c.wantError("wrong_type", "4", "text")
	h.wantHistory(row, "in handled one", "in handled two", "in handled no id", "in handled x", "in failed/rejected no")

	// Acknowledged, then answered.
	talk := h.channel("talk")
	t1 := h.attach11(t, talk, "ack")
	t1.send(msg("1", "hi"))
	t1.want(taken("1"))
	t1.nextSent("send")

	// Also across a restart, and by an adapter that does not want to know.
	h = h.again()
	c = h.attach11(t, row, "ack")
	c.send(msg("2", "two"))
	c.want(taken("2"))
	quietly := h.attach11(t, row, "")
	quietly.send(msg("5", "five"))
	quietly.quiet()
}

// The platform's offset comes back with register_ack: the last one that was
// committed, whatever brought it.
func TestCursor(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("c", withAgent("none"))
	cursor := func(c *client) string {
		t.Helper()
		c.send(registerFrame11(row, ""))
		var ack wire.RegisterAck
		c.read(&ack)
		return ack.Cursor
	}
	c := h.dial(t, credentials{})
	if got := cursor(c); got != "" {
		t.Errorf("first, it is %q", got)
	}
	c.send(`{"type":"message","text":"a","cursor":"17 é"}`)
	h.wantHistory(row, "in handled a")
	if got := cursor(h.dial(t, credentials{})); got != "17 é" {
		t.Errorf("after a message, it is %q", got)
	}
	c = h.dial(t, credentials{})
	cursor(c)
	c.send(`{"type":"ping","cursor":"18"}`, `{"type":"message","text":"b"}`)
	c.mustNext()
	h.wantHistory(row, "in handled a", "in handled b")
	h = h.again()
	if got := cursor(h.dial(t, credentials{})); got != "18" {
		t.Errorf("after a ping and a restart, it is %q", got)
	}
	// A repeat is dropped with its cursor: it may be from before the newest.
	c = h.dial(t, credentials{})
	cursor(c)
	c.send(`{"type":"message","text":"c","message_id":"m","cursor":"19"}`, `{"type":"message","text":"d","cursor":"20"}`, `{"type":"message","text":"c","message_id":"m","cursor":"19"}`, `{"type":"message","text":"e"}`)
	h.wantHistory(row, "in handled a", "in handled b", "in handled c", "in handled d", "in handled e")
	if got := cursor(h.dial(t, credentials{})); got != "20" {
		t.Errorf("after a repeat, it is %q", got)
	}
}

// One message of a conversation is in flight; other conversations don't wait.
func TestOneInFlight(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("f")
	c := h.attach11(t, row, "ack")
	for _, text := range []string{"1", "2", "3"} {
		h.mustSend(row, "c", text)
	}
	h.mustSend(row, "d", "other")
	first, other := c.nextSent("send"), c.nextSent("send")
	if first.Text != "1" || other.Text != "other" {
		t.Fatalf("came %+v, %+v", first, other)
	}
	c.quiet()
	h.wantHistory(row, "out sent 1", "out queued 2", "out queued 3", "out sent other")
	c.ok("nonsense")
	c.ok(first.MessageID + "/2") // not that one
	c.quiet()
	c.ok(first.MessageID, `"preview_handle":"tg-9"`)
	second := c.nextSent("send")
	c.ok(first.MessageID) // twice
	c.ok(second.MessageID)
	third := c.nextSent("send")
	c.ok(third.MessageID)
	c.ok(other.MessageID)
	h.wantHistory(row, "out delivered 1", "out delivered 2", "out delivered 3", "out delivered other")
	if e := h.history(row)[0]; e.Handle != "tg-9" {
		t.Errorf("handle %q", e.Handle)
	}
	// An edit finds the handle that the adapter gave.
	h.operator("POST", "/channels/f/messages", `{"conversation_id":"e","text":"new","update":{"message_id":"`+first.MessageID+`"}}`, 202)
	c.nextSent("send") // this adapter can't edit
}

// Deletions and reactions are acknowledged under the id that they have, which is
// that of the message that they are about.
func TestActsAreAcknowledged(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("x")
	c := h.attach11(t, row, "ack reaction delete_message")
	c.send(`{"type":"message","conversation_id":"c","text":"hi","message_id":"tg-1"}`)
	c.want(`{"type":"message_ack","message_id":"tg-1","ok":true}`)
	answered := c.nextSent("send").MessageID
	c.ok(answered, `"preview_handle":"tg-2"`)
	asked := h.history(row)[0].ID.String()
	h.operator("PUT", "/channels/x/messages/"+asked+"/reactions/%F0%9F%91%80", "", 202)
	h.operator("DELETE", "/channels/x/messages/"+answered, "", 202)
	h.mustSend(row, "c", "behind them")
	if f := c.nextSent("send_reaction"); f.MessageID != "tg-1" {
		t.Errorf("came as %+v", f)
	}
	c.quiet()
	c.ok("tg-1")
	if f := c.nextSent("delete_message"); f.MessageID != answered || f.PreviewHandle != "tg-2" {
		t.Errorf("came as %+v", f)
	}
	c.ok(answered)
	c.ok(c.nextSent("send").MessageID)
	h.wantHistory(row, "in handled hi", "out delivered echo: hi", "out delivered 👀", "out delivered ", "out delivered behind them")
}

func TestOutboundAnswers(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("o")
	c := h.attach11(t, row, "ack")
	for _, tt := range []struct{ answer, state, life string }{
		{`"error":"chat not found"`, "failed/rejected", "refused chat not found"},
		{`"error":"connection lost","ambiguous":true`, "failed/unknown_outcome", "ambiguous connection lost"},
	} {
		h.mustSend(row, tt.state, "text")
		f := c.nextSent("send")
		c.ok(f.MessageID, tt.answer)
		var e ledger.Entry
		eventually(t, tt.state, func() bool { e = h.last(row, ledger.Out); return e.State == ledger.Failed })
		life, err := h.store.Life(t.Context(), e.ID)
		if err != nil || line(e) != "out "+tt.state+" text" || len(life) != 2 || life[0].What+" "+life[0].Detail != tt.life {
			t.Errorf("kept as %s with %v, %v", line(e), life, err)
		}
	}

	// Refused for now: tried again, in order.
	h.mustSend(row, "c", "first")
	h.mustSend(row, "c", "second")
	f := c.nextSent("send")
	c.ok(f.MessageID, `"error":"flood wait","retryable":true`)
	again := c.nextSent("send")
	if again.MessageID != f.MessageID || again.Text != "first" {
		t.Errorf("came %+v", again)
	}
	c.ok(again.MessageID)
	if f = c.nextSent("send"); f.Text != "second" {
		t.Errorf("came %+v", f)
	}
	c.ok(f.MessageID)
	eventually(t, "both are delivered", func() bool { return h.last(row, ledger.Out).State == ledger.Delivered })
}

// What a lost session did not acknowledge is sent again, under its id, from the
// frame that it had reached.
func TestSessionLost(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("l", func(c *ledger.Channel) { c.Profile = ledger.Profile{MaxText: 5} })
	c := h.attach11(t, row, "ack")
	h.mustSend(row, "c", "aaaa bbbb cccc")
	h.mustSend(row, "c", "next")
	f := c.nextSent("send")
	c.ok(f.MessageID)
	f = c.nextSent("send")
	if f.Text != "bbbb" || !strings.HasSuffix(f.MessageID, "/2") {
		t.Fatalf("came %+v", f)
	}
	_ = c.ws.Close()
	h.wantHistory(row, "out queued aaaa bbbb cccc", "out queued next")
	h = h.again() // even by a host that was not there
	c = h.attach11(t, row, "ack")
	if again := c.nextSent("send"); again.MessageID != f.MessageID || again.Text != "bbbb" {
		t.Fatalf("came %+v", again)
	}
	c.ok(f.MessageID)
	f = c.nextSent("send")
	// Another adapter takes over in the middle.
	c = h.attach11(t, row, "ack")
	if again := c.nextSent("send"); again.MessageID != f.MessageID || again.Text != "cccc" {
		t.Fatalf("came %+v", again)
	}
	c.ok(f.MessageID)
	f = c.nextSent("send")
	if f.Text != "next" {
		t.Fatalf("came %+v", f)
	}
	// One that does not acknowledge gets what is left, all at once.
	h.mustSend(row, "c", "last")
	old := h.attach(t, row)
	for _, want := range []string{"next", "last"} {
		if f := old.nextSent("send"); f.Text != want || f.MessageID != "" {
			t.Errorf("came %+v, want %s", f, want)
		}
	}
	h.wantHistory(row, "out delivered aaaa bbbb cccc", "out sent next", "out sent last")
}

func TestAckOverdue(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.ack = 300 * time.Millisecond })
	row := h.channel("o", withQueue)
	c := h.attach11(t, row, "ack")
	h.mustSend(row, "c", "hello")
	f, again := c.nextSent("send"), c.nextSent("send")
	if f.MessageID != again.MessageID {
		t.Errorf("came %+v, then %+v", f, again)
	}
	c.wantClose(4008, "no acknowledgement in time")
	h.wantHistory(row, "out queued hello")
	c = h.attach11(t, row, "ack")
	c.ok(c.nextSent("send").MessageID)
	h.wantHistory(row, "out delivered hello")
	life, err := h.store.Life(t.Context(), h.last(row, ledger.Out).ID)
	if err != nil || len(life) != 3 || life[0].What != "sent once more" || life[1].What != "session lost" {
		t.Errorf("life %v, %v", life, err)
	}
}

// Many conversations, each in order, with an adapter that refuses some for now
// and goes away now and then: everything arrives, in order, once acknowledged.
func TestManyLanes(t *testing.T) {
	t.Parallel()
	const conversations, messages = 40, 10
	h := start(t)
	row := h.channel("m", withQueue)
	for i := range messages {
		for conv := range conversations {
			if _, err := h.hub.Send(t.Context(), row, hub.Outgoing{Conversation: fmt.Sprint(conv), Message: message.Text(fmt.Sprint(i))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[string]int{}
	frames := 0
	for round := 0; len(got) < conversations || least(got) < messages; round++ {
		c := h.attach11(t, row, "ack")
		for frames = 0; frames < 150 && (len(got) < conversations || least(got) < messages); frames++ {
			f := c.nextSent("send")
			if frames%37 == 36 {
				c.ok(f.MessageID, `"error":"later","retryable":true`)
				continue
			}
			if f.Text != fmt.Sprint(got[f.ConversationID]) {
				t.Fatalf("conversation %s: came %q, want %d", f.ConversationID, f.Text, got[f.ConversationID])
			}
			got[f.ConversationID]++
			c.ok(f.MessageID)
		}
		c.answered() // what was acknowledged has been read
		_ = c.ws.Close()
		eventually(t, "the adapter goes", func() bool { return !h.attached(row) })
	}
	eventually(t, "all are delivered", func() bool {
		for _, e := range h.history(row) {
			if e.State != ledger.Delivered {
				return false
			}
		}
		return true
	})
}

func least(m map[string]int) int {
	n := 1 << 30
	for _, v := range m {
		n = min(n, v)
	}
	return n
}

// answered waits until everything that was sent is read.
func (c *client) answered() {
	c.t.Helper()
	c.send(`{"type":"ping"}`)
	for {
		var f struct{ Type string }
		if got := c.mustNext(); json.Unmarshal([]byte(got), &f) != nil || f.Type == "pong" {
			return
		}
	}
}

// What failed can be sent again, under its id; its life tells all of it.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("d")
	c := h.attach11(t, row, "ack")
	h.mustSend(row, "c", "hello")
	f := c.nextSent("send")
	c.ok(f.MessageID, `"error":"blocked"`)
	h.wantHistory(row, "out failed/rejected hello")
	h.mustSend(row, "c", "fine")
	fine := c.nextSent("send").MessageID
	c.ok(fine)
	h.wantHistory(row, "out failed/rejected hello", "out delivered fine")
	h.operator("POST", "/dead-letters/"+fine+"/replay", "", 409)
	h.operator("POST", "/dead-letters/nonsense/replay", "", 404)
	var wg sync.WaitGroup
	var taken atomic.Int32
	for range 4 { // at once: it is replayed once
		wg.Go(func() {
			if status, _ := h.ask("POST", "/dead-letters/"+f.MessageID+"/replay", ""); status == 202 {
				taken.Add(1)
			}
		})
	}
	if wg.Wait(); taken.Load() != 1 {
		t.Errorf("replayed %d times", taken.Load())
	}
	if again := c.nextSent("send"); again.MessageID != f.MessageID || again.Text != "hello" {
		t.Errorf("came %+v", again)
	}
	c.ok(f.MessageID)
	h.wantHistory(row, "out delivered hello", "out delivered fine")
	life, err := h.store.Life(t.Context(), h.history(row)[0].ID)
	var got []string
	for _, l := range life {
		got = append(got, strings.TrimSpace(l.What+" "+l.Detail))
	}
	if err != nil || strings.Join(got, ", ") != "refused blocked, failed rejected, replayed, queued" {
		t.Errorf("life %q, %v", got, err)
	}

	// All of them, also to an adapter that does not acknowledge; without one
	// they stay what they are.
	_ = c.ws.Close()
	eventually(t, "the adapter goes", func() bool { return !h.attached(row) })
	q := h.channel("q", withQueue)
	c = h.attach11(t, q, "ack")
	for _, text := range []string{"1", "2"} {
		h.mustSend(q, "c", text)
		c.ok(c.nextSent("send").MessageID, `"error":"no"`)
		eventually(t, "it fails", func() bool { return h.last(q, ledger.Out).State == ledger.Failed })
	}
	old := h.attach(t, q)
	h.operator("POST", "/dead-letters/replay?channel=d", "", 202) // none
	h.operator("POST", "/dead-letters/replay", "", 202)
	if one, two := old.nextSent("send"), old.nextSent("send"); one.Text != "1" || two.Text != "2" {
		t.Errorf("came %+v, %+v", one, two)
	}
	h.wantHistory(q, "out sent 1", "out sent 2")
}

// A test message waits for the platform's word.
func TestChannelTest(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("t")
	c := h.attach11(t, row, "ack")
	for answer, want := range map[string]string{`"preview_handle":"x"`: `"confirmed":true`, `"error":"no such chat"`: "Not taken: rejected."} {
		got := make(chan string, 1)
		go func() {
			_, body := h.ask("POST", "/channels/t/test", `{"conversation_id":"c"}`)
			got <- body
		}()
		c.ok(c.nextSent("send").MessageID, answer)
		if body := receive(t, "answer", got); !strings.Contains(body, want) {
			t.Errorf("%s: %s", answer, body)
		}
	}
}

// A channel's own limits go before the host's.
func TestQueueLimits(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.channel("l", withQueue)
	h.operator("PATCH", "/channels/l", `{"queue_limits":{"length":2,"attempts":2}}`, 200)
	h.operator("PATCH", "/channels/l", `{"queue_limits":{"length":-1}}`, 422)
	if _, body := h.ask("GET", "/channels/l", ""); !strings.Contains(body, `"queue_limits":{"length":2,"attempts":2}`) {
		t.Errorf("shown as %s", body)
	}
	row := h.byName("l")
	h.mustSend(row, "c", "1")
	h.mustSend(row, "c", "2")
	if _, err := h.send(row, "c", "3"); !errors.Is(err, hub.ErrQueueFull) {
		t.Errorf("the third: %v", err)
	}
	c := h.attach11(t, row, "ack")
	for range 2 {
		c.ok(c.nextSent("send").MessageID, `"error":"later","retryable":true`)
	}
	if f := c.nextSent("send"); f.Text != "2" {
		t.Errorf("came %+v", f)
	}
	h.wantHistory(row, "out failed/retries_exhausted 1", "out sent 2")
}
