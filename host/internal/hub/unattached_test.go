package hub_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestSendUnattached(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("nobody")
	if _, err := h.Send(row, "c", "x"); !errors.Is(err, hub.ErrNotAttached) {
		t.Errorf("Send = %v, want %v", err, hub.ErrNotAttached)
	}
	if err := h.Hub.Typing(t.Context(), row, "c", true); !errors.Is(err, hub.ErrNotAttached) {
		t.Errorf("Typing = %v, want %v", err, hub.ErrNotAttached)
	}
	c := h.Attach(t, row)
	c.Quiet()
	h.MustSend(row, "c", "y")
	c.Want(hosttest.Unasked("c", "y"))
	c.Vanish(h, row)
	if _, err := h.Send(row, "c", "z"); !errors.Is(err, hub.ErrNotAttached) {
		t.Errorf("Send = %v, want %v", err, hub.ErrNotAttached)
	}
	h.WantHistory(row, "out sent y")
	h.Operator("POST", "/channels/nobody/messages", `{"conversation_id":"c","text":"x"}`, 409)
}

// A queue keeps what nobody can be sent, in order, and through a restart.
func TestQueue(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("queue", hosttest.WithQueue)
	conversations := []string{"a", "b", "c"}
	n := 0
	var want []string
	enqueue := func(count int) {
		for range count {
			in, text := conversations[n%3], fmt.Sprint("message ", n)
			h.MustSend(row, in, text)
			want = append(want, hosttest.Unasked(in, text))
			n++
		}
	}
	enqueue(100)
	for _, e := range h.History(row) {
		if e.State != ledger.Queued {
			t.Fatalf("%s", hosttest.Line(e))
		}
	}
	h = h.Again()
	enqueue(50)
	c := h.Attach(t, row)
	c.Want(want...)
	want = nil
	enqueue(5)
	c.Want(want...)
	c.Quiet()
	await.Until(t, "all are sent", func() bool {
		for _, e := range h.History(row) {
			if e.State != ledger.Sent {
				return false
			}
		}
		return true
	})
	// Nothing comes a second time.
	h.Attach(t, row).Quiet()
	h.Again().Attach(t, row).Quiet()
}

// What waits is planned for whoever takes it.
func TestQueuePlansLate(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("late", hosttest.WithQueue)
	c := h.Attach(t, row, "buttons")
	c.Send(hosttest.Say("c", "hello"))
	c.MustNext()
	c.Vanish(h, row)
	offer := message.New(message.NewButtons("Pick", [][]wire.Button{{{Text: "A", Value: "a"}}}))
	if _, err := h.Hub.Send(t.Context(), row, hub.Outgoing{Conversation: "c", Message: offer}); err != nil {
		t.Fatal(err)
	}
	h.Attach(t, row).Want(hosttest.Answer("c", "Pick\n[A]"))
}

// Messages that arrive while the queue is being written go behind it.
func TestQueueStaysInOrder(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("order", hosttest.WithQueue)
	const queued, live = 150, 50
	for i := range queued {
		h.MustSend(row, "c", fmt.Sprint(i))
	}
	c := h.Dial(t, hosttest.Credentials{})
	c.Send(hosttest.RegisterFrame(hosttest.TokenOf(row.Name)))
	for i := range live {
		c.Send(hosttest.Say("c", fmt.Sprint(i)))
	}
	c.Want(hosttest.AckOK)
	for i := range live {
		h.MustSend(row, "c", fmt.Sprint(queued+i))
	}
	var sent, answered int
	for range queued + 2*live {
		got := c.MustNext()
		switch {
		case got == hosttest.Unasked("c", fmt.Sprint(sent)), got == hosttest.Answer("c", fmt.Sprint(sent)):
			sent++
		case got == hosttest.Answer("c", fmt.Sprint("echo: ", answered)):
			answered++
		default:
			t.Fatalf("read %s after %d messages and %d answers", got, sent, answered)
		}
	}
}

// A long queue is written as fast as the adapter reads it, and does not make it
// too slow.
func TestQueueWaitsForReader(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.SmallBuffer = true })
	row := h.Channel("long", hosttest.WithQueue)
	const queued = 1500
	padding := strings.Repeat("x", 4*bridge.MaxOutBytes/queued) // in all twice what closes a connection
	for i := range queued {
		h.MustSend(row, "c", fmt.Sprint(i, padding))
	}
	c := h.AttachSmall(t, row)
	waiting := func() int64 {
		n, err := h.Store.CountPending(t.Context(), row.Key)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	await.Until(t, "what is not read has filled the socket's buffers, and ours to the half", func() bool { return waiting() < queued*7/8 })
	for range 20 { // commits, each after what a queue would commit that waits for nobody
		if err := h.Store.Writable(); err != nil {
			t.Fatal(err)
		}
	}
	if n := waiting(); n < queued/2 {
		t.Errorf("%d of %d wait, though nobody reads", n, queued)
	}
	for i := range queued {
		c.Want(hosttest.Unasked("c", fmt.Sprint(i, padding)))
	}
}

func TestAdapterVanishesDuringTurn(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]bool{"no queue": false, "queue": true} {
		t.Run(name, func(t *testing.T) {
			slow := hosttest.NewHeld()
			h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"held": slow}))
			row := h.Channel("vanishes", hosttest.WithAgent("held"), func(c *ledger.Channel) { c.Queue = queue })
			events, end := h.Hub.Events.Subscribe()
			defer end()
			c := h.Attach(t, row, "card")
			c.Send(hosttest.Say("c", "question"))
			await.Value(t, "turn", slow.Turns)
			c.Vanish(h, row)
			slow.Answer(t, "answer")
			state := map[bool]string{true: "queued", false: "failed/adapter_not_attached"}[queue]
			h.WantHistory(row, "in handled question", "out "+state+" answer")
			seen := false
			for !seen {
				e := await.Value(t, "event", events)
				seen = e.Type == hub.EventCreated && hosttest.Line(e.Message) == "out "+state+" answer"
			}
			c = h.Attach(t, row)
			if queue {
				c.Want(hosttest.Answer("c", "answer"))
				h.WantHistory(row, "in handled question", "out sent answer")
			}
			c.Quiet()
		})
	}
}

// The next adapter gets the answer, if it comes in time.
func TestAdapterReturnsDuringTurn(t *testing.T) {
	t.Parallel()
	slow := hosttest.NewHeld()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"held": slow}))
	row := h.Channel("returns", hosttest.WithAgent("held"))
	c := h.Attach(t, row)
	c.Send(hosttest.Say("c", "question"))
	await.Value(t, "turn", slow.Turns)
	c.Vanish(h, row)
	c = h.Attach(t, row)
	slow.Answer(t, "answer")
	c.Want(hosttest.Answer("c", "answer"))
}

func TestAllowUsers(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("users", func(c *ledger.Channel) { c.Users = []string{"u", "42"} })
	c := h.Attach(t, row)
	c.Send(hosttest.Say("c", "mine"))
	c.Want(hosttest.Answer("c", "echo: mine"))
	rejected := []string{}
	for i, user := range []string{``, `"user_id":"",`, `"user_id":"U",`, `"user_id":"x","user_name":"u",`, `"user_id":" u",`} {
		text := fmt.Sprint("not mine ", i)
		c.Send(`{"type":"message","session_key":"theirs","conversation_id":"c",` + user + `"text":"` + text + `","reply_ctx":"theirs"}`)
		rejected = append(rejected, "in failed/rejected "+text)
	}
	c.Send(`{"type":"message","conversation_id":"c","user_id":"x","text":"/notify off"}`, `{"type":"card_action","conversation_id":"c","user_id":"x","action":"cmd:/help"}`)
	c.Send(hosttest.Say("c", "/notify"))
	c.Want(hosttest.Answer("c", "Notices are on. Use /notify on or /notify off."))
	want := append([]string{"in handled mine", "out sent echo: mine"}, rejected...)
	want = append(want, "in failed/rejected /notify off", "in failed/rejected cmd:/help", "in handled /notify", "out sent Notices are on. Use /notify on or /notify off.")
	h.WantHistory(row, want...)
	t.Run("the latest routing is of who may speak", func(t *testing.T) {
		c.Send(`{"type":"message","session_key":"theirs","conversation_id":"c","user_id":"x","text":"x","reply_ctx":"theirs"}`)
		await.Until(t, "stored", func() bool { return len(h.History(row)) == len(want)+1 })
		h.MustSend(row, "c", "unasked")
		c.Want(hosttest.Answer("c", "unasked"))
	})
	t.Run("changed while attached", func(t *testing.T) {
		h.Operator("PATCH", "/channels/users", `{"allow_users":["x"]}`, 200)
		c.Send(hosttest.Say("c", "no more"), `{"type":"message","conversation_id":"c","user_id":"x","text":"now me"}`)
		c.Want(`{"type":"send","session_key":"","conversation_id":"c","reply_ctx":null,"text":"echo: now me"}`)
		h.Operator("PATCH", "/channels/users", `{"allow_users":[]}`, 200)
		c.Send(hosttest.Say("c", "all"))
		c.Want(hosttest.Answer("c", "echo: all"))
	})
}

// A message to nobody but history.
func TestAgentNone(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("none", hosttest.WithAgent(hub.AgentNone))
	c := h.Attach(t, row)
	c.Send(hosttest.Say("c", "x"), hosttest.Press("c", "y"), hosttest.Say("c", "/stop"))
	c.Want(hosttest.Answer("c", "Nothing is running."))
	h.WantHistory(row, "in handled x", "in handled y", "in handled /stop", "out sent Nothing is running.")
}
