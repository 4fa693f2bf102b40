package agent_test

import (
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
)

// gone waits until the host knows that the agent's connection has ended.
func (b *bed) gone(name string) {
	b.t.Helper()
	b.eventually(name+" is gone", func() bool {
		found, _ := b.roster.Agent(name)
		return !found.(*agent.Desk).Connected()
	})
}

// The grace counts from the host's start too: of an agent that dials back nobody is told
// that it is away.
func TestRestartWithinGrace(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{Grace: patience})
	b.agent("one")
	row := b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text")
	user.asks("hello")
	q := a.turn("hello")
	b = b.again()
	user = b.adapter("irc", "text")
	b.eventually("the turn is begun", func() bool {
		all := b.hub.AgentTallies()
		return len(all) > 0 && (all[0].Active > 0 || all[0].Turns[2] > 0)
	})
	if since, away := b.hub.AgentAway("one"); away {
		t.Errorf("the host says that the agent is away since %s", since)
	}
	user.asks("and this?")
	a = b.connect("one", "")
	again := a.turn("hello")
	if !again.Repeated || again.TurnID != q.TurnID {
		t.Errorf("handed over as %+v", again)
	}
	a.say("message", again, `,"text":"hi"`)
	user.shows("send", `"hi"`)
	a.say("message", a.turn("and this?"), `,"text":"that too"`)
	user.shows("send", `"that too"`)
	b.wantHistory(row, "in handled hello", "in handled and this?", "out sent hi", "out sent that too")
}

// An agent that does not dial back after the host's start is away when the grace is over.
func TestRestartBeyondGrace(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{Grace: 50 * time.Millisecond})
	b.agent("one")
	b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text")
	user.asks("hello")
	a.turn("hello")
	b = b.again()
	user = b.adapter("irc", "text")
	user.shows("send", "not there just now")
	if _, away := b.hub.AgentAway("one"); !away {
		t.Error("the host does not say that the agent is away")
	}
}
