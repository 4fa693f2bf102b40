package bridle

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/socketio"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	model "github.com/pontoon-bridge/pontoon/sdk/message/bridle"
)

// Events that agents send.
const (
	eventRegister  = "register"
	eventMessage   = "message"
	eventStream    = "stream"
	eventStreamEnd = "stream_end"
	eventTyping    = "typing"
	eventPing      = "ping"
)

const (
	maxFrames = 64      // that wait for one turn
	maxClient = 1 << 10 // bytes of a clientId
	maxEvent  = 6 << 20 // bytes of a message to an agent
)

// link is one connection of an agent.
type link struct {
	agents *Agents
	socket *socketio.Socket
	agent  *Agent // nil until it is admitted
	key    int64  // that opened it; 0 = the host's
	gone   chan struct{}

	expires time.Time // zero = never; guarded by Agent.mu
}

var _ socketio.Handler = (*link)(nil)

// frame is what an agent says to a client.
type frame struct {
	from    *link
	event   string
	client  string
	message message.Message // of a stream: its text alone counts
}

// lossy reports a frame that the next one makes up for.
func (f *frame) lossy() bool { return f.event == eventTyping || f.event == eventStream }

// outgoing is a message to an agent.
type outgoing struct {
	Type         string          `json:"type"`
	ClientID     string          `json:"clientId"`
	Text         string          `json:"text"`
	Parts        []model.Part    `json:"parts"`
	MessageID    string          `json:"messageId"`
	TS           int64           `json:"ts"`
	Repeated     bool            `json:"repeated,omitempty"`
	Action       string          `json:"action,omitempty"` // a pressed button's value
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Prompt       json.RawMessage `json:"prompt,omitempty"`
}

// Metadata of a browser's message that its handshake brought.
const (
	MetaCapabilities = "capabilities"
	MetaPrompt       = "prompt"
)

// messageEvent is a turn as its agent gets it.
func messageEvent(client string, t *hub.Turn) (json.RawMessage, error) {
	text, parts, _ := model.Shown(&t.Message) // a user's message loses what only agents say
	event, err := socketio.Event(eventMessage, outgoing{
		Type: eventMessage, ClientID: client, Text: text, Parts: parts, MessageID: t.ID.String(), TS: t.ID.Time().UnixMilli(), Repeated: t.Repeated,
		Action: t.Message.Meta.String(message.MetaAction), Capabilities: t.Message.Meta[MetaCapabilities], Prompt: t.Message.Meta[MetaPrompt],
	})
	if err == nil && len(event) > maxEvent {
		err = fmt.Errorf("the message has %d bytes, of which an agent by Socket.IO takes at most %d", len(event), maxEvent)
	}
	return event, err
}

type sessionClear struct {
	Type     string `json:"type"`
	ClientID string `json:"clientId"`
	TS       int64  `json:"ts"`
}

type pong struct {
	Type string `json:"type"`
	TS   int64  `json:"ts"`
}

type failure struct {
	Type     string `json:"type"`
	Code     string `json:"code"`
	Message  string `json:"message"`
	ClientID string `json:"clientId,omitempty"`
}

func now() int64 { return time.Now().UnixMilli() }

// emit sends an event of ours. It does not block.
func (l *link) emit(name string, data any) {
	event, err := socketio.Event(name, data)
	if err != nil {
		l.agents.Log.Error("event not made", "event", name, "error", err)
		return
	}
	l.socket.Emit(event)
}

// fail tells the agent what is wrong.
func (l *link) fail(code, why, client string) {
	l.emit("bridle_error", failure{"bridle_error", code, why, client})
}

// Closed implements socketio.Handler.
func (l *link) Closed() {
	close(l.gone)
	l.agent.leave(l)
	l.agents.Log.Info("agent gone", "agent", l.agent.row.Name, "remote", l.socket.Remote())
	l.agents.tell(l.agent)
}

// Event implements socketio.Handler. An agent that says more than the disk takes
// is read no faster.
func (l *link) Event(name string, args []json.RawMessage) error {
	switch name {
	case eventRegister:
		return nil
	case eventPing:
		l.emit("pong", pong{"pong", now()})
		return nil
	case eventMessage, eventStream, eventStreamEnd, eventTyping:
	default: // of a newer Bridle
		return fmt.Errorf("found the event %.64q, expected register, message, stream, stream_end, typing or ping", name)
	}
	f, err := readFrame(name, args)
	if err != nil {
		l.fail(CodeBadMessage, err.Error(), f.client)
		return err
	}
	f.from = l
	if !l.current() {
		return errors.New("replaced by a newer connection")
	}
	if l.agent.take(f) || f.event == eventStream { // one that nobody waits for is shown at its end
		return nil
	}
	return l.speak(f)
}

func (l *link) current() bool {
	l.agent.mu.Lock()
	defer l.agent.mu.Unlock()
	return l.agent.link == l
}

// speak sends what belongs to no turn, and tells the agent if it can't be.
func (l *link) speak(f frame) error {
	err := l.agent.speak(l.agents.ctx, f)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errUnknownClient):
		l.fail(CodeUnknownClient, err.Error(), f.client)
	case errors.Is(err, hub.ErrContent), errors.Is(err, hub.ErrTooLarge):
		l.fail(CodeBadMessage, err.Error(), f.client)
	case errors.Is(err, hub.ErrNotAttached), errors.Is(err, hub.ErrQueueFull), ledger.Failing(err):
		err = errors.New("the message can't be sent now: try again later")
		l.fail(CodeUnavailable, err.Error(), f.client)
	default:
		l.agents.Log.Error("agent's message not sent", "agent", l.agent.row.Name, "error", err)
		err = errors.New("internal error")
		l.fail(CodeUnavailable, err.Error(), f.client)
	}
	return err
}

// readFrame reads what an agent says: its text and parts by Bridle's own rules,
// checked as strictly as any agent's.
func readFrame(event string, args []json.RawMessage) (frame, error) {
	f := frame{event: event}
	if len(args) == 0 {
		return f, errors.New("found no object, expected one with clientId")
	}
	in, err := model.Parse(args[0])
	if err != nil {
		return f, err
	}
	if json.Unmarshal(in.Rest["clientId"], &f.client) != nil || f.client == "" || len(f.client) > maxClient {
		f.client = ""
		return f, fmt.Errorf("clientId: expected that of the message to answer, a string of at most %d bytes", maxClient)
	}
	if event == eventTyping {
		return f, nil
	}
	in.Side, in.Rest, in.AgentID = model.Agent, nil, nil // who speaks, the connection tells
	if event == eventStream {
		if in.Text == nil && len(in.Parts) == 0 {
			return f, message.ErrNoContent
		}
		if f.message, err = in.Canonical(); err == nil {
			f.message = message.Text(f.message.Text)
		}
		return f, err
	}
	if f.message, err = in.Canonical(); err != nil {
		return f, err
	}
	for i, p := range f.message.Parts {
		for name := range p.LocalFiles() {
			return f, fmt.Errorf("parts[%d].%s: found a file of the host's machine, expected an http or https url", i, name)
		}
	}
	parts, problems, err := message.Admit(f.message.Parts, message.HostLimits())
	if err != nil {
		return f, err
	}
	f.message.Parts = message.Number(parts)
	f.message.Meta = f.message.Meta.Warn(problems)
	return f, nil
}
