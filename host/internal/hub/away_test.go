package hub_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

const (
	waitsNotice = "The agent is not there just now; your message waits."
	lateNotice  = "The agent did not come back in time, so your message was not answered. Please send it again."
)

// visitor is an agent that is away until it comes; it echoes what it is asked.
type visitor struct {
	here  atomic.Bool
	asked chan hub.Turn // also in vain
}

func newVisitor() *visitor { return &visitor{asked: make(chan hub.Turn, 10_000)} }

func (v *visitor) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	v.asked <- t
	if !v.here.Load() {
		return fmt.Errorf("visitor: %w", hub.ErrAway)
	}
	return r.Last(ctx, message.Text("heard: "+t.Message.Text), nil)
}

func (v *visitor) comes(h *hosttest.Host) {
	v.here.Store(true)
	h.Hub.AgentBack("visitor")
}

// What is said to an agent that is away waits in its order; the user is told once.
func TestAgentAway(t *testing.T) {
	t.Parallel()
	v := newVisitor()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"visitor": v}))
	row := h.Channel("c", hosttest.WithAgent("visitor"))
	c := h.Attach(t, row)
	events, end := h.Hub.Events.Subscribe()
	defer end()
	if h.AgentAway("c") {
		t.Error("away before anybody asked")
	}
	c.Send(hosttest.Say("a", "one"))
	c.Want(hosttest.Answer("a", waitsNotice))
	c.Send(hosttest.Say("a", "two"), hosttest.Say("a", "three"))
	c.Send(hosttest.Say("b", "/notify off"))
	c.Want(hosttest.Answer("b", "Notices are off."))
	c.Send(hosttest.Say("b", "four"))
	h.WantHistory(row, "in received one", "out sent "+waitsNotice, "in received two", "in received three",
		"in handled /notify off", "out sent Notices are off.", "in received four")
	c.Quiet()
	if !h.AgentAway("c") {
		t.Error("the channel's health does not say that its agent is away")
	}
	v.comes(h)
	got := map[string][]string{}
	for range 4 {
		line := c.MustNext()
		conversation := "a"
		if strings.Contains(line, `"conversation_id":"b"`) {
			conversation = "b"
		}
		got[conversation] = append(got[conversation], line)
	}
	for conversation, texts := range map[string][]string{"a": {"one", "two", "three"}, "b": {"four"}} {
		for i, text := range texts {
			if len(got[conversation]) != len(texts) || got[conversation][i] != hosttest.Answer(conversation, "heard: "+text) {
				t.Errorf("%s got %q", conversation, got[conversation])
			}
		}
	}
	if h.AgentAway("c") {
		t.Error("still away")
	}
	v.here.Store(false) // another absence
	c.Send(hosttest.Say("a", "five"))
	c.Want(hosttest.Answer("a", waitsNotice))
	v.comes(h)
	c.Want(hosttest.Answer("a", "heard: five"))
	await.Until(t, "all are handled", func() bool {
		for _, e := range h.History(row) {
			if e.Direction == ledger.In && e.State != ledger.Handled {
				return false
			}
		}
		return true
	})
	var told []hub.EventType
	for len(events) > 0 {
		if ev := <-events; ev.Agent == "visitor" {
			told = append(told, ev.Type)
		}
	}
	if got, want := fmt.Sprint(told), "[agent.detached agent.attached agent.detached agent.attached]"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

// However many conversations wait for an agent when the host is killed: each goes on where
// it was, and nothing is lost, answered twice or out of order.
func TestManyWaitOverAKill(t *testing.T) {
	t.Parallel()
	const conversations, turns = 300, 2
	v := newVisitor()
	named := hosttest.WithAgents(map[string]hub.Agent{"visitor": v})
	h := hosttest.Start(t, named)
	row := h.Channel("c", hosttest.WithAgent("visitor"), hosttest.WithQueue)
	c := h.Attach(t, row)
	for turn := range turns {
		for i := range conversations {
			c.Send(hosttest.Say(strconv.Itoa(i), strconv.Itoa(turn)))
		}
		if turn == 0 { // now the agent is known to be away
			for range conversations {
				c.MustNext()
			}
		}
	}
	await.Until(t, "all are stored", func() bool {
		n := 0
		for _, e := range h.History(row) {
			if e.Direction == ledger.In {
				n++
			}
		}
		return n == conversations*turns
	})

	h = h.Killed(named)
	c = h.Attach(t, row)
	v.comes(h)
	c.Send(hosttest.Say("0", strconv.Itoa(turns))) // behind what waits
	heard := map[string]int{}
	for range conversations*turns + 1 {
		var f struct {
			Conversation string `json:"conversation_id"`
			Text         string `json:"text"`
		}
		c.Read(&f)
		if want := "heard: " + strconv.Itoa(heard[f.Conversation]); f.Text != want {
			t.Fatalf("%s: %q, want %q", f.Conversation, f.Text, want)
		}
		heard[f.Conversation]++
	}
	c.Quiet()
	for i := range conversations {
		want := turns
		if i == 0 {
			want++
		}
		if n := heard[strconv.Itoa(i)]; n != want {
			t.Errorf("%d: %d answers, want %d", i, n, want)
		}
	}
}

// What waits outlives the host, and nobody is told twice of the same message.
func TestAwayRestart(t *testing.T) {
	t.Parallel()
	v := newVisitor()
	named := hosttest.WithAgents(map[string]hub.Agent{"visitor": v})
	h := hosttest.Start(t, named)
	row := h.Channel("c", hosttest.WithAgent("visitor"), hosttest.WithQueue)
	c := h.Attach(t, row)
	c.Send(hosttest.Say("a", "one"))
	c.Want(hosttest.Answer("a", waitsNotice))
	c.Send(hosttest.Say("a", "two"))
	h.WantHistory(row, "in received one", "out sent "+waitsNotice, "in received two")
	for range 2 {
		h = h.Again(named)
		if n := await.Value(t, "turn", v.asked); n.Message.Text != "one" {
			t.Errorf("asked %q", n.Message.Text)
		}
		c = h.Attach(t, row)
		c.Quiet()
		h.WantHistory(row, "in received one", "out sent "+waitsNotice, "in received two")
	}
	c.Send(hosttest.Say("a", "three"))
	h.WantHistory(row, "in received one", "out sent "+waitsNotice, "in received two", "in received three")
	v.comes(h)
	c.Want(hosttest.Answer("a", "heard: one"), hosttest.Answer("a", "heard: two"), hosttest.Answer("a", "heard: three"))
	h.WantHistory(row, "in handled one", "out sent "+waitsNotice, "in handled two", "in handled three", "out sent heard: one", "out sent heard: two", "out sent heard: three")
	h = h.Again(named)
	h.Attach(t, row).Quiet()
}

// What waits for too long fails visibly, and can be replayed.
func TestAwayTooLong(t *testing.T) {
	t.Parallel()
	v := newVisitor()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"visitor": v}), func(s *hosttest.Setup) { s.TTL = 2 * time.Second })
	row := h.Channel("c", hosttest.WithAgent("visitor"))
	c := h.Attach(t, row)
	c.Send(hosttest.Say("a", "one"), hosttest.Say("a", "two"))
	c.Want(hosttest.Answer("a", waitsNotice), hosttest.Answer("a", lateNotice))
	h.WantHistory(row, "in failed/agent_away one", "in failed/agent_away two", "out sent "+waitsNotice, "out sent "+lateNotice)
	dead := hosttest.Call[struct {
		Letters []struct{ Message struct{ ID, Text string } } `json:"dead_letters"`
	}](h, "GET", "/dead-letters", "", 200).Letters
	if len(dead) != 2 {
		t.Fatalf("dead letters %+v", dead)
	}
	v.comes(h)
	h.Operator("POST", "/dead-letters/"+dead[1].Message.ID+"/replay", "", 202)
	c.Want(hosttest.Answer("a", "heard: one"))
	c.Send(hosttest.Say("a", "three"))
	c.Want(hosttest.Answer("a", "heard: three"))
}

// Whoever waits may choose another agent, or not wait any more.
func TestAwayEnds(t *testing.T) {
	t.Parallel()
	v, slow := newVisitor(), hosttest.NewSlowEcho()
	h := hosttest.Start(t, hosttest.Parrots, hosttest.WithAgents(map[string]hub.Agent{"visitor": v, "slow": slow}))
	row := h.Channel("c", hosttest.WithAgent("visitor"))
	c := h.Attach(t, row)
	c.Send(hosttest.Say("a", "one"), hosttest.Say("a", "two"))
	c.Want(hosttest.Answer("a", waitsNotice))
	c.Send(hosttest.Say("a", "/agent slow"))
	c.Want(hosttest.Answer("a", "Agent slow answers from now on."), hosttest.Answer("a", "slow: one"), hosttest.Answer("a", "slow: two"))

	c.Send(hosttest.Say("b", "three"), hosttest.Say("b", "four"))
	c.Want(hosttest.Answer("b", waitsNotice))
	c.Send(hosttest.Say("b", "/stop"))
	c.Want(hosttest.Answer("b", "Stopped."))
	await.Until(t, "what was stopped is handled", func() bool {
		for _, e := range h.History(row) {
			if e.State == ledger.Received {
				return false
			}
		}
		return true
	})
	v.comes(h)
	c.Quiet()
	v.here.Store(false)

	c.Send(hosttest.Say("d", "five"))
	c.Want(hosttest.Answer("d", waitsNotice))
	h.Operator("PATCH", "/channels/c", `{"agent":"slow"}`, 200)
	c.Want(hosttest.Answer("d", "slow: five"))

	// An agent that is disabled is away, one that is enabled is back.
	hosttest.Call[any](h, "POST", "/agents", `{"name":"polly","kind":"parrot","config":{"say":"hello"},"enabled":false}`, 201)
	h.Operator("PATCH", "/channels/c", `{"agent":"polly"}`, 200)
	if !h.AgentAway("c") {
		t.Error("a disabled agent is not away")
	}
	c.Send(hosttest.Say("e", "six"))
	c.Want(hosttest.Answer("e", waitsNotice))
	h.Operator("PATCH", "/agents/polly", `{"enabled":true}`, 200)
	c.Want(hosttest.Answer("e", "hello: six"))
	if h.AgentAway("c") {
		t.Error("an enabled agent is away")
	}
}

// An agent whose row is gone, by whatever hand, is away until there is one again.
func TestAgentMissing(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Parrots)
	row := h.Channel("c", hosttest.WithAgent("polly"))
	c := h.Attach(t, row)
	if !h.AgentAway("c") {
		t.Error("nobody is not away")
	}
	c.Send(hosttest.Say("a", "one"))
	c.Want(hosttest.Answer("a", waitsNotice))
	hosttest.Call[any](h, "POST", "/agents", `{"name":"polly","kind":"parrot","config":{"say":"hello"}}`, 201)
	c.Want(hosttest.Answer("a", "hello: one"))
}

// An agent that does not say when it is back is asked now and then.
func TestAwayRetry(t *testing.T) {
	t.Parallel()
	v := newVisitor()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"visitor": v}), func(s *hosttest.Setup) { s.Retry, s.Ack = 20*time.Millisecond, 100*time.Millisecond })
	row := h.Channel("c", hosttest.WithAgent("visitor"))
	c := h.Attach(t, row)
	c.Send(hosttest.Say("a", "one"))
	c.Want(hosttest.Answer("a", waitsNotice))
	c.Send(hosttest.Say("b", "two"))
	c.Want(hosttest.Answer("b", waitsNotice))
	for range 5 {
		await.Value(t, "turn", v.asked)
	}
	v.here.Store(true)
	got := []string{c.MustNext(), c.MustNext()}
	if all := strings.Join(got, " "); !strings.Contains(all, "heard: one") || !strings.Contains(all, "heard: two") {
		t.Errorf("got %q", got)
	}
	c.Quiet()
}

// However many wait, they take nothing from others: no goroutine, no turn.
func TestAwayCostsNothing(t *testing.T) {
	t.Parallel()
	const many = 1500 // more than there are turns
	v, slow := newVisitor(), hosttest.NewSlowEcho()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"visitor": v, "slow": slow}))
	row, other := h.Channel("c", hosttest.WithAgent("visitor")), h.Channel("other", hosttest.WithAgent("slow"))
	c := h.Attach(t, row)
	for i := range many {
		c.Send(hosttest.Say(fmt.Sprint(i), "/notify off"), hosttest.Say(fmt.Sprint(i), fmt.Sprint("m", i)))
	}
	for range many {
		c.MustNext() // notices are off
		await.Value(t, "turn", v.asked)
	}
	d := h.Attach(t, other)
	d.Send(hosttest.Say("x", "hello"))
	d.Want(hosttest.Answer("x", "slow: hello"))
	// Some rest for the next turn: at most as many as there are turns.
	await.Until(t, "no goroutine waits for an agent", func() bool { return runtime.NumGoroutine() < 1500 })
	v.comes(h)
	heard := map[string]bool{}
	for range many {
		heard[c.MustNext()] = true
	}
	if len(heard) != many {
		t.Errorf("%d of %d were answered", len(heard), many)
	}
	c.Quiet()
}

// Who stops as soon as the notice is there has stopped, wherever the host is with it.
func TestStopAtTheNotice(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"visitor": newVisitor()}))
	row := h.Channel("c", hosttest.WithAgent("visitor"))
	c := h.Attach(t, row)
	for i := range 60 {
		name := strconv.Itoa(i)
		c.Send(hosttest.Say(name, "one"), hosttest.Say(name, "two"))
		c.Want(hosttest.Answer(name, waitsNotice))
		c.Send(hosttest.Say(name, "/stop"))
		c.Want(hosttest.Answer(name, "Stopped."))
	}
	await.Until(t, "all is handled", func() bool {
		return !slices.ContainsFunc(h.History(row), func(e ledger.Entry) bool { return e.State == ledger.Received })
	})
}
