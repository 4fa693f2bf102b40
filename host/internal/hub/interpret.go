package hub

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// scene is what a frame meets: a snapshot taken under the mutex.
type scene struct {
	policy   *policy
	view     wire.View
	settings ledger.Settings
	agent    string
	offer    render.Offer
	outlook  outlook
	running  bool // a turn runs or waits
}

// enter takes the snapshot; false if the attachment is not current any more.
func (f *inbound) enter(o ledger.Origin, aside bool) (scene, *wire.Error) {
	c, conv := f.a.channel, f.conv
	ch := c.lock()
	defer ch.unlock()
	if ch.attached != f.a {
		return scene{}, &wire.Error{Code: wire.CodeStorageUnavailable, Message: "this connection was replaced by a newer one: send it there"}
	}
	if conv.turns >= maxWaitingTurns {
		return scene{}, &wire.Error{Code: wire.CodeRateLimited, Message: fmt.Sprintf(
			"conversation has %d messages that wait for an answer, which is the limit: send again later", maxWaitingTurns)}
	}
	s := scene{
		policy: ch.policy, view: f.a.view, settings: conv.settings, agent: ch.agentName(conv), offer: conv.offer,
		outlook: ch.outbox.outlook(f.a), running: conv.turns > 0,
	}
	if s.policy.maySpeak(o.UserID) && !aside {
		conv.latest = o
		f.pass()
		f.reroute(ch, &s)
	}
	return s, nil
}

// interpret decides what the frame is and who answers it.
func (f *inbound) interpret(in *wire.Inbound) *wire.Error {
	origin := ledger.Origin{SessionKey: in.SessionKey, UserID: in.UserID, UserName: in.UserName, ReplyCtx: string(in.ReplyCtx)}
	aside := isAside(in.Type)
	s, werr := f.enter(origin, aside)
	if werr != nil {
		return werr
	}
	f.row = ledger.Row{Direction: ledger.In, State: ledger.Handled, Text: in.Text, Origin: packed.AppendOrigin(nil, origin), Aside: aside}
	if f.a.Protocol != wire.V10 && !aside {
		f.row.PlatformID = in.MessageID
	}
	if !s.policy.maySpeak(in.UserID) {
		f.row.State, f.row.Reason = ledger.Failed, ledger.ReasonRejected
		f.row.Text += in.Action
		return nil
	}
	if aside {
		f.aside(in)
		return nil
	}
	if werr := f.content(in); werr != nil {
		return werr
	}
	action := f.choose(s, in)
	f.keepAsked()
	if action != "" {
		f.asked.Text = action
		if f.asked.Meta == nil {
			f.asked.Meta = message.Meta{}
		}
		f.asked.Meta[message.MetaAction] = json.RawMessage(wire.AppendString(nil, action))
	}
	if len(f.asked.Meta) > 0 {
		f.row.Meta = marshal(f.asked.Meta)
	}
	routing := wire.Routing{SessionKey: in.SessionKey, ConversationID: f.conv.Key, ReplyCtx: in.ReplyCtx}
	if name, args, ok := parseCommand(f.asked.Text, action); ok {
		f.command(s, routing, name, args)
		return nil
	}
	return f.ask(s, routing, in)
}

// choose finds the action that the frame means, if it means one: a button that
// was pressed or typed. One that fills in a form is the form instead.
func (f *inbound) choose(s scene, in *wire.Inbound) (action string) {
	switch in.Type {
	case wire.TypeFormSubmit:
		return ""
	case wire.TypeCardAction:
		action, f.asked.Text = in.Action, in.Action
	default:
		if value, ok := s.offer.Choose(in.Text, s.view); ok {
			action = value
		}
	}
	if _, _, isCommand := parseCommand(in.Text, action); isCommand || len(f.asked.Parts) > 0 {
		return action
	}
	part, ok := s.offer.Submit(in.Text, action)
	if !ok {
		return action
	}
	f.asked.Parts = message.Number([]message.Part{part})
	if in.Type == wire.TypeCardAction { // the button's value is ours: in words it says more
		f.asked.Text = render.Text(&f.asked)
	}
	return ""
}

// keepAsked puts what the message says into its row.
func (f *inbound) keepAsked() {
	f.row.Parts = message.AppendParts(nil, f.asked.Parts)
	if f.asked.Text == "" && len(f.asked.Parts) > 0 {
		f.asked.Text = f.a.channel.hub.inWords(&f.asked)
	}
	f.row.Text = f.asked.Text
}

// parseCommand looks for a command: an action must be marked as one, so that a
// button's value that happens to start with a slash reaches the agent.
func parseCommand(text, action string) (name string, args []string, ok bool) {
	if action == "" {
		return command.Parse(text)
	}
	if strings.HasPrefix(action, "cmd:/") || strings.HasPrefix(action, "act:cmd:/") {
		return command.Parse(action)
	}
	return "", nil, false
}

// command runs a slash command, whatever else goes on in the conversation.
func (f *inbound) command(s scene, routing wire.Routing, name string, args []string) {
	c := f.a.channel
	agents := s.policy.agents(c.hub.AgentNames)
	if f.said != nil && f.said.to != "" { // the user chose by whom the message is for
		agents = []string{f.said.to}
	}
	result := c.hub.Commands.Run(command.Call{
		Name: name, Args: args, Agent: s.agent, Agents: agents, Muted: s.settings.Muted, Running: s.running,
	})
	if result.Agent != nil || result.Muted != nil || result.Stop {
		ch := c.lock()
		if result.Agent != nil {
			f.conv.settings.Agent = *result.Agent
		}
		if result.Muted != nil {
			f.conv.settings.Muted = *result.Muted
		}
		settings := f.conv.settings
		f.unit.Set = &settings
		if result.Stop {
			ch.turns.stop(f.conv)
		}
		ch.unlock()
	}
	f.answer(s, routing, "", result.Answer)
}

// ask answers at once where the agent can, or leaves the turn for after the commit.
func (f *inbound) ask(s scene, routing wire.Routing, in *wire.Inbound) *wire.Error {
	if s.agent == AgentNone {
		return nil
	}
	c := f.a.channel
	agent, _ := c.hub.Agents.Agent(s.agent)
	if pure, ok := agent.(Pure); ok && !s.running {
		f.given = Turn{
			Channel: s.policy.Name, Conversation: f.conv.Key, UserID: in.UserID, UserName: in.UserName, Caps: s.view.Caps,
			Message: f.asked,
		}
		f.given.Message.Parts = c.hub.Attachments.Signed(f.asked.Parts, 0)
		answers, ok, err := answerSafely(pure, &f.given)
		if err != nil {
			c.hub.Log.Error("agent panicked", "agent", s.agent, "channel", s.policy.Name, "error", err)
			return &wire.Error{Code: wire.CodeInternal, Message: "the agent failed: nothing was stored"}
		}
		for i := range answers {
			if f.said != nil {
				answers[i].Meta = stamped(answers[i].Meta, f.asked.Meta, f.said.at)
			}
			if err := c.hub.keep(c.hub.ctx, c.owner, &answers[i]); err != nil {
				c.hub.Log.Error("agent's answer refused", "agent", s.agent, "channel", s.policy.Name, "error", forLog(err))
				return &wire.Error{Code: wire.CodeInternal, Message: "the agent failed: nothing was stored"}
			}
		}
		if ok {
			f.answer(s, routing, s.agent, answers...)
			return nil
		}
	}
	f.row.State = ledger.Received
	ch := c.lock()
	f.conv.turns++
	ch.unlock()
	f.oneTurn = turnJob{routing: routing, userID: in.UserID, userName: in.UserName, message: f.asked}
	f.turn = &f.oneTurn
	return nil
}

func answerSafely(p Pure, t *Turn) (answers []message.Message, ok bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v\n%s", r, debug.Stack())
		}
	}()
	answers, ok = p.Answer(t)
	return answers, ok, nil
}

// answer puts answers into the frame's own commit.
func (f *inbound) answer(s scene, routing wire.Routing, agent string, answers ...message.Message) {
	f.sent, f.unit.Out = make([]outgoing, len(answers)), f.oneRow[:] // parcels refer to what is sent until it is written
	if len(answers) != 1 {
		f.unit.Out = make([]ledger.Row, len(answers))
	}
	for i := range answers {
		o := &f.sent[i]
		*o = outgoing{message: answers[i], agent: agent}
		if agent != "" && len(answers[i].Parts) > 0 {
			o.chosen = f.a.channel.transfers(&answers[i])
		}
		set, _ := f.a.channel.plan(&s.outlook, f.conv, o, routing, false, &f.unit.Out[i]) // the row says what became of it
		if set != nil {
			f.unit.Set = set
		}
	}
}
