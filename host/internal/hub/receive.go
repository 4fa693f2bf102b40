package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/host/internal/store"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// inbound is a received frame on its way through the commit.
type inbound struct {
	a    *Attachment
	conv *conversation
	ref  string
	row  store.Row
	unit store.Unit
	sent []outgoing // answers in the same commit
	turn *turnJob   // started after the commit; nil = none

	// Room for the one answer that there usually is.
	oneSent [1]outgoing
	oneRow  [1]store.Row
}

// Receive takes a message or an action. It commits it, then answers it; the
// port's Settled is called once for each frame. A frame of an attachment that
// is not current any more doesn't count.
func (a *Attachment) Receive(in *wire.Inbound) {
	c := a.channel
	key := in.ConversationID
	if key == "" {
		key = in.SessionKey
	}
	conv, err := c.hold(c.hub.ctx, key)
	if err != nil {
		c.hub.Log.Error("conversation not read", "channel", c.name(), "error", err)
		a.port.Settled(in.MessageID, refusal(err))
		return
	}
	f := &inbound{a: a, conv: conv, ref: in.MessageID}
	if werr := f.interpret(in); werr != nil {
		c.mu.Lock()
		c.release(conv)
		c.mu.Unlock()
		a.port.Settled(in.MessageID, werr)
		return
	}
	f.unit.Conversation, f.unit.In, f.unit.Done = conv.Conversation, &f.row, f.done
	c.hub.Store.Append(&f.unit)
}

// scene is what a frame meets: a snapshot taken under the mutex.
type scene struct {
	policy   *policy
	view     wire.View
	settings store.Settings
	agent    string
	offer    render.Offer
	queueing bool // messages wait already: an answer goes behind them
	running  bool // a turn runs or waits
}

// enter takes the snapshot; false if the attachment is not current any more.
func (f *inbound) enter(o store.Origin) (scene, *wire.Error) {
	c, conv := f.a.channel, f.conv
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attached != f.a {
		return scene{}, &wire.Error{Code: wire.CodeInternal, Message: "this connection was replaced by a newer one"}
	}
	if conv.turns >= maxWaitingTurns {
		return scene{}, &wire.Error{Code: wire.CodeRateLimited, Message: fmt.Sprintf(
			"conversation has %d messages that wait for an answer, which is the limit: send again later", maxWaitingTurns)}
	}
	s := scene{
		policy: c.policy, view: f.a.view, settings: conv.settings, agent: c.agentName(conv), offer: conv.offer,
		queueing: c.backlog > 0, running: conv.turns > 0,
	}
	if s.policy.maySpeak(o.UserID) {
		conv.latest = o
	}
	return s, nil
}

// interpret decides what the frame is and who answers it.
func (f *inbound) interpret(in *wire.Inbound) *wire.Error {
	origin := store.Origin{SessionKey: in.SessionKey, UserID: in.UserID, UserName: in.UserName, ReplyCtx: in.ReplyCtx}
	s, werr := f.enter(origin)
	if werr != nil {
		return werr
	}
	f.row = store.Row{Direction: store.In, State: store.Handled, Text: in.Text, Origin: origin.Append(nil)}
	if !s.policy.maySpeak(in.UserID) {
		f.row.State, f.row.Reason = store.Failed, store.ReasonRejected
		f.row.Text += in.Action
		return nil
	}
	action := in.Action
	if in.Type == wire.TypeMessage {
		if value, ok := s.offer.Choose(in.Text); ok {
			action = value
		}
	} else {
		f.row.Text = action
	}
	routing := wire.Routing{SessionKey: in.SessionKey, ConversationID: f.conv.Key, ReplyCtx: in.ReplyCtx}
	name, args, isCommand := parseCommand(in.Text, action)
	asked := message.Message{Role: message.RoleUser, Status: message.StatusCompleted, Text: f.row.Text}
	if part, ok := s.offer.Submit(in.Text, action); ok && !isCommand {
		asked.Parts = message.Number([]message.Part{part})
		f.row.Parts = message.AppendParts(nil, asked.Parts)
		if in.Type == wire.TypeCardAction { // the button's value is ours: in words it says more
			f.row.Text = render.Text(&asked)
		}
		action, asked.Text = "", f.row.Text
	}
	if action != "" {
		asked.Text = action
		asked.Meta = message.Meta{message.MetaAction: json.RawMessage(wire.AppendString(nil, action))}
		f.row.Meta = append(wire.AppendString([]byte(`{"`+message.MetaAction+`":`), action), '}')
	}
	if isCommand {
		f.command(s, routing, name, args)
		return nil
	}
	return f.ask(s, routing, in, asked)
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
	result := c.hub.Commands.Run(command.Call{
		Name: name, Args: args, Agent: s.agent, Agents: s.policy.agents(c.hub.names), Muted: s.settings.Muted, Running: s.running,
	})
	if result.Agent != nil || result.Muted != nil || result.Stop {
		c.mu.Lock()
		if result.Agent != nil {
			f.conv.settings.Agent = *result.Agent
		}
		if result.Muted != nil {
			f.conv.settings.Muted = *result.Muted
		}
		settings := f.conv.settings
		f.unit.Set = &settings
		if result.Stop {
			f.conv.stop()
		}
		c.mu.Unlock()
	}
	f.answer(s, routing, "", result.Answer)
}

// ask answers at once where the agent can, or leaves the turn for after the commit.
func (f *inbound) ask(s scene, routing wire.Routing, in *wire.Inbound, asked message.Message) *wire.Error {
	if s.agent == AgentNone {
		return nil
	}
	c := f.a.channel
	t := Turn{
		Channel: s.policy.Name, Conversation: f.conv.Key, UserID: in.UserID, UserName: in.UserName, Caps: s.view.Caps,
		Message: asked,
	}
	if pure, ok := c.hub.Agents[s.agent].(Pure); ok && !s.running {
		answers, ok, err := answerSafely(pure, &t)
		if err != nil {
			c.hub.Log.Error("agent panicked", "agent", s.agent, "channel", s.policy.Name, "error", err)
			return &wire.Error{Code: wire.CodeInternal, Message: "the agent failed: nothing was stored"}
		}
		if ok {
			f.answer(s, routing, s.agent, answers...)
			return nil
		}
	}
	f.row.State = store.Received
	c.mu.Lock()
	f.conv.turns++
	c.mu.Unlock()
	f.turn = &turnJob{routing: routing, userID: in.UserID, userName: in.UserName, message: t.Message}
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
	f.sent, f.unit.Out = f.oneSent[:], f.oneRow[:]
	if len(answers) != 1 {
		f.sent, f.unit.Out = make([]outgoing, len(answers)), make([]store.Row, len(answers))
	}
	for i := range answers {
		o := &f.sent[i]
		*o = outgoing{message: answers[i], agent: agent}
		f.unit.Out[i] = o.prepare(s.view, routing, f.conv, f.a)
		if s.queueing && f.unit.Out[i].State == store.Sent {
			f.unit.Out[i].State = store.Queued
		}
		if f.unit.Out[i].Offers {
			f.a.channel.offers(f.conv, o)
		}
	}
	if s.queueing {
		f.a.channel.addBacklog(f.unit.Out, 1)
	}
}

// done runs on the writer after the commit.
func (f *inbound) done(r store.Result) {
	c := f.a.channel
	c.mu.Lock()
	if r.Err == nil {
		for i := range f.sent {
			c.dispatch(&f.sent[i], &f.unit.Out[i])
		}
		if f.turn != nil {
			f.turn.id = f.row.ID
			c.startTurn(f.conv, *f.turn)
		} else {
			c.release(f.conv)
		}
	} else {
		c.countBacklog(f.unit.Out, -1)
		if f.turn != nil {
			f.conv.turns--
		}
		c.release(f.conv)
	}
	c.mu.Unlock()
	if r.Err != nil && !errors.Is(r.Err, store.ErrDuplicate) {
		f.a.port.Settled(f.ref, refusal(r.Err))
		return
	}
	f.a.port.Settled(f.ref, nil)
	r.Later(f.a.port)
	if c.hub.Events.wanted() {
		c.hub.created(c, f.conv, f.row, f.unit.Out)
	}
}

// refusal is what an adapter is told when its frame could not be kept.
func refusal(err error) *wire.Error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrRemoved) {
		return &wire.Error{Code: wire.CodeStorageUnavailable, Message: "the message was not stored: send it again later"}
	}
	return &wire.Error{Code: wire.CodeInternal, Message: "the message was not stored"}
}
