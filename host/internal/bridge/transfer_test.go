package bridge_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// clerk hands conversations over: to WHOM on "to WHOM", by a part on "part WHOM" and "last WHOM".
type clerk struct{ failed chan error }

func (k clerk) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	how, whom, _ := strings.Cut(t.Message.Text, " ")
	switch how {
	case "to":
		if err := r.Transfer(ctx, whom, "ask them"); err != nil {
			k.failed <- err
		}
		return nil
	case "last":
		return r.Last(ctx, message.New(message.NewTransfer(message.TransferPart{Status: "completed", TargetAgent: whom})), nil)
	case "part", "failed":
		status := map[string]string{"part": "completed", "failed": "failed"}[how]
		_, err := r.Send(ctx, message.New(message.NewText("bye"), message.NewTransfer(message.TransferPart{Status: status, TargetAgent: whom})))
		return err
	}
	_, err := r.Send(ctx, message.Text("clerk: "+t.Message.Text))
	return err
}

// An agent hands its conversation over to another that the channel allows: the
// history says so, and the user's next message goes there, also after a restart.
func TestTransfer(t *testing.T) {
	t.Parallel()
	k, slow := clerk{make(chan error, 1)}, newSlowEcho()
	named := agents(map[string]hub.Agent{"clerk": k, "slow": slow, "other": newSlowEcho()})
	h := start(t, named)
	row := h.channel("c", withAgent("clerk"), func(c *ledger.Channel) { c.Agents = []string{"clerk", "slow", "none", "gone"} })
	c := h.attach(t, row)
	for _, refused := range []string{"other", "nobody", "none", "gone", ""} {
		c.send(say("a", "to "+refused))
		if err := receive(t, "error", k.failed); !errors.Is(err, hub.ErrTransfer) || !strings.Contains(err.Error(), "expected one of clerk, slow") {
			t.Errorf("to %s: %v", refused, err)
		}
	}
	c.send(say("a", "part other")) // somebody else's matter
	c.want(answer("a", "bye"), answer("a", "Handing over to other: completed."))
	c.send(say("a", "failed slow"))
	c.want(answer("a", "bye"), answer("a", "Handing over to slow: failed."))
	c.send(say("a", "still you"))
	c.want(answer("a", "clerk: still you"))

	c.send(say("a", "to slow"))
	c.want(answer("a", "Handing over to slow: completed."))
	c.send(say("a", "hello"), say("b", "hello"))
	for range 2 {
		switch got := c.mustNext(); got {
		case answer("a", "slow: hello"), answer("b", "clerk: hello"):
		default:
			t.Errorf("got %s", got)
		}
	}
	c.send(say("b", "part slow"))
	c.want(answer("b", "bye"), answer("b", "Handing over to slow: completed."))
	c.send(say("d", "last slow"), say("d", "at once"))
	c.want(answer("d", "Handing over to slow: completed."), answer("d", "slow: at once"))
	h = h.again(named)
	c = h.attach(t, row)
	for _, conversation := range []string{"a", "b", "d"} {
		c.send(say(conversation, "again"))
		c.want(answer(conversation, "slow: again"))
	}
	page := rest[struct {
		Messages []struct {
			AgentName string `json:"agent_name"`
			Text      string
			Parts     []struct{ Type, Status, TargetAgent, Reason string }
		}
	}](h, "GET", "/channels/c/messages?conversation_id=a&limit=500", "", 200)
	found := 0
	for _, m := range page.Messages {
		for _, p := range m.Parts {
			if p.Type == "agent-transfer" && p.TargetAgent == "slow" && p.Status == "completed" && p.Reason == "ask them" && m.AgentName == "clerk" {
				found++
			}
		}
	}
	if found != 1 || page.Messages[0].AgentName != "slow" {
		t.Errorf("history %+v", page.Messages)
	}
}

// hasty wants its turn ended when the user goes on.
type hasty struct{ *held }

func (hasty) Interrupted() bool { return true }

// A new message ends the running turn of an agent that wants that, and of no other.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	quick, slow := hasty{newHeld()}, newHeld()
	h := start(t, agents(map[string]hub.Agent{"hasty": quick, "held": slow}))
	row, other := h.channel("c", withAgent("hasty")), h.channel("d", withAgent("held"))
	c, d := h.attach(t, row), h.attach(t, other)
	c.send(say("a", "one"))
	d.send(say("a", "one"))
	receive(t, "turn", quick.turns)
	receive(t, "turn", slow.turns)
	d.send(say("a", "two"))
	c.send(say("a", "two"))
	if err := receive(t, "end", quick.ended); !errors.Is(err, hub.ErrReplaced) {
		t.Errorf("ended by %v", err)
	}
	if turn := receive(t, "turn", quick.turns); turn.Message.Text != "two" {
		t.Errorf("asked %q", turn.Message.Text)
	}
	c.send(say("a", "/stop"))
	c.want(answer("a", "Stopped."))
	if err := receive(t, "end", quick.ended); !errors.Is(err, hub.ErrStopped) {
		t.Errorf("ended by %v", err)
	}
	h.wantHistory(row, "in handled one", "in handled two", "in handled /stop", "out sent Stopped.")
	if len(slow.ended) != 0 {
		t.Error("a turn was ended that nobody wanted ended")
	}
	slow.answers <- "first"
	slow.answers <- "second"
	d.want(answer("a", "first"), answer("a", "second"))
}

// Who disables or deletes an agent, or a channel, ends its turns.
func TestGoneWhileRunning(t *testing.T) {
	t.Parallel()
	h := start(t, parrots)
	rest[agentRow](h, "POST", "/agents", `{"name":"silent","kind":"mute"}`, 201)
	found, _ := h.roster.Agent("silent")
	silent := found.(*held)
	row := h.channel("c", withAgent("silent"))
	c := h.attach(t, row)
	c.send(say("a", "one"))
	receive(t, "turn", silent.turns)
	h.operator("PATCH", "/agents/silent", `{"enabled":false}`, 200)
	if err := receive(t, "end", silent.ended); !errors.Is(err, hub.ErrAgentGone) || !errors.Is(err, hub.ErrAway) {
		t.Errorf("ended by %v", err)
	}
	c.want(answer("a", waitsNotice))
	h.operator("PATCH", "/agents/silent", `{"enabled":true}`, 200)
	found, _ = h.roster.Agent("silent")
	silent = found.(*held)
	if turn := receive(t, "turn again", silent.turns); turn.Message.Text != "one" || !turn.Repeated {
		t.Errorf("asked %+v", turn)
	}
	silent.answers <- "there"
	c.want(answer("a", "there"))

	// Chosen by the user alone, it may be deleted: the channel's agent takes over.
	h.operator("PATCH", "/channels/c", `{"agent":"echo"}`, 200)
	c.send(say("a", "/agent silent"))
	c.want(answer("a", "Agent silent answers from now on."))
	c.send(say("a", "two"))
	receive(t, "turn", silent.turns)
	h.operator("DELETE", "/agents/silent", "", 204)
	if err := receive(t, "end", silent.ended); !errors.Is(err, hub.ErrAgentGone) {
		t.Errorf("ended by %v", err)
	}
	c.want(answer("a", "echo: two"))

	rest[agentRow](h, "POST", "/agents", `{"name":"silent","kind":"mute"}`, 201)
	found, _ = h.roster.Agent("silent")
	silent = found.(*held)
	gone := h.channel("gone", withAgent("silent"))
	h.attach(t, gone).send(say("a", "three"), say("a", "four"))
	receive(t, "turn", silent.turns)
	h.operator("DELETE", "/channels/gone", "", 204)
	if err := receive(t, "end", silent.ended); !errors.Is(err, hub.ErrChannelGone) {
		t.Errorf("ended by %v", err)
	}
	if h.log.count("turn failed") != 0 {
		t.Error("the end of a turn is logged as its failure")
	}
}
