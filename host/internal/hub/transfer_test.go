package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
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
	k, slow := clerk{make(chan error, 1)}, hosttest.NewSlowEcho()
	named := hosttest.WithAgents(map[string]hub.Agent{"clerk": k, "slow": slow, "other": hosttest.NewSlowEcho()})
	h := hosttest.Start(t, named)
	row := h.Channel("c", hosttest.WithAgent("clerk"), func(c *ledger.Channel) { c.Agents = []string{"clerk", "slow", "none", "gone"} })
	c := h.Attach(t, row)
	for _, refused := range []string{"other", "nobody", "none", "gone", ""} {
		c.Send(hosttest.Say("a", "to "+refused))
		if err := await.Value(t, "error", k.failed); !errors.Is(err, hub.ErrTransfer) || !strings.Contains(err.Error(), "expected one of clerk, slow") {
			t.Errorf("to %s: %v", refused, err)
		}
	}
	c.Send(hosttest.Say("a", "part other")) // somebody else's matter
	c.Want(hosttest.Answer("a", "bye"), hosttest.Answer("a", "Handing over to other: completed."))
	c.Send(hosttest.Say("a", "failed slow"))
	c.Want(hosttest.Answer("a", "bye"), hosttest.Answer("a", "Handing over to slow: failed."))
	c.Send(hosttest.Say("a", "still you"))
	c.Want(hosttest.Answer("a", "clerk: still you"))

	c.Send(hosttest.Say("a", "to slow"))
	c.Want(hosttest.Answer("a", "Handing over to slow: completed."))
	c.Send(hosttest.Say("a", "hello"), hosttest.Say("b", "hello"))
	for range 2 {
		switch got := c.MustNext(); got {
		case hosttest.Answer("a", "slow: hello"), hosttest.Answer("b", "clerk: hello"):
		default:
			t.Errorf("got %s", got)
		}
	}
	c.Send(hosttest.Say("b", "part slow"))
	c.Want(hosttest.Answer("b", "bye"), hosttest.Answer("b", "Handing over to slow: completed."))
	c.Send(hosttest.Say("d", "last slow"), hosttest.Say("d", "at once"))
	c.Want(hosttest.Answer("d", "Handing over to slow: completed."), hosttest.Answer("d", "slow: at once"))
	h = h.Again(named)
	c = h.Attach(t, row)
	for _, conversation := range []string{"a", "b", "d"} {
		c.Send(hosttest.Say(conversation, "again"))
		c.Want(hosttest.Answer(conversation, "slow: again"))
	}
	page := hosttest.Call[struct {
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
type hasty struct{ *hosttest.Held }

func (hasty) Interrupted() bool { return true }

// A new message ends the running turn of an agent that wants that, and of no other.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	quick, slow := hasty{hosttest.NewHeld()}, hosttest.NewHeld()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"hasty": quick, "held": slow}))
	row, other := h.Channel("c", hosttest.WithAgent("hasty")), h.Channel("d", hosttest.WithAgent("held"))
	c, d := h.Attach(t, row), h.Attach(t, other)
	c.Send(hosttest.Say("a", "one"))
	d.Send(hosttest.Say("a", "one"))
	await.Value(t, "turn", quick.Turns)
	await.Value(t, "turn", slow.Turns)
	d.Send(hosttest.Say("a", "two"))
	c.Send(hosttest.Say("a", "two"))
	if err := await.Value(t, "end", quick.Ended); !errors.Is(err, hub.ErrReplaced) {
		t.Errorf("ended by %v", err)
	}
	if turn := await.Value(t, "turn", quick.Turns); turn.Message.Text != "two" {
		t.Errorf("asked %q", turn.Message.Text)
	}
	c.Send(hosttest.Say("a", "/stop"))
	c.Want(hosttest.Answer("a", "Stopped."))
	if err := await.Value(t, "end", quick.Ended); !errors.Is(err, hub.ErrStopped) {
		t.Errorf("ended by %v", err)
	}
	h.WantHistory(row, "in handled one", "in handled two", "in handled /stop", "out sent Stopped.")
	if len(slow.Ended) != 0 {
		t.Error("a turn was ended that nobody wanted ended")
	}
	slow.Answer(t, "first")
	slow.Answer(t, "second")
	d.Want(hosttest.Answer("a", "first"), hosttest.Answer("a", "second"))
}

// Who disables or deletes an agent, or a channel, ends its turns.
func TestGoneWhileRunning(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Parrots)
	hosttest.Call[any](h, "POST", "/agents", `{"name":"silent","kind":"mute"}`, 201)
	found, _ := h.Roster.Agent("silent")
	silent := found.(*hosttest.Held)
	row := h.Channel("c", hosttest.WithAgent("silent"))
	c := h.Attach(t, row)
	c.Send(hosttest.Say("a", "one"))
	await.Value(t, "turn", silent.Turns)
	h.Operator("PATCH", "/agents/silent", `{"enabled":false}`, 200)
	if err := await.Value(t, "end", silent.Ended); !errors.Is(err, hub.ErrAgentGone) || !errors.Is(err, hub.ErrAway) {
		t.Errorf("ended by %v", err)
	}
	c.Want(hosttest.Answer("a", waitsNotice))
	h.Operator("PATCH", "/agents/silent", `{"enabled":true}`, 200)
	found, _ = h.Roster.Agent("silent")
	silent = found.(*hosttest.Held)
	if turn := await.Value(t, "turn again", silent.Turns); turn.Message.Text != "one" || !turn.Repeated {
		t.Errorf("asked %+v", turn)
	}
	silent.Answer(t, "there")
	c.Want(hosttest.Answer("a", "there"))

	// Chosen by the user alone, it may be deleted: the channel's agent takes over.
	h.Operator("PATCH", "/channels/c", `{"agent":"echo"}`, 200)
	c.Send(hosttest.Say("a", "/agent silent"))
	c.Want(hosttest.Answer("a", "Agent silent answers from now on."))
	c.Send(hosttest.Say("a", "two"))
	await.Value(t, "turn", silent.Turns)
	h.Operator("DELETE", "/agents/silent", "", 204)
	if err := await.Value(t, "end", silent.Ended); !errors.Is(err, hub.ErrAgentGone) {
		t.Errorf("ended by %v", err)
	}
	c.Want(hosttest.Answer("a", "echo: two"))

	hosttest.Call[any](h, "POST", "/agents", `{"name":"silent","kind":"mute"}`, 201)
	found, _ = h.Roster.Agent("silent")
	silent = found.(*hosttest.Held)
	gone := h.Channel("gone", hosttest.WithAgent("silent"))
	h.Attach(t, gone).Send(hosttest.Say("a", "three"), hosttest.Say("a", "four"))
	await.Value(t, "turn", silent.Turns)
	h.Operator("DELETE", "/channels/gone", "", 204)
	if err := await.Value(t, "end", silent.Ended); !errors.Is(err, hub.ErrChannelGone) {
		t.Errorf("ended by %v", err)
	}
	if h.Log.Count("turn failed") != 0 {
		t.Error("the end of a turn is logged as its failure")
	}
}
