package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Connection is a line of the history of connections.
type Connection struct {
	ID        int64  `json:"id" doc:"Ascending"`
	At        Time   `json:"at" doc:"When; of several, the first"`
	Latest    Time   `json:"latest" doc:"Of several like it, the last"`
	Count     int    `json:"count" doc:"How many like it: refusals within an hour are one line"`
	What      string `json:"what" enum:"attached,left,refused"`
	ChannelID string `json:"channel_id" doc:"Empty = an agent's, or nobody knows whose"`
	Channel   string `json:"channel"`
	AgentID   string `json:"agent_id" doc:"Empty = an adapter's, or nobody knows whose"`
	Agent     string `json:"agent"`
	Remote    string `json:"remote" doc:"Address; empty = the host itself"`
	TokenID   string `json:"token_id" doc:"Token or key that was shown; empty = none that is known"`
	TokenHint string `json:"token_hint" doc:"Its last characters"`
	Code      int    `json:"code" doc:"With which the host closed the connection; 0 = it did not"`
	Why       string `json:"why" doc:"For people"`
}

type connectionList struct {
	Connections []Connection `json:"connections"`
	NextCursor  string       `json:"next_cursor,omitempty"`
}

type connectionQuery struct {
	Page
	Channel string `query:"channel" maxLength:"64" doc:"Only of this channel"`
	Agent   string `query:"agent" maxLength:"64" doc:"Only of this agent"`
	What    string `query:"what" enum:"attached,left,refused" doc:"Only these"`
}

func (s *server) connections() {
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("GET", "/connections", "list-connections",
		"Who came to a channel or an agent, why it went, and who was refused; newest first, kept for 30 days", 200, 404, 422)), s.listConnections)
}

func (s *server) listConnections(ctx context.Context, in *connectionQuery) (*struct{ Body connectionList }, error) {
	before, err := in.after()
	if err != nil {
		return nil, err
	}
	var want ledger.ConnectionQuery
	switch {
	case in.Channel != "" && in.Agent != "":
		return nil, field(http.StatusUnprocessableEntity, "query.agent", "expected a channel or an agent, not both", in.Agent)
	case in.Channel != "":
		row, err := s.find(ctx, in.Channel)
		if err != nil {
			return nil, err
		}
		want.Owner = ledger.OfChannel(row.Key)
	case in.Agent != "":
		row, err := s.findAgent(ctx, in.Agent)
		if err != nil {
			return nil, err
		}
		want.Owner = ledger.OfAgent(row.Key)
	}
	if what, ok := ledger.ParseMeeting(in.What); ok {
		want.What = &what
	}
	lines, err := s.Store.Connections(ctx, want, before, in.Limit)
	if err != nil {
		return nil, s.fault(err, "history of connections")
	}
	out := &struct{ Body connectionList }{connectionList{Connections: make([]Connection, 0, len(lines))}}
	names := doors{s: s, channels: s.channelNames(), agents: map[int64]ledger.Agent{}, hints: map[ledger.CredentialRef]string{}}
	for _, c := range lines {
		shown, err := names.show(ctx, c)
		if err != nil {
			return nil, s.fault(err, "history of connections")
		}
		out.Body.Connections = append(out.Body.Connections, shown)
	}
	out.Body.NextCursor = in.next(len(lines), func() int64 { return lines[len(lines)-1].ID })
	return out, nil
}

// doors are the names of channels, agents and credentials, each looked up once.
type doors struct {
	s        *server
	channels *channelNames
	agents   map[int64]ledger.Agent
	hints    map[ledger.CredentialRef]string
}

func (d *doors) show(ctx context.Context, c ledger.Connection) (Connection, error) {
	out := Connection{
		ID: c.ID, At: timeOf(c.At), Latest: timeOf(c.Latest), Count: c.Count, What: c.What.String(), Remote: c.Remote, Code: c.Code, Why: c.Why,
	}
	if c.Owner.Kind == ledger.AgentKey {
		row, err := d.agent(ctx, c.Owner.Key)
		if err != nil {
			return out, err
		}
		out.AgentID, out.Agent = row.ID, row.Name
	} else {
		row, _, err := d.channels.of(ctx, c.Owner.Key)
		if err != nil {
			return out, err
		}
		out.ChannelID, out.Channel = row.ID, row.Name
	}
	if c.Credential != 0 {
		hint, err := d.hint(ctx, c.Owner, c.Credential)
		if err != nil {
			return out, err
		}
		out.TokenID, out.TokenHint = strconv.FormatInt(c.Credential, 10), hint
	}
	return out, nil
}

// agent is the agent with a key; the zero one if it was deleted, or nobody knows whose.
func (d *doors) agent(ctx context.Context, key int64) (ledger.Agent, error) {
	row, known := d.agents[key]
	if !known && key != 0 {
		var err error
		if row, err = d.s.Store.AgentByKey(ctx, key); err != nil && !isNotFound(err) {
			return row, err
		}
		d.agents[key] = row
	}
	return row, nil
}

// hint is the end of a credential's secret; "" if it was deleted with its owner.
func (d *doors) hint(ctx context.Context, of ledger.Owner, id int64) (string, error) {
	ref := ledger.CredentialRef{Kind: of.Kind, ID: id}
	hint, known := d.hints[ref]
	if !known {
		found, err := d.s.Store.Credentials(ctx, of, id-1, 1)
		if err != nil {
			return "", err
		}
		if len(found) == 1 && found[0].ID == id {
			hint = found[0].Hint
		}
		d.hints[ref] = hint
	}
	return hint, nil
}
