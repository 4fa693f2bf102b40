package bridge_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
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

func (v *visitor) comes(h *host) {
	v.here.Store(true)
	h.hub.AgentBack("visitor")
}

func (h *host) agentAway(channel string) bool {
	h.t.Helper()
	health := rest[struct {
		Health struct {
			Away  bool       `json:"agent_away"`
			Since *time.Time `json:"agent_away_since"`
		}
	}](h, "GET", "/channels/"+channel, "", 200).Health
	if !health.Away && health.Since != nil || health.Since != nil && time.Since(*health.Since) > time.Minute {
		h.t.Errorf("away is %v, since %v", health.Away, health.Since)
	}
	return health.Away
}

// What is said to an agent that is away waits in its order; the user is told once.
func TestAgentAway(t *testing.T) {
	t.Parallel()
	v := newVisitor()
	h := start(t, agents(map[string]hub.Agent{"visitor": v}))
	row := h.channel("c", withAgent("visitor"))
	c := h.attach(t, row)
	events, end := h.hub.Events.Subscribe()
	defer end()
	if h.agentAway("c") {
		t.Error("away before anybody asked")
	}
	c.send(say("a", "one"))
	c.want(answer("a", waitsNotice))
	c.send(say("a", "two"), say("a", "three"))
	c.send(say("b", "/notify off"))
	c.want(answer("b", "Notices are off."))
	c.send(say("b", "four"))
	h.wantHistory(row, "in received one", "out sent "+waitsNotice, "in received two", "in received three",
		"in handled /notify off", "out sent Notices are off.", "in received four")
	c.quiet()
	if !h.agentAway("c") {
		t.Error("the channel's health does not say that its agent is away")
	}
	v.comes(h)
	got := map[string][]string{}
	for range 4 {
		line := c.mustNext()
		conversation := "a"
		if strings.Contains(line, `"conversation_id":"b"`) {
			conversation = "b"
		}
		got[conversation] = append(got[conversation], line)
	}
	for conversation, texts := range map[string][]string{"a": {"one", "two", "three"}, "b": {"four"}} {
		for i, text := range texts {
			if len(got[conversation]) != len(texts) || got[conversation][i] != answer(conversation, "heard: "+text) {
				t.Errorf("%s got %q", conversation, got[conversation])
			}
		}
	}
	if h.agentAway("c") {
		t.Error("still away")
	}
	v.here.Store(false) // another absence
	c.send(say("a", "five"))
	c.want(answer("a", waitsNotice))
	v.comes(h)
	c.want(answer("a", "heard: five"))
	eventually(t, "all are handled", func() bool {
		for _, e := range h.history(row) {
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

// What waits outlives the host, and nobody is told twice of the same message.
func TestAwayRestart(t *testing.T) {
	t.Parallel()
	v := newVisitor()
	named := agents(map[string]hub.Agent{"visitor": v})
	h := start(t, named)
	row := h.channel("c", withAgent("visitor"), withQueue)
	c := h.attach(t, row)
	c.send(say("a", "one"))
	c.want(answer("a", waitsNotice))
	c.send(say("a", "two"))
	h.wantHistory(row, "in received one", "out sent "+waitsNotice, "in received two")
	for range 2 {
		h = h.again(named)
		if n := receive(t, "turn", v.asked); n.Message.Text != "one" {
			t.Errorf("asked %q", n.Message.Text)
		}
		c = h.attach(t, row)
		c.quiet()
		h.wantHistory(row, "in received one", "out sent "+waitsNotice, "in received two")
	}
	c.send(say("a", "three"))
	h.wantHistory(row, "in received one", "out sent "+waitsNotice, "in received two", "in received three")
	v.comes(h)
	c.want(answer("a", "heard: one"), answer("a", "heard: two"), answer("a", "heard: three"))
	h.wantHistory(row, "in handled one", "out sent "+waitsNotice, "in handled two", "in handled three", "out sent heard: one", "out sent heard: two", "out sent heard: three")
	h = h.again(named)
	h.attach(t, row).quiet()
}

// What waits for too long fails visibly, and can be replayed.
func TestAwayTooLong(t *testing.T) {
	t.Parallel()
	v := newVisitor()
	h := start(t, agents(map[string]hub.Agent{"visitor": v}), func(s *setup) { s.ttl = 2 * time.Second })
	row := h.channel("c", withAgent("visitor"))
	c := h.attach(t, row)
	c.send(say("a", "one"), say("a", "two"))
	c.want(answer("a", waitsNotice), answer("a", lateNotice))
	h.wantHistory(row, "in failed/agent_away one", "in failed/agent_away two", "out sent "+waitsNotice, "out sent "+lateNotice)
	dead := rest[struct {
		Letters []struct{ Message struct{ ID, Text string } } `json:"dead_letters"`
	}](h, "GET", "/dead-letters", "", 200).Letters
	if len(dead) != 2 {
		t.Fatalf("dead letters %+v", dead)
	}
	v.comes(h)
	h.operator("POST", "/dead-letters/"+dead[1].Message.ID+"/replay", "", 202)
	c.want(answer("a", "heard: one"))
	c.send(say("a", "three"))
	c.want(answer("a", "heard: three"))
}

// Whoever waits may choose another agent, or not wait any more.
func TestAwayEnds(t *testing.T) {
	t.Parallel()
	v, slow := newVisitor(), newSlowEcho()
	h := start(t, parrots, agents(map[string]hub.Agent{"visitor": v, "slow": slow}))
	row := h.channel("c", withAgent("visitor"))
	c := h.attach(t, row)
	c.send(say("a", "one"), say("a", "two"))
	c.want(answer("a", waitsNotice))
	c.send(say("a", "/agent slow"))
	c.want(answer("a", "Agent slow answers from now on."), answer("a", "slow: one"), answer("a", "slow: two"))

	c.send(say("b", "three"), say("b", "four"))
	c.want(answer("b", waitsNotice))
	c.send(say("b", "/stop"))
	c.want(answer("b", "Stopped."))
	eventually(t, "what was stopped is handled", func() bool {
		for _, e := range h.history(row) {
			if e.State == ledger.Received {
				return false
			}
		}
		return true
	})
	v.comes(h)
	c.quiet()
	v.here.Store(false)

	c.send(say("d", "five"))
	c.want(answer("d", waitsNotice))
	h.operator("PATCH", "/channels/c", `{"agent":"slow"}`, 200)
	c.want(answer("d", "slow: five"))

	// An agent that is disabled is away, one that is enabled is back.
	rest[agentRow](h, "POST", "/agents", `{"name":"polly","kind":"parrot","config":{"say":"hello"},"enabled":false}`, 201)
	h.operator("PATCH", "/channels/c", `{"agent":"polly"}`, 200)
	if !h.agentAway("c") {
		t.Error("a disabled agent is not away")
	}
	c.send(say("e", "six"))
	c.want(answer("e", waitsNotice))
	h.operator("PATCH", "/agents/polly", `{"enabled":true}`, 200)
	c.want(answer("e", "hello: six"))
	if h.agentAway("c") {
		t.Error("an enabled agent is away")
	}
}

// An agent whose row is gone, by whatever hand, is away until there is one again.
func TestAgentMissing(t *testing.T) {
	t.Parallel()
	h := start(t, parrots)
	row := h.channel("c", withAgent("polly"))
	c := h.attach(t, row)
	if !h.agentAway("c") {
		t.Error("nobody is not away")
	}
	c.send(say("a", "one"))
	c.want(answer("a", waitsNotice))
	rest[agentRow](h, "POST", "/agents", `{"name":"polly","kind":"parrot","config":{"say":"hello"}}`, 201)
	c.want(answer("a", "hello: one"))
}

// An agent that does not say when it is back is asked now and then.
func TestAwayRetry(t *testing.T) {
	t.Parallel()
	v := newVisitor()
	h := start(t, agents(map[string]hub.Agent{"visitor": v}), func(s *setup) { s.retry, s.ack = 20*time.Millisecond, 100*time.Millisecond })
	row := h.channel("c", withAgent("visitor"))
	c := h.attach(t, row)
	c.send(say("a", "one"))
	c.want(answer("a", waitsNotice))
	c.send(say("b", "two"))
	c.want(answer("b", waitsNotice))
	for range 5 {
		receive(t, "turn", v.asked)
	}
	v.here.Store(true)
	got := []string{c.mustNext(), c.mustNext()}
	if all := strings.Join(got, " "); !strings.Contains(all, "heard: one") || !strings.Contains(all, "heard: two") {
		t.Errorf("got %q", got)
	}
	c.quiet()
}

// However many wait, they take nothing from others: no goroutine, no turn.
func TestAwayCostsNothing(t *testing.T) {
	t.Parallel()
	const many = 1500 // more than there are turns
	v, slow := newVisitor(), newSlowEcho()
	h := start(t, agents(map[string]hub.Agent{"visitor": v, "slow": slow}))
	row, other := h.channel("c", withAgent("visitor")), h.channel("other", withAgent("slow"))
	c := h.attach(t, row)
	for i := range many {
		c.send(say(fmt.Sprint(i), "/notify off"), say(fmt.Sprint(i), fmt.Sprint("m", i)))
	}
	for range many {
		c.mustNext() // notices are off
		receive(t, "turn", v.asked)
	}
	d := h.attach(t, other)
	d.send(say("x", "hello"))
	d.want(answer("x", "slow: hello"))
	// Some rest for the next turn: at most as many as there are turns.
	eventually(t, "no goroutine waits for an agent", func() bool { return runtime.NumGoroutine() < 1500 })
	v.comes(h)
	heard := map[string]bool{}
	for range many {
		heard[c.mustNext()] = true
	}
	if len(heard) != many {
		t.Errorf("%d of %d were answered", len(heard), many)
	}
	c.quiet()
}
