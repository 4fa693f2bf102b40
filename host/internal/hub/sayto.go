package hub

import (
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// SayTo is Say to an agent, which the conversation is routed to from now on.
func (a *Attachment) SayTo(in *wire.Inbound, m message.Message, agent string) {
	in.Type, in.Text = wire.TypeMessage, m.Text
	a.receive(in, &said{m, time.Now(), agent})
}

// reroute gives the conversation the agent that the message is for.
func (f *inbound) reroute(ch *locked, s *scene) {
	if f.said == nil || f.said.to == "" {
		return
	}
	f.conv.settings.Agent = f.said.to
	settings := f.conv.settings // written each time: the last one may not have been
	s.settings, s.agent, f.unit.Set = settings, ch.agentName(f.conv), &settings
}
