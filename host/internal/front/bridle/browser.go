package bridle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	agents "github.com/pontoon-bridge/pontoon/host/internal/agent/bridle"
	"github.com/pontoon-bridge/pontoon/host/internal/socketio"
	model "github.com/pontoon-bridge/pontoon/sdk/message/bridle"
)

// Codes that browsers are told, beside those of a refused handshake.
const (
	codeDisabled  = "CHANNEL_DISABLED"
	codeStopping  = "STOPPING"
	codeTooMany   = "TOO_MANY_CONNECTIONS"
	codeBad       = "BAD_MESSAGE"
	codeEmpty     = "EMPTY_MESSAGE"
	codeTooLarge  = "TOO_LARGE"
	codeRate      = "RATE_LIMITED"
	codeStorage   = "STORAGE_UNAVAILABLE"
	codeInternal  = "INTERNAL"
	codeForbidden = "FORBIDDEN"
)

// maxBeside bounds what a handshake sends along to be forwarded.
const maxBeside = 8 << 10

// browser is one connection of a user.
type browser struct {
	f            *Front
	socket       *socketio.Socket
	user         user
	agent        string
	conversation string
	beside       beside
}

// beside is what goes to the agent with each message.
type beside struct{ capabilities, prompt json.RawMessage }

var _ socketio.Handler = (*browser)(nil)

// hello is what a browser sends along when it connects.
type hello struct {
	Token        string          `json:"token"`
	AgentID      string          `json:"agentId"`
	Capabilities json.RawMessage `json:"capabilities"`
	Prompt       json.RawMessage `json:"prompt"`
}

// conversation is the key of what a client says to an agent. An agent's name has
// no slash.
func conversation(agent, client string) string { return agent + "/" + client }

// isAgentID reports what could be an agent's name: of one that there is not, the
// browser is told that it is away.
func isAgentID(name string) bool {
	return len(name) <= maxName && !strings.Contains(name, "/") && !strings.ContainsFunc(name, unicode.IsControl)
}

// Open implements socketio.Namespace.
func (f *Front) Open(s *socketio.Socket, auth json.RawMessage) socketio.Handler {
	b := &browser{f: f, socket: s}
	if f.Secret == "" {
		return b.refuse(codeOff, off)
	}
	var h hello
	if len(auth) > 0 && json.Unmarshal(auth, &h) != nil {
		return b.refuse(agents.CodeInvalidToken, "the handshake's token and agentId must be strings")
	}
	h.Token, h.AgentID = cmp.Or(h.Token, s.Query("token")), cmp.Or(h.AgentID, s.Query("agentId"))
	switch {
	case h.Token == "":
		return b.refuse(agents.CodeMissingToken, "the handshake has no token")
	case h.AgentID == "":
		return b.refuse(agents.CodeMissingAgentID, "the handshake has no agentId")
	}
	u, wait, err := f.checkFrom(s.Remote(), h.Token)
	if wait > 0 {
		err = errToken
	}
	if err != nil {
		return b.refuse(agents.CodeInvalidToken, err.Error())
	}
	if !isAgentID(h.AgentID) || !f.mayAsk(h.AgentID) {
		return b.refuse(codeForbidden, "agentId: found no name of an agent that this channel may speak to")
	}
	if len(h.Capabilities) > maxBeside || len(h.Prompt) > maxBeside {
		return b.refuse(codeTooLarge, fmt.Sprintf("capabilities, prompt: expected at most %d bytes each", maxBeside))
	}
	b.user, b.agent, b.conversation, b.beside = u, h.AgentID, conversation(h.AgentID, u.client), beside{h.Capabilities, h.Prompt}
	b.emit("welcome", welcome{u.client})
	if code, why := f.enter(b); code != "" {
		return b.refuse(code, why)
	}
	f.Log.Info("browser connected", "agent", b.agent, "remote", s.Remote())
	return b
}

// refuse tells a browser why it is not let in.
func (b *browser) refuse(code, why string) socketio.Handler {
	b.f.Log.Info("browser refused", "remote", b.socket.Remote(), "code", code)
	b.fail(code, why)
	return nil
}

// enter puts a browser among those of its conversation, and tells it whether its
// agent is there. The code says why it can't be.
func (f *Front) enter(b *browser) (code, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.browsers[b.conversation]
	switch {
	case f.inbox == nil:
		return codeDisabled, "the channel is disabled, or the host is stopping"
	case len(all) >= maxOfClient:
		return codeTooMany, fmt.Sprintf("the user has %d connections, which is the limit", maxOfClient)
	case all == nil:
		all = map[*browser]struct{}{}
		f.browsers[b.conversation] = all
	}
	all[b] = struct{}{}
	connected, told := f.status[b.agent]
	if !told {
		_, connected = f.present(b.agent)
		f.status[b.agent] = connected
	}
	b.emit("agent_status", agentStatus{"agent_status", b.agent, connected})
	return "", ""
}

// Closed implements socketio.Handler.
func (b *browser) Closed() {
	f := b.f
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.browsers[b.conversation], b)
	if len(f.browsers[b.conversation]) == 0 {
		delete(f.browsers, b.conversation)
	}
}

// tellStatus tells browsers whose agent has come or gone since they were told.
func (f *Front) tellStatus() {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := map[string][]*browser{}
	for _, all := range f.browsers {
		for b := range all {
			of[b.agent] = append(of[b.agent], b)
		}
	}
	for name := range f.status {
		if of[name] == nil {
			delete(f.status, name)
		}
	}
	for name, all := range of {
		_, connected := f.present(name)
		if was, told := f.status[name]; told && was == connected {
			continue
		}
		f.status[name] = connected
		for _, b := range all {
			b.emit("agent_status", agentStatus{"agent_status", name, connected})
		}
	}
}

// expire sends browsers away whose token has ended; they come back by themselves
// if they have a newer one.
func (f *Front) expire() {
	now := f.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, all := range f.browsers {
		for b := range all {
			if !b.user.until.IsZero() && !now.Before(b.user.until) {
				b.fail(agents.CodeInvalidToken, "the token has expired")
				b.socket.Drop("the token has expired")
			}
		}
	}
}

// Event implements socketio.Handler.
func (b *browser) Event(name string, args []json.RawMessage) error {
	switch name {
	case "ping":
		b.emit("pong", pong{time.Now().UnixMilli()})
		return nil
	case "message":
	default: // of a newer Bridle
		return fmt.Errorf("found the event %.64q, expected message or ping", name)
	}
	if len(args) == 0 {
		return b.deny(refusal{codeEmpty, "found no object, expected one with text or parts"})
	}
	in, err := model.Parse(args[0])
	if err != nil {
		return b.deny(refusal{codeBad, err.Error()})
	}
	err = b.f.ask(&b.user, b.agent, b.beside, in, &question{browser: b})
	if errors.Is(err, errNoAgent) {
		b.emit("message", absentAgent())
		return err
	}
	if err != nil {
		return b.deny(err)
	}
	return nil
}

// deny tells the browser that its message was not taken.
func (b *browser) deny(err error) error {
	var r refusal
	if !errors.As(err, &r) {
		b.f.Log.Error("browser's message not taken", "agent", b.agent, "error", err)
		r = refusal{codeInternal, "internal error"}
	}
	b.fail(r.code, r.why)
	return r
}

// emit sends an event of ours. It does not block.
func (b *browser) emit(name string, data any) {
	event, err := socketio.Event(name, data)
	if err != nil {
		b.f.Log.Error("event not made", "event", name, "error", err)
		return
	}
	b.socket.Emit(event)
}

func (b *browser) fail(code, why string) {
	b.emit("bridle_error", failure{"bridle_error", code, why})
}

type welcome struct {
	ClientID string `json:"clientId"`
}

type agentStatus struct {
	Type      string `json:"type"`
	AgentID   string `json:"agentId"`
	Connected bool   `json:"connected"`
}

type pong struct {
	TS int64 `json:"ts"`
}

type failure struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
}
