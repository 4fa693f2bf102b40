// Package bridle is the kind of agents that come to the host by Socket.IO, as
// Bridle's do: one connection each, over which messages of many clients go.
package bridle

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/host/internal/socketio"
)

// Kind is that of the agents, and of the front end's channel for browsers.
const Kind = "bridle"

// Namespace is where agents connect.
const Namespace = "/ws/agent"

// Codes of a refused handshake, and of a frame that was not taken.
const (
	CodeMissingToken   = "MISSING_TOKEN"
	CodeMissingAgentID = "MISSING_AGENT_ID"
	CodeInvalidToken   = "INVALID_TOKEN"
	CodeUnavailable    = "UNAVAILABLE"
	CodeReplaced       = "REPLACED"
	CodeBadMessage     = "BAD_MESSAGE"
	CodeUnknownClient  = "UNKNOWN_CLIENT"
)

// Away is what a browser is told whose agent is not there.
const Away = "Agent is not connected. Please try again later."

// DefaultPatience is how long a turn waits for a sign of life of its agent:
// Bridle has no frame that says that there will be no answer.
const DefaultPatience = 2 * time.Minute

// DefaultGrace is how long an agent that has turns may be gone.
const DefaultGrace = 10 * time.Second

// Door checks agents' keys.
type Door interface {
	AdmitAgent(ctx context.Context, key string) (auth.AgentGrant, error)
}

// Outbox is where agents send what belongs to no turn.
type Outbox interface {
	Send(ctx context.Context, row ledger.Channel, out hub.Outgoing) (hub.Sent, error)
	Typing(ctx context.Context, row ledger.Channel, conversation string, on bool) error
}

// Board is told when an agent comes or goes.
type Board interface {
	AgentBack(name string)
	AgentGone(name string)
}

// Options of the agents. Store, Door, Out and Board are needed.
type Options struct {
	Store    Ledger
	Door     Door
	Out      Outbox
	Board    Board
	HostKey  string                                       // opens any agent of the kind; "" = none does
	Adopt    func(ctx context.Context, name string) error // makes one that came with the host's key and is not there; nil = none is
	Patience time.Duration                                // 0 = DefaultPatience
	Grace    time.Duration                                // 0 = DefaultGrace
	Failures *netguard.Failures                           // counts wrong keys; nil = nobody does
	Log      *slog.Logger                                 // nil = none
}

// Agents are all of the kind, and who takes their connections.
type Agents struct {
	Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows
	names   map[string]*Agent
	changed func() // called when one comes or goes; nil = nobody wants to know
}

var _ socketio.Namespace = (*Agents)(nil)

// New makes the agents' side. Close must be called.
func New(o Options) *Agents {
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Agents{Options: o, names: map[string]*Agent{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close makes what agents still send fail. Their connections are their server's.
func (s *Agents) Close() { s.cancel() }

// Serve ends connections whose keys have expired, until ctx ends.
func (s *Agents) Serve(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.mu.Lock()
			all := slices.Collect(maps.Values(s.names))
			s.mu.Unlock()
			for _, a := range all {
				a.expire(time.Now())
			}
		}
	}
}

// Kind is the kind of agents.
func (s *Agents) Kind() agent.Kind {
	return agent.Kind{
		About: "Comes by Socket.IO to " + Namespace + ", as Bridle's agents do",
		Keys:  true,
		Make: func(row ledger.Agent) (hub.Agent, error) {
			a := newAgent(s, row)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.names[row.Name] = a
			return a, nil
		},
	}
}

// OnChange has fn called whenever an agent has come or gone. It must not block.
func (s *Agents) OnChange(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = fn
}

// tell says that an agent has come or gone: to the hub first, which knows what
// waits for it. No mutex may be held.
func (s *Agents) tell(a *Agent) {
	if a.Connected() {
		s.Board.AgentBack(a.row.Name)
	} else {
		s.Board.AgentGone(a.row.Name)
	}
	s.mu.Lock()
	fn := s.changed
	s.mu.Unlock()
	if fn != nil {
		fn()
	}
}

// named finds an agent; nil = there is none that is enabled.
func (s *Agents) named(name string) *Agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[name]
}

func (s *Agents) forget(a *Agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[a.row.Name] == a {
		delete(s.names, a.row.Name)
	}
}

// Clear tells an agent that a client began a new conversation. One of another
// kind, or that is away, is told nothing.
func (s *Agents) Clear(name, client string) {
	a := s.named(name)
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.link != nil {
		a.link.emit("session_clear", sessionClear{Type: "session_clear", ClientID: client, TS: now()})
	}
}

// hello is what an agent sends along when it connects.
type hello struct {
	APIKey  string `json:"apiKey"`
	AgentID string `json:"agentId"`
}

// wrongKey is the one answer to whatever is wrong with a key.
const wrongKey = "the apiKey does not open this agent"

// Open implements socketio.Namespace.
func (s *Agents) Open(socket *socketio.Socket, auth json.RawMessage) socketio.Handler {
	l := &link{agents: s, socket: socket, gone: make(chan struct{})}
	var h hello
	if len(auth) > 0 && json.Unmarshal(auth, &h) != nil {
		return s.refuse(l, CodeInvalidToken, "the handshake's apiKey and agentId must be strings")
	}
	h.APIKey, h.AgentID = cmp.Or(h.APIKey, socket.Query("apiKey")), cmp.Or(h.AgentID, socket.Query("agentId"))
	switch {
	case h.APIKey == "":
		return s.refuse(l, CodeMissingToken, "the handshake has no apiKey")
	case h.AgentID == "":
		return s.refuse(l, CodeMissingAgentID, "the handshake has no agentId")
	}
	if s.Failures.Allow(socket.Remote(), netguard.AgentKeys) > 0 {
		return s.refuse(l, CodeInvalidToken, wrongKey)
	}
	a, key, expires, err := s.admit(h)
	switch {
	case errors.Is(err, errRefused):
		s.Failures.Failed(socket.Remote(), netguard.AgentKeys, h.AgentID+"/"+h.APIKey)
		return s.refuse(l, CodeInvalidToken, wrongKey)
	case err != nil:
		s.Log.Error("agent's key not checked", "remote", socket.Remote(), "error", err)
		return s.refuse(l, CodeUnavailable, "the key could not be checked: try again later")
	}
	l.agent, l.key, l.expires = a, key, expires
	if !a.enter(l) {
		return s.refuse(l, CodeInvalidToken, wrongKey)
	}
	socket.PaceBy(new(agent.Pace))
	s.Log.Info("agent connected", "agent", a.row.Name, "remote", socket.Remote())
	s.tell(a)
	return l
}

// refuse tells an agent why it is not let in.
func (s *Agents) refuse(l *link, code, why string) socketio.Handler {
	s.Log.Info("agent refused", "remote", l.socket.Remote(), "code", code)
	l.fail(code, why, "")
	return nil
}

var errRefused = errors.New("the key opens no agent of this name")

// checkTimeout bounds how long a key is looked for.
const checkTimeout = 10 * time.Second

// admit finds whom the key opens: the agent whose key it is, or with the host's
// key any, which is made if need be. What is wrong can't be told from the answer.
func (s *Agents) admit(h hello) (a *Agent, key int64, expires time.Time, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, checkTimeout)
	defer cancel()
	hosts := s.HostKey != "" && subtle.ConstantTimeCompare(auth.Hash(h.APIKey), auth.Hash(s.HostKey)) == 1
	grant, err := s.Door.AdmitAgent(ctx, h.APIKey)
	if err != nil && !errors.Is(err, auth.ErrInvalid) {
		return nil, 0, time.Time{}, err
	}
	own := err == nil && grant.Agent.Kind == Kind && grant.Agent.Name == h.AgentID
	if a = s.named(h.AgentID); a == nil && hosts && s.Adopt != nil {
		if err := s.Adopt(ctx, h.AgentID); err != nil {
			s.Log.Info("agent not made that came with the host's key", "agent", fmt.Sprintf("%.80q", h.AgentID), "error", err)
		}
		a = s.named(h.AgentID)
	}
	switch {
	case a == nil, !own && !hosts:
		return nil, 0, time.Time{}, errRefused
	case own:
		return a, grant.Key, grant.ExpiresAt, nil
	}
	return a, 0, time.Time{}, nil
}
