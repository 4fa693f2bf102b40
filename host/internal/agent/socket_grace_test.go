package agent_test

import (
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
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

// A conversation that another agent answers does not wait for one that has gone: the
// other gets what waits, in order, whoever gives it the conversation.
func TestGivenToAnother(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func(*bed, *peer, ledger.Channel){
		"by the operator": func(b *bed, _ *peer, row ledger.Channel) {
			row.Agent = "two"
			b.reroute(row)
		},
		"by the user": func(_ *bed, user *peer, _ ledger.Channel) {
			user.asks("/agent two")
			user.shows("send", "two")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, agent.SocketOptions{Grace: 10 * patience})
			b.agent("one")
			b.agent("two")
			row := b.channel("irc", "one")
			one, two, user := b.connect("one", ""), b.connect("two", ""), b.adapter("irc", "text")
			user.asks("first")
			q := one.turn("first")
			user.asks("second")
			_ = one.ws.Close()
			b.gone("one")
			give(b, user, row)
			for _, text := range []string{"first", "second"} {
				q := two.turn(text)
				two.say("message", q, `,"text":"re `+text+`"`)
				user.shows("send", `"re `+text+`"`)
			}
			one = b.connect("one", "") // it is late: no turn is its own
			one.say("message", q, `,"text":"mine","message_id":"m"`)
			one.shows("message_ack", `"ok":false`, "not_supported")
			user.asks("third")
			two.say("message", two.turn("third"), `,"text":"re third"`)
			user.shows("send", `"re third"`)
		})
	}
}
