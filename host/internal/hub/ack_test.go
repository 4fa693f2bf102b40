package hub_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What the host has committed it says so, once for each frame with an id.
func TestInboundAck(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("a", hosttest.WithAgent("none"), func(c *ledger.Channel) { c.Users = []string{"u"} })
	c := h.Attach11(t, row, "ack reaction")
	msg := func(id, text string) string {
		return `{"type":"message","conversation_id":"c","user_id":"u","text":` + hosttest.Quote(text) + `,"message_id":` + hosttest.Quote(id) + `}`
	}
	taken := func(id string) string {
		return `{"type":"message_ack","message_id":` + hosttest.Quote(id) + `,"ok":true}`
	}
	c.Send(msg("1", "one"), msg("2", "two"), msg("1", "one again"), hosttest.Say("c", "no id"))
	c.Want(taken("1"), taken("2"), taken("1"))
	c.Send(`{"type":"reaction","user_id":"u","message_id":"1","emoji":"x"}`, strings.Replace(msg("3", "no"), `"u"`, `"stranger"`, 1))
	c.Want(taken("1"), taken("3"))
	c.Send(`{"type":"message","message_id":"4","text":4}`)
	c.WantError("wrong_type", "4", "text")
	h.WantHistory(row, "in handled one", "in handled two", "in handled no id", "in handled x", "in failed/rejected no")

	// Acknowledged, then answered.
	talk := h.Channel("talk")
	t1 := h.Attach11(t, talk, "ack")
	t1.Send(msg("1", "hi"))
	t1.Want(taken("1"))
	t1.NextSent("send")

	// Also across a restart, and by an adapter that does not want to know.
	h = h.Again()
	c = h.Attach11(t, row, "ack")
	c.Send(msg("2", "two"))
	c.Want(taken("2"))
	quietly := h.Attach11(t, row, "")
	quietly.Send(msg("5", "five"))
	quietly.Quiet()
}

// The platform's offset comes back with register_ack: the last one that was
// committed, whatever brought it.
func TestCursor(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("c", hosttest.WithAgent("none"))
	cursor := func(c *hosttest.Client) string {
		t.Helper()
		c.Send(hosttest.RegisterFrame11(row, ""))
		var ack wire.RegisterAck
		c.Read(&ack)
		return ack.Cursor
	}
	c := h.Dial(t, hosttest.Credentials{})
	if got := cursor(c); got != "" {
		t.Errorf("first, it is %q", got)
	}
	c.Send(`{"type":"message","text":"a","cursor":"17 é"}`)
	h.WantHistory(row, "in handled a")
	if got := cursor(h.Dial(t, hosttest.Credentials{})); got != "17 é" {
		t.Errorf("after a message, it is %q", got)
	}
	c = h.Dial(t, hosttest.Credentials{})
	cursor(c)
	c.Send(`{"type":"ping","cursor":"18"}`, `{"type":"message","text":"b"}`)
	c.MustNext()
	h.WantHistory(row, "in handled a", "in handled b")
	h = h.Again()
	if got := cursor(h.Dial(t, hosttest.Credentials{})); got != "18" {
		t.Errorf("after a ping and a restart, it is %q", got)
	}
	// A repeat is dropped with its cursor: it may be from before the newest.
	c = h.Dial(t, hosttest.Credentials{})
	cursor(c)
	c.Send(`{"type":"message","text":"c","message_id":"m","cursor":"19"}`, `{"type":"message","text":"d","cursor":"20"}`, `{"type":"message","text":"c","message_id":"m","cursor":"19"}`, `{"type":"message","text":"e"}`)
	h.WantHistory(row, "in handled a", "in handled b", "in handled c", "in handled d", "in handled e")
	if got := cursor(h.Dial(t, hosttest.Credentials{})); got != "20" {
		t.Errorf("after a repeat, it is %q", got)
	}
}

// One message of a conversation is in flight; other conversations don't wait.
func TestOneInFlight(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("f")
	c := h.Attach11(t, row, "ack")
	for _, text := range []string{"1", "2", "3"} {
		h.MustSend(row, "c", text)
	}
	h.MustSend(row, "d", "other")
	first, other := c.NextSent("send"), c.NextSent("send")
	if first.Text != "1" || other.Text != "other" {
		t.Fatalf("came %+v, %+v", first, other)
	}
	c.Quiet()
	h.WantHistory(row, "out sent 1", "out queued 2", "out queued 3", "out sent other")
	c.OK("nonsense")
	c.OK(first.MessageID + "/2") // not that one
	c.WantError("unknown_message", "nonsense", `"nonsense"`)
	c.WantError("unknown_message", first.MessageID+"/2", "in flight")
	c.Quiet()
	c.OK(first.MessageID, `"preview_handle":"tg-9"`)
	second := c.NextSent("send")
	c.OK(first.MessageID) // twice
	c.WantError("unknown_message", first.MessageID, "in flight")
	c.OK(second.MessageID)
	third := c.NextSent("send")
	c.OK(third.MessageID)
	c.OK(other.MessageID)
	h.WantHistory(row, "out delivered 1", "out delivered 2", "out delivered 3", "out delivered other")
	if e := h.History(row)[0]; e.Handle != "tg-9" {
		t.Errorf("handle %q", e.Handle)
	}
	// An edit finds the handle that the adapter gave.
	h.Operator("POST", "/channels/f/messages", `{"conversation_id":"e","text":"new","update":{"message_id":"`+first.MessageID+`"}}`, 202)
	c.NextSent("send") // this adapter can't edit
}

// Deletions and reactions are acknowledged under the id that they have, which is
// that of the message that they are about.
func TestActsAreAcknowledged(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("x")
	c := h.Attach11(t, row, "ack reaction delete_message")
	c.Send(`{"type":"message","conversation_id":"c","text":"hi","message_id":"tg-1"}`)
	c.Want(`{"type":"message_ack","message_id":"tg-1","ok":true}`)
	answered := c.NextSent("send").MessageID
	c.OK(answered, `"preview_handle":"tg-2"`)
	// Who deletes names the handle that is stored, and the adapter's word is on its way.
	await.Until(t, "the handle is stored", func() bool { return h.Last(row, ledger.Out).Handle == "tg-2" })
	asked := h.History(row)[0].ID.String()
	h.Operator("PUT", "/channels/x/messages/"+asked+"/reactions/%F0%9F%91%80", "", 202)
	h.Operator("DELETE", "/channels/x/messages/"+answered, "", 202)
	h.MustSend(row, "c", "behind them")
	if f := c.NextSent("send_reaction"); f.MessageID != "tg-1" {
		t.Errorf("came as %+v", f)
	}
	c.Quiet()
	c.OK("tg-1")
	if f := c.NextSent("delete_message"); f.MessageID != answered || f.PreviewHandle != "tg-2" {
		t.Errorf("came as %+v", f)
	}
	c.OK(answered)
	c.OK(c.NextSent("send").MessageID)
	h.WantHistory(row, "in handled hi", "out delivered echo: hi", "out delivered 👀", "out delivered ", "out delivered behind them")
}

func TestOutboundAnswers(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("o")
	c := h.Attach11(t, row, "ack")
	for _, tt := range []struct{ answer, state, life string }{
		{`"error":"chat not found"`, "failed/rejected", "refused chat not found"},
		{`"error":"connection lost","ambiguous":true`, "failed/unknown_outcome", "ambiguous connection lost"},
	} {
		h.MustSend(row, tt.state, "text")
		f := c.NextSent("send")
		c.OK(f.MessageID, tt.answer)
		var e ledger.Entry
		await.Until(t, tt.state, func() bool { e = h.Last(row, ledger.Out); return e.State == ledger.Failed })
		life, err := h.Store.Life(t.Context(), e.ID)
		if err != nil || hosttest.Line(e) != "out "+tt.state+" text" || len(life) != 2 || life[0].What+" "+life[0].Detail != tt.life {
			t.Errorf("kept as %s with %v, %v", hosttest.Line(e), life, err)
		}
	}

	// Refused for now: tried again, in order.
	h.MustSend(row, "c", "first")
	h.MustSend(row, "c", "second")
	f := c.NextSent("send")
	c.OK(f.MessageID, `"error":"flood wait","retryable":true`)
	again := c.NextSent("send")
	if again.MessageID != f.MessageID || again.Text != "first" {
		t.Errorf("came %+v", again)
	}
	c.OK(again.MessageID)
	if f = c.NextSent("send"); f.Text != "second" {
		t.Errorf("came %+v", f)
	}
	c.OK(f.MessageID)
	await.Until(t, "both are delivered", func() bool { return h.Last(row, ledger.Out).State == ledger.Delivered })
}

// What a lost session did not acknowledge is sent again, under its id, from the
// frame that it had reached.
func TestSessionLost(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("l", func(c *ledger.Channel) { c.Profile = ledger.Profile{MaxText: 5} })
	c := h.Attach11(t, row, "ack")
	h.MustSend(row, "c", "aaaa bbbb cccc")
	h.MustSend(row, "c", "next")
	f := c.NextSent("send")
	c.OK(f.MessageID)
	f = c.NextSent("send")
	if f.Text != "bbbb" || !strings.HasSuffix(f.MessageID, "/2") {
		t.Fatalf("came %+v", f)
	}
	_ = c.WS.Close()
	h.WantHistory(row, "out queued aaaa bbbb cccc", "out queued next")
	h = h.Again() // even by a host that was not there
	c = h.Attach11(t, row, "ack")
	if again := c.NextSent("send"); again.MessageID != f.MessageID || again.Text != "bbbb" {
		t.Fatalf("came %+v", again)
	}
	c.OK(f.MessageID)
	f = c.NextSent("send")
	// Another adapter takes over in the middle.
	c = h.Attach11(t, row, "ack")
	if again := c.NextSent("send"); again.MessageID != f.MessageID || again.Text != "cccc" {
		t.Fatalf("came %+v", again)
	}
	c.OK(f.MessageID)
	f = c.NextSent("send")
	if f.Text != "next" {
		t.Fatalf("came %+v", f)
	}
	// One that does not acknowledge gets what is left, all at once.
	h.MustSend(row, "c", "last")
	old := h.Attach(t, row)
	for _, want := range []string{"next", "last"} {
		if f := old.NextSent("send"); f.Text != want || f.MessageID != "" {
			t.Errorf("came %+v, want %s", f, want)
		}
	}
	h.WantHistory(row, "out delivered aaaa bbbb cccc", "out sent next", "out sent last")
}

func TestAckOverdue(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.Ack = 300 * time.Millisecond })
	row := h.Channel("o", hosttest.WithQueue)
	c := h.Attach11(t, row, "ack")
	h.MustSend(row, "c", "hello")
	f, again := c.NextSent("send"), c.NextSent("send")
	if f.MessageID != again.MessageID {
		t.Errorf("came %+v, then %+v", f, again)
	}
	c.WantClose(4008, "no acknowledgement in time")
	h.WantHistory(row, "out queued hello")
	h = h.Again(func(s *hosttest.Setup) { s.Ack = await.Limit }) // so that a slow machine acknowledges in time
	c = h.Attach11(t, row, "ack")
	c.OK(c.NextSent("send").MessageID)
	h.WantHistory(row, "out delivered hello")
	life, err := h.Store.Life(t.Context(), h.Last(row, ledger.Out).ID)
	if err != nil || len(life) != 3 || life[0].What != "sent once more" || life[1].What != "session lost" {
		t.Errorf("life %v, %v", life, err)
	}
}

// Many conversations, each in order, with an adapter that refuses some for now
// and goes away now and then: everything arrives, in order, once acknowledged.
func TestManyLanes(t *testing.T) {
	for _, ahead := range []int{1, 8} {
		t.Run(fmt.Sprintf("%d in flight", ahead), func(t *testing.T) {
			t.Parallel()
			manyLanes(t, ahead)
		})
	}
}

func manyLanes(t *testing.T, ahead int) {
	const conversations, messages = 40, 10
	h := hosttest.Start(t)
	row := h.Channel("m", hosttest.WithQueue)
	for i := range messages {
		for conv := range conversations {
			if _, err := h.Hub.Send(t.Context(), row, hub.Outgoing{Conversation: fmt.Sprint(conv), Message: message.Text(fmt.Sprint(i))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[string]int{}
	frames := 0
	for round := 0; len(got) < conversations || least(got) < messages; round++ {
		c := h.Attach11(t, row, "ack", fmt.Sprintf(`"profile":{"in_flight":%d}`, ahead))
		void := map[string]bool{}
		for frames = 0; frames < 150 && (len(got) < conversations || least(got) < messages); frames++ {
			f := c.NextSent("send")
			if void[f.ConversationID] && !f.Resumed {
				continue
			}
			if void[f.ConversationID] = false; frames%37 == 36 {
				void[f.ConversationID] = ahead > 1
				c.OK(f.MessageID, `"error":"later","retryable":true`)
				continue
			}
			if f.Text != fmt.Sprint(got[f.ConversationID]) {
				t.Fatalf("conversation %s: came %q, want %d", f.ConversationID, f.Text, got[f.ConversationID])
			}
			got[f.ConversationID]++
			c.OK(f.MessageID)
		}
		answered(c) // what was acknowledged has been read
		_ = c.WS.Close()
		await.Until(t, "the adapter goes", func() bool { return !h.Attached(row) })
	}
	await.Until(t, "all are delivered", func() bool {
		for _, e := range h.History(row) {
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
func answered(c *hosttest.Client) {
	c.T.Helper()
	c.Send(`{"type":"ping"}`)
	for {
		var f struct{ Type string }
		if got := c.MustNext(); json.Unmarshal([]byte(got), &f) != nil || f.Type == "pong" {
			return
		}
	}
}

// What failed can be sent again, under its id; its life tells all of it.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("d")
	c := h.Attach11(t, row, "ack")
	h.MustSend(row, "c", "hello")
	f := c.NextSent("send")
	c.OK(f.MessageID, `"error":"blocked"`)
	h.WantHistory(row, "out failed/rejected hello")
	h.MustSend(row, "c", "fine")
	fine := c.NextSent("send").MessageID
	c.OK(fine)
	h.WantHistory(row, "out failed/rejected hello", "out delivered fine")
	h.Operator("POST", "/dead-letters/"+fine+"/replay", "", 409)
	h.Operator("POST", "/dead-letters/nonsense/replay", "", 404)
	var wg sync.WaitGroup
	var taken atomic.Int32
	for range 4 { // at once: it is replayed once
		wg.Go(func() {
			if status, _ := h.Ask("POST", "/dead-letters/"+f.MessageID+"/replay", ""); status == 202 {
				taken.Add(1)
			}
		})
	}
	if wg.Wait(); taken.Load() != 1 {
		t.Errorf("replayed %d times", taken.Load())
	}
	if again := c.NextSent("send"); again.MessageID != f.MessageID || again.Text != "hello" {
		t.Errorf("came %+v", again)
	}
	c.OK(f.MessageID)
	h.WantHistory(row, "out delivered hello", "out delivered fine")
	life, err := h.Store.Life(t.Context(), h.History(row)[0].ID)
	var got []string
	for _, l := range life {
		got = append(got, strings.TrimSpace(l.What+" "+l.Detail))
	}
	if err != nil || strings.Join(got, ", ") != "refused blocked, failed rejected, replayed, queued" {
		t.Errorf("life %q, %v", got, err)
	}

	// All of them, also to an adapter that does not acknowledge; without one
	// they stay what they are.
	_ = c.WS.Close()
	await.Until(t, "the adapter goes", func() bool { return !h.Attached(row) })
	q := h.Channel("q", hosttest.WithQueue)
	c = h.Attach11(t, q, "ack")
	for _, text := range []string{"1", "2"} {
		h.MustSend(q, "c", text)
		c.OK(c.NextSent("send").MessageID, `"error":"no"`)
		await.Until(t, "it fails", func() bool { return h.Last(q, ledger.Out).State == ledger.Failed })
	}
	old := h.Attach(t, q)
	h.Operator("POST", "/dead-letters/replay?channel=d", "", 202) // none
	h.Operator("POST", "/dead-letters/replay", "", 202)
	if one, two := old.NextSent("send"), old.NextSent("send"); one.Text != "1" || two.Text != "2" {
		t.Errorf("came %+v, %+v", one, two)
	}
	h.WantHistory(q, "out sent 1", "out sent 2")
}

// A test message waits for the platform's word.
func TestChannelTest(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("t")
	c := h.Attach11(t, row, "ack")
	for answer, want := range map[string]string{`"preview_handle":"x"`: `"confirmed":true`, `"error":"no such chat"`: "Not taken: rejected."} {
		got := make(chan string, 1)
		go func() {
			_, body := h.Ask("POST", "/channels/t/test", `{"conversation_id":"c"}`)
			got <- body
		}()
		c.OK(c.NextSent("send").MessageID, answer)
		if body := await.Value(t, "answer", got); !strings.Contains(body, want) {
			t.Errorf("%s: %s", answer, body)
		}
	}
}

// A channel's own limits go before the host's.
func TestQueueLimits(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	h.Channel("l", hosttest.WithQueue)
	h.Operator("PATCH", "/channels/l", `{"queue_limits":{"length":2,"attempts":2}}`, 200)
	h.Operator("PATCH", "/channels/l", `{"queue_limits":{"length":-1}}`, 422)
	if _, body := h.Ask("GET", "/channels/l", ""); !strings.Contains(body, `"queue_limits":{"length":2,"attempts":2}`) {
		t.Errorf("shown as %s", body)
	}
	row := h.ByName("l")
	h.MustSend(row, "c", "1")
	h.MustSend(row, "c", "2")
	if _, err := h.Send(row, "c", "3"); !errors.Is(err, hub.ErrQueueFull) {
		t.Errorf("the third: %v", err)
	}
	c := h.Attach11(t, row, "ack")
	for range 2 {
		c.OK(c.NextSent("send").MessageID, `"error":"later","retryable":true`)
	}
	if f := c.NextSent("send"); f.Text != "2" {
		t.Errorf("came %+v", f)
	}
	h.WantHistory(row, "out failed/retries_exhausted 1", "out sent 2")
}
