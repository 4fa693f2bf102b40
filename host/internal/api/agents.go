package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// AgentField describes one field of a kind's config.
type AgentField = agent.Field

// AgentKind describes a kind of agent.
type AgentKind struct {
	Kind    string       `json:"kind"`
	Key     bool         `json:"key" doc:"Whether its agents come to the host with a key"`
	Secrets []string     `json:"secrets" doc:"Fields of the config that are not shown again"`
	Fields  []AgentField `json:"fields" doc:"Of the config, in the order to ask for them"`
	About   string       `json:"about"`
}

// Agent is whom a channel may be routed to.
type Agent struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Kind      string          `json:"kind"`
	Config    json.RawMessage `json:"config" doc:"What its kind wants; a secret is shown as ***"`
	Enabled   bool            `json:"enabled"`
	BuiltIn   bool            `json:"built_in" doc:"Nobody can change or delete it"`
	CreatedAt Time            `json:"created_at"`
	Away      bool            `json:"away" doc:"It can't be asked now: messages for it wait"`
	AwaySince *Time           `json:"away_since" nullable:"true"`
	Turns     AgentTurns      `json:"turns"`
	Channels  int             `json:"channels" doc:"How many channels are routed to it: /channels?agent= lists them"`
	Waiting   int             `json:"waiting_turns" doc:"Users' messages that wait for it while it is away"`
	ETag      string          `json:"etag" doc:"The version of all that can be changed, as the header ETag has it: for If-Match"`
	Fault     string          `json:"fault,omitempty" doc:"Why its secrets can't be used: set them again"`
}

// AgentTurns is what became of the turns of an agent since the host began. The built-in
// echo's, which end with the message that they answer, are not counted.
type AgentTurns struct {
	Active      int64         `json:"active" doc:"It has them now"`
	Answered    uint64        `json:"answered"`
	Failed      uint64        `json:"failed"`
	Stopped     uint64        `json:"stopped" doc:"By the user, or by an operator"`
	FailedInRow int           `json:"failed_in_row" doc:"Since the last one that it answered"`
	Failing     bool          `json:"failing" doc:"It failed its last 5 turns, or more: see last_failure"`
	LastFailure *AgentFailure `json:"last_failure,omitempty" doc:"Absent if none has failed"`
}

// AgentFailure is a turn that failed.
type AgentFailure struct {
	At     Time   `json:"at"`
	Reason string `json:"reason" enum:"agent_failed,agent_refused,agent_timeout"`
	Detail string `json:"detail" doc:"In the agent's words where it had some, such as its status and the first 2 KiB of what it answered"`
}

// failingAfter is how many turns in a row an agent fails before it wants somebody.
const failingAfter = 5

func (s *server) agentTurns(name string) AgentTurns {
	n, _ := s.Hub.AgentTally(name)
	t := AgentTurns{Active: n.Active, FailedInRow: n.InARow, Failing: n.InARow >= failingAfter}
	for i, end := range hub.TurnEnds {
		switch end {
		case "answered":
			t.Answered = n.Turns[i]
		case "failed":
			t.Failed = n.Turns[i]
		case "stopped":
			t.Stopped = n.Turns[i]
		}
	}
	if !n.Last.At.IsZero() {
		t.LastFailure = &AgentFailure{timeOf(n.Last.At), string(n.Last.Reason), n.Last.Why}
	}
	return t
}

type createAgentBody struct {
	Name    *string         `json:"name,omitempty" doc:"[a-z0-9][a-z0-9._-]{0,62}"`
	Kind    string          `json:"kind" doc:"One of those of /agents/_kinds"`
	Config  json.RawMessage `json:"config,omitempty" doc:"An object, as its kind wants it"`
	Enabled *bool           `json:"enabled,omitempty"`
	Key     string          `json:"key,omitempty" doc:"A key of your own, for a kind that has keys; without one, one is made"`
}

type updateAgentBody struct {
	Name    *string         `json:"name,omitempty" doc:"Not while channels are routed to it"`
	Config  json.RawMessage `json:"config,omitempty" doc:"Fields that are given replace what is there, null removes, *** leaves a secret as it is"`
	Enabled *bool           `json:"enabled,omitempty"`
}

// createdAgent shows the key and the secret that was made, this one time.
type createdAgent struct {
	Agent
	Key    string `json:"key,omitempty" doc:"Shown once; absent if its kind has none"`
	Secret string `json:"secret,omitempty" doc:"Of the config, if the host made it; shown once"`
}

// AgentRef names an agent.
type AgentRef struct {
	ID string `path:"id" maxLength:"64" doc:"The agent's id or name"`
}

type agentKindList struct {
	Kinds []AgentKind `json:"kinds"`
}

type agentList struct {
	Agents     []Agent `json:"agents"`
	NextCursor string  `json:"next_cursor,omitempty"`
}

func (s *server) agents() {
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/agents/_kinds", "list-agent-kinds", "Kinds of agents", 200)), s.listAgentKinds)
	huma.Register(s.api, opens(auth.ScopeRead, wholeHost, operation("GET", "/agents", "list-agents", "Agents, oldest first", 200, 422)), s.listAgents)
	huma.Register(s.api, opens(auth.ScopeManage, wholeHost, operation("POST", "/agents", "create-agent", "Make an agent; the answer shows its key once", 201, 409, 422)), s.createAgent)
	huma.Register(s.api, opens(auth.ScopeRead, wholeHost, operation("GET", "/agents/{id}", "get-agent", "One agent", 200, 404)), s.getAgent)
	huma.Register(s.api, opens(auth.ScopeManage, wholeHost, operation("PATCH", "/agents/{id}", "update-agent", "Change fields of an agent and of its config, beside whoever changes others of them; takes effect immediately", 200, 400, 404, 409, 412, 422)), s.updateAgent)
	huma.Register(s.api, opens(auth.ScopeManage, wholeHost, operation("DELETE", "/agents/{id}", "delete-agent", "Delete an agent with its keys", 204, 400, 404, 409, 412)), s.deleteAgent)
}

func (s *server) listAgentKinds(context.Context, *struct{}) (*body[agentKindList], error) {
	list := []AgentKind{}
	for _, name := range s.Agents.Kinds() {
		k, _ := s.Agents.Kind(name)
		list = append(list, AgentKind{Kind: name, Key: k.Keys, Secrets: orEmpty(k.Secrets), Fields: orEmpty(k.Fields), About: k.About})
	}
	return &body[agentKindList]{agentKindList{list}}, nil
}

func (s *server) listAgents(ctx context.Context, in *Page) (*body[agentList], error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	rows, err := s.Store.Agents(ctx, after, in.Limit)
	if err != nil {
		return nil, s.fault(err, "agents")
	}
	routed, err := s.Store.ChannelsByAgent(ctx)
	if err != nil {
		return nil, s.fault(err, "agents")
	}
	out := agentList{Agents: make([]Agent, len(rows))}
	for i, r := range rows {
		out.Agents[i] = s.showAgent(r, routed)
	}
	out.NextCursor = in.next(len(rows), func() int64 { return rows[len(rows)-1].Key })
	return &body[agentList]{out}, nil
}

func (s *server) createAgent(ctx context.Context, in *body[createAgentBody]) (*tagged[createdAgent], error) {
	row := ledger.Agent{ID: uuid.NewString(), Kind: in.Body.Kind, Config: json.RawMessage("{}"), Enabled: true}
	if in.Body.Name == nil {
		return nil, field(422, "body.name", "absent, expected "+config.AgentNameRule, "")
	}
	filled, shown := s.fill(row.Kind, in.Body.Config)
	if err := s.applyAgent(&row, updateAgentBody{in.Body.Name, filled, in.Body.Enabled}); err != nil {
		return nil, err
	}
	var key string
	var stored *ledger.NewCredential
	switch k, _ := s.Agents.Kind(row.Kind); {
	case k.Keys:
		var err error
		if key, stored, err = s.first(ledger.AgentKey, in.Body.Key, forAgent); err != nil {
			return nil, err
		}
	case in.Body.Key != "":
		return nil, field(422, "body.key", "agents of kind "+row.Kind+" have no key: expected none", "")
	}
	s.agentChange.Lock()
	defer s.agentChange.Unlock()
	made, err := s.Store.CreateAgent(ctx, row, stored, s.by(ctx, "agent.create", row.Name, s.auditAgent(row)))
	if err != nil {
		return nil, s.faultOfSecret(err, forAgent)
	}
	s.setAgent(made)
	s.Log.Info("agent created", "agent", made.Name, "kind", made.Kind, "id", made.ID)
	out := createdAgent{s.showAgent(made, nil), key, shown} // no channel can name it yet
	return &tagged[createdAgent]{out.ETag, out}, nil
}

// fill completes the config of a new agent.
func (s *server) fill(kind string, config json.RawMessage) (filled json.RawMessage, secret string) {
	k, _ := s.Agents.Kind(kind)
	if k.Fill == nil {
		return config, ""
	}
	if config == nil {
		config = json.RawMessage("{}")
	}
	return k.Fill(config)
}

func (s *server) getAgent(ctx context.Context, in *AgentRef) (*tagged[Agent], error) {
	row, err := s.findAgent(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.taggedAgent(ctx, row)
}

// taggedAgent is an agent with its version.
func (s *server) taggedAgent(ctx context.Context, row ledger.Agent) (*tagged[Agent], error) {
	routed, err := s.Store.ChannelsByAgent(ctx)
	if err != nil {
		return nil, s.fault(err, "agent "+row.Name)
	}
	shown := s.showAgent(row, routed)
	return &tagged[Agent]{shown.ETag, shown}, nil
}

func (s *server) updateAgent(ctx context.Context, in *struct {
	AgentRef
	IfMatch
	Body updateAgentBody
}) (*tagged[Agent], error) {
	s.agentChange.Lock()
	defer s.agentChange.Unlock()
	before := ""
	row, err := ledger.Edit(ctx, s.changer(in.ID), func(row *ledger.Agent) (*ledger.Change, error) {
		if err := s.check(ctx, in.IfMatch, row.ID, s.agentTag(*row), row.Version); err != nil {
			return nil, err
		}
		was := *row
		before = was.Name
		if err := s.applyAgent(row, in.Body); err != nil {
			return nil, err
		}
		if row.Name == was.Name && row.Enabled == was.Enabled && bytes.Equal(row.Config, was.Config) {
			return nil, nil // it is so already
		}
		by := s.by(ctx, "agent.update", row.Name, nil)
		if names := s.secretsChanged(was, *row); names != nil {
			by = s.by(ctx, "agent.update", row.Name, map[string][]string{"secrets_changed": names})
		}
		by.Before, by.After = auth.Diff(s.auditAgent(was), s.auditAgent(*row))
		return &by, nil
	}, s.Store.UpdateAgent)
	if err != nil {
		return nil, s.fault(err, "agent "+in.ID)
	}
	s.setAgent(row)
	if row.Name != before {
		s.Hub.AgentChanged(before)
	}
	return s.taggedAgent(ctx, row)
}

func (s *server) deleteAgent(ctx context.Context, in *struct {
	AgentRef
	IfMatch
}) (*struct{}, error) {
	s.agentChange.Lock()
	defer s.agentChange.Unlock()
	remove := func(ctx context.Context, row ledger.Agent, by ledger.Change) (ledger.Agent, error) {
		return row, s.Store.DeleteAgent(ctx, row, by)
	}
	row, err := ledger.Edit(ctx, s.changer(in.ID), func(row *ledger.Agent) (*ledger.Change, error) {
		by := s.by(ctx, "agent.delete", row.Name, nil)
		return &by, s.check(ctx, in.IfMatch, row.ID, s.agentTag(*row), row.Version)
	}, remove)
	if err != nil {
		return nil, s.fault(err, "agent "+in.ID)
	}
	s.Agents.Remove(row.Key)
	s.AgentSockets.ForgetFrames(row.Key)
	s.Hub.AgentChanged(row.Name)
	s.Log.Info("agent deleted", "agent", row.Name, "id", row.ID)
	return nil, nil
}

// changer is changeable that reads the same agent again, also after it got another
// name.
func (s *server) changer(ref string) func(context.Context) (ledger.Agent, error) {
	return func(ctx context.Context) (ledger.Agent, error) {
		row, err := s.changeable(ctx, ref)
		if err == nil {
			ref = row.ID
		}
		return row, err
	}
}

// setAgent makes a row count.
func (s *server) setAgent(row ledger.Agent) {
	s.Agents.Set(row)
	s.Hub.AgentChanged(row.Name)
}

// findAgent reads an agent by id or name.
func (s *server) findAgent(ctx context.Context, ref string) (ledger.Agent, error) {
	row, err := s.Store.Agent(ctx, ref)
	if err != nil {
		return row, s.fault(err, fmt.Sprintf("agent %q", ref))
	}
	return row, nil
}

// changeable is findAgent for what is about to change.
func (s *server) changeable(ctx context.Context, ref string) (ledger.Agent, error) {
	row, err := s.findAgent(ctx, ref)
	if err == nil && builtIn(row) {
		err = huma.Error409Conflict("agent " + row.Name + " is built in: it can neither be changed nor deleted")
	}
	return row, err
}

func builtIn(row ledger.Agent) bool { return slices.Contains(config.BuiltIn, row.Name) }

// applyAgent checks what was asked for and puts it into the row.
func (s *server) applyAgent(row *ledger.Agent, b updateAgentBody) error {
	if b.Name != nil {
		if config.CheckAgentName(*b.Name) != nil {
			return field(422, "body.name", "expected "+config.AgentNameRule, clip(*b.Name))
		}
		row.Name = *b.Name
	}
	set(&row.Enabled, b.Enabled)
	k, known := s.Agents.Kind(row.Kind)
	if b.Config != nil && known {
		merged, err := k.Merge(row.Config, b.Config)
		if err != nil {
			return configFault(k, err)
		}
		row.Config = merged
	}
	if err := s.Agents.Check(*row); errors.Is(err, agent.ErrUnknownKind) {
		return field(422, "body.kind", "expected "+strings.Join(s.Agents.Kinds(), ", "), clip(row.Kind))
	} else if err != nil {
		return configFault(k, err)
	}
	return nil
}

// configFault is what is wrong with a config, at the field that its kind names first, as
// in "headers.Host: …".
func configFault(k agent.Kind, err error) error {
	text := err.Error()
	at, rest, named := strings.Cut(text, ": ")
	name, _, _ := strings.Cut(at, ".")
	if !named || strings.Contains(at, " ") || !slices.ContainsFunc(k.Fields, func(f agent.Field) bool { return f.Name == name }) {
		return field(422, "body.config", text, "")
	}
	return field(422, "body.config."+at, rest, "")
}

// showAgent makes an agent as operators see it; routed counts channels by their agent.
func (s *server) showAgent(r ledger.Agent, routed map[string]int) Agent {
	since, away := s.Hub.AgentAway(r.Name)
	fault := ""
	if r.Fault != nil {
		fault = r.Fault.Error()
	}
	return Agent{
		ID: r.ID, Name: r.Name, Kind: r.Kind, Config: s.Agents.Shown(r.Kind, r.Config), Enabled: r.Enabled, BuiltIn: builtIn(r), CreatedAt: timeOf(r.CreatedAt), ETag: s.agentTag(r),
		Away: away, AwaySince: when(since), Channels: routed[r.Name], Waiting: s.Hub.WaitFor(r.Name), Fault: fault, Turns: s.agentTurns(r.Name),
	}
}

// auditAgent is what the audit log keeps of an agent.
func (s *server) auditAgent(r ledger.Agent) any {
	return map[string]any{"name": r.Name, "kind": r.Kind, "config": s.Agents.Shown(r.Kind, r.Config), "enabled": r.Enabled}
}

// secretsChanged names the secrets of an agent's config that are not what they
// were.
func (s *server) secretsChanged(was, is ledger.Agent) []string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(was.Config, &a) != nil || json.Unmarshal(is.Config, &b) != nil {
		return nil
	}
	k, _ := s.Agents.Kind(is.Kind)
	var names []string
	for _, name := range k.Secrets {
		if !bytes.Equal(a[name], b[name]) {
			names = append(names, name)
		}
	}
	return names
}
