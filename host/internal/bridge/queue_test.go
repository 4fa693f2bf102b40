package bridge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// vanish closes the connection and waits until the host knows.
func (c *client) vanish(h *host, row ledger.Channel) {
	c.t.Helper()
	_ = c.ws.Close()
	eventually(c.t, "detached", func() bool { return !h.attached(row) })
}

func TestSendUnattached(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("nobody")
	if _, err := h.send(row, "c", "x"); !errors.Is(err, hub.ErrNotAttached) {
		t.Errorf("Send = %v, want %v", err, hub.ErrNotAttached)
	}
	if err := h.hub.Typing(t.Context(), row, "c", true); !errors.Is(err, hub.ErrNotAttached) {
		t.Errorf("Typing = %v, want %v", err, hub.ErrNotAttached)
	}
	c := h.attach(t, row)
	c.quiet()
	h.mustSend(row, "c", "y")
	c.want(unasked("c", "y"))
	c.vanish(h, row)
	if _, err := h.send(row, "c", "z"); !errors.Is(err, hub.ErrNotAttached) {
		t.Errorf("Send = %v, want %v", err, hub.ErrNotAttached)
	}
	h.wantHistory(row, "out sent y")
	h.operator("POST", "/channels/nobody/messages", `{"conversation_id":"c","text":"x"}`, 409)
}

// A queue keeps what nobody can be sent, in order, and through a restart.
func TestQueue(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("queue", withQueue)
	conversations := []string{"a", "b", "c"}
	n := 0
	var want []string
	enqueue := func(count int) {
		for range count {
			in, text := conversations[n%3], fmt.Sprint("message ", n)
			h.mustSend(row, in, text)
			want = append(want, unasked(in, text))
			n++
		}
	}
	enqueue(100)
	for _, e := range h.history(row) {
		if e.State != ledger.Queued {
			t.Fatalf("%s", line(e))
		}
	}
	h = h.again()
	enqueue(50)
	c := h.attach(t, row)
	c.want(want...)
	want = nil
	enqueue(5)
	c.want(want...)
	c.quiet()
	eventually(t, "all are sent", func() bool {
		for _, e := range h.history(row) {
			if e.State != ledger.Sent {
				return false
			}
		}
		return true
	})
	// Nothing comes a second time.
	h.attach(t, row).quiet()
	h.again().attach(t, row).quiet()
}

// What waits is planned for whoever takes it.
func TestQueuePlansLate(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("late", withQueue)
	c := h.attach(t, row, "buttons")
	c.send(say("c", "hello"))
	c.mustNext()
	c.vanish(h, row)
	offer := message.New(message.NewButtons("Pick", [][]wire.Button{{{Text: "A", Value: "a"}}}))
	if _, err := h.hub.Send(t.Context(), row, hub.Outgoing{Conversation: "c", Message: offer}); err != nil {
		t.Fatal(err)
	}
	h.attach(t, row).want(answer("c", "Pick\n[A]"))
}

// Messages that arrive while the queue is being written go behind it.
func TestQueueStaysInOrder(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("order", withQueue)
	const queued, live = 150, 50
	for i := range queued {
		h.mustSend(row, "c", fmt.Sprint(i))
	}
	c := h.dial(t, credentials{})
	c.send(registerFrame(tokenOf(row.Name)))
	for i := range live {
		c.send(say("c", fmt.Sprint(i)))
	}
	c.want(ackOK)
	for i := range live {
		h.mustSend(row, "c", fmt.Sprint(queued+i))
	}
	var sent, answered int
	for range queued + 2*live {
		got := c.mustNext()
		switch {
		case got == unasked("c", fmt.Sprint(sent)), got == answer("c", fmt.Sprint(sent)):
			sent++
		case got == answer("c", fmt.Sprint("echo: ", answered)):
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
	h := start(t)
	row := h.channel("long", withQueue)
	const queued = 1500
	padding := strings.Repeat("x", 4*bridge.MaxOutBytes/queued)
	for i := range queued {
		h.mustSend(row, "c", fmt.Sprint(i, padding))
	}
	c := h.dial(t, credentials{})
	c.send(registerFrame(tokenOf(row.Name)))
	c.want(ackOK)
	time.Sleep(500 * time.Millisecond) // what is not read fills the socket's buffers, and then ours
	for i := range queued {
		c.want(unasked("c", fmt.Sprint(i, padding)))
	}
}

func TestAdapterVanishesDuringTurn(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]bool{"no queue": false, "queue": true} {
		t.Run(name, func(t *testing.T) {
			slow := newHeld()
			h := start(t, agents(map[string]hub.Agent{"held": slow}))
			row := h.channel("vanishes", withAgent("held"), func(c *ledger.Channel) { c.Queue = queue })
			events, end := h.hub.Events.Subscribe()
			defer end()
			c := h.attach(t, row, "card")
			c.send(say("c", "question"))
			receive(t, "turn", slow.turns)
			c.vanish(h, row)
			slow.answers <- "answer"
			state := map[bool]string{true: "queued", false: "failed/adapter_not_attached"}[queue]
			h.wantHistory(row, "in handled question", "out "+state+" answer")
			seen := false
			for !seen {
				e := receive(t, "event", events)
				seen = e.Type == hub.EventCreated && line(e.Message) == "out "+state+" answer"
			}
			c = h.attach(t, row)
			if queue {
				c.want(answer("c", "answer"))
				h.wantHistory(row, "in handled question", "out sent answer")
			}
			c.quiet()
		})
	}
}

// The next adapter gets the answer, if it comes in time.
func TestAdapterReturnsDuringTurn(t *testing.T) {
	t.Parallel()
	slow := newHeld()
	h := start(t, agents(map[string]hub.Agent{"held": slow}))
	row := h.channel("returns", withAgent("held"))
	c := h.attach(t, row)
	c.send(say("c", "question"))
	receive(t, "turn", slow.turns)
	c.vanish(h, row)
	c = h.attach(t, row)
	slow.answers <- "answer"
	c.want(answer("c", "answer"))
}

func TestAllowUsers(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("users", func(c *ledger.Channel) { c.Users = []string{"u", "42"} })
	c := h.attach(t, row)
	c.send(say("c", "mine"))
	c.want(answer("c", "echo: mine"))
	rejected := []string{}
	for i, user := range []string{``, `"user_id":"",`, `"user_id":"U",`, `"user_id":"x","user_name":"u",`, `"user_id":" u",`} {
		text := fmt.Sprint("not mine ", i)
		c.send(`{"type":"message","session_key":"theirs","conversation_id":"c",` + user + `"text":"` + text + `","reply_ctx":"theirs"}`)
		rejected = append(rejected, "in failed/rejected "+text)
	}
	c.send(`{"type":"message","conversation_id":"c","user_id":"x","text":"/notify off"}`, `{"type":"card_action","conversation_id":"c","user_id":"x","action":"cmd:/help"}`)
	c.send(say("c", "/notify"))
	c.want(answer("c", "Notices are on. Use /notify on or /notify off."))
	want := append([]string{"in handled mine", "out sent echo: mine"}, rejected...)
	want = append(want, "in failed/rejected /notify off", "in failed/rejected cmd:/help", "in handled /notify", "out sent Notices are on. Use /notify on or /notify off.")
	h.wantHistory(row, want...)
	t.Run("the latest routing is of who may speak", func(t *testing.T) {
		c.send(`{"type":"message","session_key":"theirs","conversation_id":"c","user_id":"x","text":"x","reply_ctx":"theirs"}`)
		eventually(t, "stored", func() bool { return len(h.history(row)) == len(want)+1 })
		h.mustSend(row, "c", "unasked")
		c.want(answer("c", "unasked"))
	})
	t.Run("changed while attached", func(t *testing.T) {
		h.operator("PATCH", "/channels/users", `{"allow_users":["x"]}`, 200)
		c.send(say("c", "no more"), `{"type":"message","conversation_id":"c","user_id":"x","text":"now me"}`)
		c.want(`{"type":"send","session_key":"","conversation_id":"c","reply_ctx":null,"text":"echo: now me"}`)
		h.operator("PATCH", "/channels/users", `{"allow_users":[]}`, 200)
		c.send(say("c", "all"))
		c.want(answer("c", "echo: all"))
	})
}

// A message to nobody but history.
func TestAgentNone(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("none", withAgent(hub.AgentNone))
	c := h.attach(t, row)
	c.send(say("c", "x"), press("c", "y"), say("c", "/stop"))
	c.want(answer("c", "Nothing is running."))
	h.wantHistory(row, "in handled x", "in handled y", "in handled /stop", "out sent Nothing is running.")
}
