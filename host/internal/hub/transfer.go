package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// ErrTransfer is the error of a transfer to whom the channel does not allow, or
// the host does not know.
var ErrTransfer = errors.New("the conversation can't go to that agent")

// Transfer implements Reply.
func (r *reply) Transfer(ctx context.Context, agent, reason string) error {
	if !r.c.mayTransfer(agent) {
		return fmt.Errorf("%w: found %.80q, expected one of %s", ErrTransfer, agent, strings.Join(r.c.transferable(), ", "))
	}
	m := message.New(message.NewTransfer(message.TransferPart{Status: "completed", TargetAgent: agent, Reason: reason}))
	if _, over := r.answered(); over {
		return errOver
	}
	o, err := r.outgoing(ctx, m, r.agent)
	if err != nil {
		return err
	}
	o.apart = true
	_, err = r.sendKept(ctx, o)
	return err
}

// mayTransfer reports whether an agent may hand a conversation over to another.
func (c *Channel) mayTransfer(agent string) bool {
	ch := c.lock()
	p := ch.policy
	ch.unlock()
	_, known := c.hub.Agents.Agent(agent)
	return known && c.hub.mayChoose(p, agent)
}

// transferable lists whom a conversation may be handed over to.
func (c *Channel) transferable() []string {
	return slices.DeleteFunc(slices.Clone(c.hub.Agents.Names()), func(name string) bool { return !c.mayTransfer(name) })
}

// notTransferred are the states of a handover that leaves things as they are.
var notTransferred = []string{"failed", "error", "denied", "rejected", "cancelled", "canceled", "timed_out"}

// transfers finds the agent that a message hands its conversation over to; "" =
// none. One that is not known here is somebody else's matter.
func (c *Channel) transfers(m *message.Message) string {
	for _, p := range m.Parts {
		if p.Type != message.TypeTransfer {
			continue
		}
		t, err := message.As[message.TransferPart](p)
		if err != nil || t.TargetAgent == "" || slices.Contains(notTransferred, t.Status) {
			continue
		}
		if c.mayTransfer(t.TargetAgent) {
			return t.TargetAgent
		}
		c.hub.Log.Warn("conversation not handed over: its channel does not allow the agent, or there is none of that name", "channel", c.name(), "agent", fmt.Sprintf("%.80q", t.TargetAgent))
	}
	return ""
}
