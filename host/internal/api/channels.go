package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Kind describes a kind of channel.
type Kind struct {
	Kind      string `json:"kind"`
	Creatable bool   `json:"creatable"`
	Token     bool   `json:"token" doc:"Whether its adapters need a token"`
	About     string `json:"about"`
}

const kindBridge = "bridge"

// Limits of a channel's lists.
const (
	maxListed    = 1000
	maxListEntry = 256
)

// Channel is one slot with its policy and health.
type Channel struct {
	ID                 string             `json:"id"`
	Name               string             `json:"name"`
	Kind               string             `json:"kind"`
	Enabled            bool               `json:"enabled"`
	Agent              string             `json:"agent" doc:"Who answers; none = store only"`
	Agents             []string           `json:"agents" doc:"Whom a conversation may choose; empty = all"`
	Queue              bool               `json:"queue" doc:"Keep messages while no adapter is attached"`
	AcceptCapabilities []string           `json:"accept_capabilities" doc:"What adapters may claim; empty = all"`
	AllowUsers         []string           `json:"allow_users" doc:"User ids that may speak; empty = all"`
	Profile            wire.Profile       `json:"profile"`
	QueueLimits        ledger.QueueLimits `json:"queue_limits" doc:"What is 0 or absent is the host's default"`
	RetentionDays      int                `json:"retention_days" doc:"How long messages are kept; 0 = for ever"`
	RateLimit          int                `json:"rate_limit" doc:"Frames a second that the adapter may send; 0 = 20,000"`
	Health             Health             `json:"health"`
	Adapter            *Adapter           `json:"adapter,omitempty" doc:"Who is attached; absent = nobody, or the channel is a front end"`
	CreatedAt          Time               `json:"created_at"`
	ETag               string             `json:"etag" doc:"The version of all that can be changed, as the header ETag has it: for If-Match"`
}

// Health is what is known of a channel, fact by fact.
type Health struct {
	Process        *string         `json:"process" doc:"State of the adapter's process; null = the host runs none"`
	Attached       bool            `json:"attached"`
	LastAttachedAt *Time           `json:"last_attached_at" nullable:"true" doc:"When an adapter was last attached; after a restart when one last came with a token of the channel. null = one is, or none ever was"`
	Open           bool            `json:"open" doc:"A token lets adapters in; also true where none is needed"`
	OpenUntil      *Time           `json:"open_until" nullable:"true" doc:"When the last token ends, or has ended; null = none has an end, or all were revoked"`
	LastInboundAt  *Time           `json:"last_inbound_at" nullable:"true"`
	LastSentAt     *Time           `json:"last_sent_at" nullable:"true" doc:"When a message was last written to an adapter; after a restart as far as the newest 64 messages tell"`
	Platform       *PlatformStatus `json:"platform,omitempty" doc:"How the platform is, as the adapter says; absent = it does not say, or none is attached"`
	AgentAway      bool            `json:"agent_away" doc:"The channel's agent can't be asked: messages for it wait"`
	AgentAwaySince *Time           `json:"agent_away_since" nullable:"true"`
	QueueLength    int             `json:"queue_length" doc:"Messages that wait to be written"`
	WaitingTurns   int             `json:"waiting_turns" doc:"Users' messages that wait for an agent that is away"`
	Repeated       uint64          `json:"repeated" doc:"Messages since the host began that were acknowledged and not stored, since the channel has had one of their message_id"`
	LastAckAt      *Time           `json:"last_ack_at" nullable:"true" doc:"When an adapter last confirmed a message, which a refusal does not; null under protocol 1.0, and after a restart if none of the newest 64 messages was delivered"`
	Confirmed      uint64          `json:"confirmed" doc:"Messages since the host began that an adapter confirmed"`
	Refused        uint64          `json:"refused" doc:"Messages since the host began that an adapter refused, for now or for good; one that is tried again counts each time"`
	RecentWords    int             `json:"recent_words" doc:"How many of the adapter's newest words on messages are known, at most 20"`
	RecentRefusals int             `json:"recent_refusals" doc:"How many of them refuse"`
	LastRefusedAt  *Time           `json:"last_refused_at" nullable:"true" doc:"When an adapter last refused a message; null = not since the host began"`
	LastRefusal    string          `json:"last_refusal,omitempty" doc:"What it said then"`
}

// PolicyBody is what may be set when a channel is made or changed.
type PolicyBody struct {
	Name               *string          `json:"name,omitempty" doc:"[a-z0-9][a-z0-9._-]{0,62}"`
	Enabled            *bool            `json:"enabled,omitempty"`
	Agent              *string          `json:"agent,omitempty"`
	Agents             *[]string        `json:"agents,omitempty"`
	Queue              *bool            `json:"queue,omitempty"`
	AcceptCapabilities *[]string        `json:"accept_capabilities,omitempty"`
	AllowUsers         *[]string        `json:"allow_users,omitempty"`
	Profile            ProfileBody      `json:"profile,omitzero" nullable:"true" doc:"What is absent of it stays as it is; what is null, 0 or empty is as the adapter says. null = all of it is"`
	QueueLimits        *QueueLimitsBody `json:"queue_limits,omitempty" doc:"What is absent of it stays as it is; 0 = the host's default"`
	RetentionDays      *int             `json:"retention_days,omitempty" minimum:"0" maximum:"36500" doc:"Older messages are deleted; 0 = none"`
	RateLimit          *int             `json:"rate_limit,omitempty" minimum:"0" maximum:"1000000" doc:"Frames a second that the adapter may send; 0 = 20,000"`
}

// QueueLimitsBody is ledger.QueueLimits as far as it is to be set.
type QueueLimitsBody struct {
	TTLSeconds *int `json:"ttl_seconds,omitempty" doc:"How long a message may wait" minimum:"0" maximum:"31536000"`
	Length     *int `json:"length,omitempty" doc:"How many messages may wait" minimum:"0" maximum:"1000000"`
	Attempts   *int `json:"attempts,omitempty" doc:"How often a message is tried that the adapter refuses for now" minimum:"0" maximum:"1000"`
}

type createBody struct {
	PolicyBody
	Kind  string `json:"kind,omitempty" doc:"bridge, unless said otherwise"`
	Token string `json:"token,omitempty" doc:"A token of your own; without one, one is made"`
}

// createdChannel shows the token, this one time.
type createdChannel struct {
	Channel
	Token string `json:"token" doc:"Shown once"`
}

// ChannelRef names a channel.
type ChannelRef struct {
	ID string `path:"id" maxLength:"64" doc:"The channel's id or name"`
}

type body[T any] struct{ Body T }

func (s *server) channels() {
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/channels/_kinds", "list-kinds", "Kinds of channels", 200)), s.listKinds)
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/channels", "list-channels", "Channels, oldest first", 200, 422)), s.listChannels)
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/channels/_summary", "summarize-channels", "What all channels together are like, and those that want somebody", 200, 422)), s.summarize)
	huma.Register(s.api, opens(auth.ScopeManage, wholeHost, operation("POST", "/channels", "create-channel", "Make a channel; the answer shows its token once", 201, 409, 422)), s.createChannel)
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/channels/{id}", "get-channel", "One channel", 200, 404)), s.getChannel)
	huma.Register(s.api, opens(auth.ScopeManage, byChannel, operation("PATCH", "/channels/{id}", "update-channel", "Change fields of a channel, beside whoever changes others of them; takes effect immediately", 200, 400, 404, 409, 412, 422)), s.updateChannel)
	huma.Register(s.api, opens(auth.ScopeManage, byChannel, operation("DELETE", "/channels/{id}", "delete-channel", "Delete a channel with its tokens and messages", 204, 400, 404, 409, 412)), s.deleteChannel)
}

type kindList struct {
	Kinds []Kind `json:"kinds"`
}

func (s *server) listKinds(context.Context, *struct{}) (*body[kindList], error) {
	return &body[kindList]{kindList{s.allKinds()}}, nil
}

type channelList struct {
	Channels   []Channel `json:"channels"`
	NextCursor string    `json:"next_cursor,omitempty"`
}

func (s *server) listChannels(ctx context.Context, in *struct {
	Page
	Query   string `query:"q" maxLength:"64" doc:"Only those whose name has this in it"`
	Agent   string `query:"agent" maxLength:"64" doc:"Only those that are routed to this agent"`
	Trouble bool   `query:"trouble" doc:"Only those that want somebody: see their health"`
}) (*body[channelList], error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	if ctx, err = s.withDoors(ctx); err != nil {
		return nil, err
	}
	out := channelList{Channels: []Channel{}}
	err = s.eachChannel(ctx, after, func(r ledger.Channel) (enough bool, err error) {
		if !strings.Contains(r.Name, strings.ToLower(in.Query)) || in.Agent != "" && r.Agent != in.Agent {
			return false, nil
		}
		c, err := s.show(ctx, r)
		if err != nil || in.Trouble && c.Trouble(s.Now()) == NoTrouble {
			return false, err
		}
		out.Channels = append(out.Channels, c)
		after = r.Key
		return len(out.Channels) == in.Limit, nil
	})
	if err != nil {
		return nil, err
	}
	out.NextCursor = in.next(len(out.Channels), func() int64 { return after })
	return &body[channelList]{out}, nil
}

func (s *server) createChannel(ctx context.Context, in *body[createBody]) (*tagged[createdChannel], error) {
	row := ledger.Channel{ID: uuid.NewString(), Kind: in.Body.Kind, Enabled: true, Agent: "echo"}
	if row.Kind == "" {
		row.Kind = kindBridge
	}
	if err := s.checkKind(row); err != nil {
		return nil, err
	}
	if in.Body.Name == nil {
		return nil, field(422, "body.name", "absent, expected "+config.NameRule, "")
	}
	if err := s.apply(ctx, &row, in.Body.PolicyBody); err != nil {
		return nil, err
	}
	token, stored, err := s.first(ledger.ChannelToken, in.Body.Token, forChannel)
	if err != nil {
		return nil, err
	}
	made, err := s.Store.CreateChannel(ctx, row, stored, s.by(ctx, "channel.create", row.Name, auth.PolicyOf(row)))
	if err != nil {
		return nil, s.fault(err, "channel")
	}
	s.Log.Info("channel created", "channel", made.Name, "id", made.ID)
	shown, err := s.show(ctx, made)
	return &tagged[createdChannel]{shown.ETag, createdChannel{shown, token}}, err
}

func (s *server) getChannel(ctx context.Context, in *ChannelRef) (*tagged[Channel], error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	shown, err := s.show(ctx, row)
	return &tagged[Channel]{shown.ETag, shown}, err
}

func (s *server) updateChannel(ctx context.Context, in *struct {
	ChannelRef
	IfMatch
	Body PolicyBody
}) (*tagged[Channel], error) {
	row, err := ledger.Edit(ctx, s.finder(in.ID), func(row *ledger.Channel) (*ledger.Change, error) {
		if err := s.check(ctx, in.IfMatch, row.ID, channelTag(*row), row.Version); err != nil {
			return nil, err
		}
		if n := in.Body.Name; n != nil && *n != row.Name && holderOf(ctx).Limited() { // which names are taken is not for it to know
			return nil, field(http.StatusForbidden, "body.name", "a key that is limited to channels does not rename them", "")
		}
		by := s.by(ctx, "channel.update", row.Name, nil)
		before := auth.PolicyOf(*row)
		if err := s.apply(ctx, row, in.Body); err != nil {
			return nil, err
		}
		if by.Before, by.After = auth.Diff(before, auth.PolicyOf(*row)); by.After == nil {
			return nil, nil // it is so already
		}
		return &by, s.checkFixed(*row, by.After)
	}, s.Store.UpdateChannel)
	if err != nil {
		return nil, s.fault(err, "channel "+in.ID)
	}
	s.Hub.Update(row)
	if !row.Enabled {
		s.Slots.Detach(row.Key, wire.CloseRevoked, "channel disabled")
	}
	if err := s.channelChanged(ctx, row); err != nil {
		return nil, s.fault(err, "channel "+in.ID)
	}
	shown, err := s.show(ctx, row)
	return &tagged[Channel]{shown.ETag, shown}, err
}

// finder is find that reads the same channel again, also after it got another name.
func (s *server) finder(ref string) func(context.Context) (ledger.Channel, error) {
	return func(ctx context.Context) (ledger.Channel, error) {
		row, err := s.find(ctx, ref)
		if err == nil {
			ref = row.ID
		}
		return row, err
	}
}

func (s *server) deleteChannel(ctx context.Context, in *struct {
	ChannelRef
	IfMatch
}) (*struct{}, error) {
	remove := func(ctx context.Context, row ledger.Channel, by ledger.Change) (ledger.Channel, error) {
		return row, s.Store.DeleteChannel(ctx, row, by)
	}
	row, err := ledger.Edit(ctx, s.finder(in.ID), func(row *ledger.Channel) (*ledger.Change, error) {
		if at := s.owner(*row); at != "" {
			return nil, huma.Error409Conflict("channel " + row.Name + " is that of a plugin: remove its entry first, " + at)
		}
		if s.end(*row) != nil {
			return nil, huma.Error409Conflict("channel " + row.Name + " is built in: disable it instead")
		}
		by := s.by(ctx, "channel.delete", row.Name, map[string]string{"id": row.ID})
		return &by, s.check(ctx, in.IfMatch, row.ID, channelTag(*row), row.Version)
	}, remove)
	if err != nil {
		return nil, s.fault(err, "channel "+in.ID)
	}
	s.Slots.Detach(row.Key, wire.CloseRevoked, "channel deleted")
	s.Slots.Frames.Forget(row.Key)
	s.Hub.Remove(row.Key)
	s.Log.Info("channel deleted", "channel", row.Name, "id", row.ID)
	return nil, nil
}

// find reads a channel by id or name, if it is there for who makes the request.
func (s *server) find(ctx context.Context, ref string) (ledger.Channel, error) {
	row, err := s.Store.Channel(ctx, ref)
	if err == nil && !holderOf(ctx).Sees(row.ID) {
		row, err = ledger.Channel{}, ledger.ErrNotFound
	}
	if err != nil {
		return row, s.fault(err, fmt.Sprintf("channel %q", ref))
	}
	return row, nil
}

// findPage is find for a list of the channel: with where its page starts.
func (s *server) findPage(ctx context.Context, ref ChannelRef, p Page) (ledger.Channel, int64, error) {
	row, err := s.find(ctx, ref.ID)
	if err != nil {
		return row, 0, err
	}
	after, err := p.after()
	return row, after, err
}

// apply checks what was asked for and puts it into the row.
func (s *server) apply(ctx context.Context, row *ledger.Channel, b PolicyBody) error {
	if b.Name != nil {
		if err := checkName(*b.Name); err != nil {
			return err
		}
		row.Name = *b.Name
	}
	set(&row.Enabled, b.Enabled)
	set(&row.Queue, b.Queue)
	row.Profile = b.Profile.over(row.Profile)
	if l := b.QueueLimits; l != nil {
		set(&row.Limits.TTLSeconds, l.TTLSeconds)
		set(&row.Limits.Length, l.Length)
		set(&row.Limits.Attempts, l.Attempts)
	}
	set(&row.Retention, b.RetentionDays)
	set(&row.Rate, b.RateLimit)
	if err := s.applyAgents(ctx, row, b); err != nil {
		return err
	}
	if b.AcceptCapabilities != nil {
		newest := wire.V11.String() // whichever protocol the adapter will speak
		if _, unknown := wire.ParseCapsFor(newest, *b.AcceptCapabilities); len(unknown) > 0 {
			return field(422, "body.accept_capabilities", "expected "+strings.Join(wire.CapNamesFor(newest), ", "), unknown[0])
		}
		row.Accept = *b.AcceptCapabilities
	}
	if b.AllowUsers != nil {
		if err := checkList("body.allow_users", *b.AllowUsers); err != nil {
			return err
		}
		row.Users = *b.AllowUsers
	}
	return nil
}

func (s *server) applyAgents(ctx context.Context, row *ledger.Channel, b PolicyBody) error {
	names := s.Hub.AgentNames()
	expected := "expected " + strings.Join(names, ", ") + " (none = store only)"
	if holderOf(ctx).Limited() { // who may not list the agents is not told their names
		expected = "found no agent of this name"
	}
	if b.Agent != nil {
		if !slices.Contains(names, *b.Agent) {
			return field(422, "body.agent", expected, clip(*b.Agent))
		}
		row.Agent = *b.Agent
	}
	if b.Agents != nil {
		for i, a := range *b.Agents {
			if !slices.Contains(names, a) {
				return field(422, fmt.Sprintf("body.agents[%d]", i), expected, clip(a))
			}
		}
		row.Agents = *b.Agents
	}
	return nil
}

func set[T any](dst, value *T) {
	if value != nil {
		*dst = *value
	}
}

func checkName(name string) error {
	if config.CheckName(name) != nil {
		return field(422, "body.name", "expected "+config.NameRule, clip(name))
	}
	return nil
}

func checkList(location string, list []string) error {
	if len(list) > maxListed {
		return field(422, location, fmt.Sprintf("found %d entries, at most %d are allowed", len(list), maxListed), "")
	}
	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", location, i)
		if v == "" || len(v) > maxListEntry {
			return field(422, at, fmt.Sprintf("found %d bytes, expected 1 to %d", len(v), maxListEntry), "")
		}
		if strings.ContainsFunc(v, unicode.IsControl) {
			return field(422, at, "found a control character, expected printable text", fmt.Sprintf("%q", v))
		}
	}
	return nil
}

// clip keeps an error short.
func clip(s string) string { return cutAt(s, 80) }

// show makes a channel as operators see it.
func (s *server) show(ctx context.Context, r ledger.Channel) (Channel, error) {
	last, err := s.Store.Ends(ctx, r.Key)
	if err != nil {
		return Channel{}, s.fault(err, "channel "+r.Name)
	}
	adapter, attached := s.Hub.Attached(r.Key)
	door, err := s.door(ctx, r)
	if err != nil {
		return Channel{}, s.fault(err, "channel "+r.Name)
	}
	var seen *Time
	if !attached {
		seen = when(cmp.Or(s.Hub.Left(r.Key), door.Used))
	}
	since, away := s.Hub.AgentAway(r.Agent)
	waiting, err := s.Hub.Waiting(ctx, r.Key)
	if err != nil {
		return Channel{}, s.fault(err, "channel "+r.Name)
	}
	said := s.Hub.Said(r.Key)
	h := Health{
		Process: s.process(r), Attached: attached, LastAttachedAt: seen, Platform: showPlatform(adapter.Status), AgentAway: away, AgentAwaySince: when(since), QueueLength: waiting, WaitingTurns: s.Hub.WaitForAgents(r.Key), Repeated: s.Hub.Repeated(r.Key),
		Open: r.Kind != kindBridge || door.Open(s.Now()), OpenUntil: when(door.Ends), Confirmed: said.Confirmed, Refused: said.Refused, LastRefusedAt: when(said.RefusedAt), LastRefusal: said.Why,
	}
	h.RecentWords, h.RecentRefusals = said.Recent()
	if id := last.LastIn; id != 0 {
		h.LastInboundAt = when(id.Time())
	}
	if at := s.Hub.LastSent(r.Key); !at.IsZero() {
		h.LastSentAt = when(at)
	} else {
		h.LastSentAt = when(last.Sent)
	}
	if h.LastAckAt = when(said.ConfirmedAt); h.LastAckAt == nil {
		h.LastAckAt = when(last.Delivered)
	}
	var is *Adapter
	if attached && s.end(r) == nil { // a front end has none
		a := showAdapter(r.ID, r.Name, adapter)
		is = &a
	}
	return Channel{
		Adapter: is,
		ID:      r.ID, Name: r.Name, Kind: r.Kind, Enabled: r.Enabled, Agent: r.Agent, Agents: orEmpty(r.Agents), Queue: r.Queue,
		AcceptCapabilities: orEmpty(r.Accept), AllowUsers: orEmpty(r.Users), Profile: wire.Profile(r.Profile), QueueLimits: r.Limits, RetentionDays: r.Retention, RateLimit: r.Rate, Health: h, CreatedAt: timeOf(r.CreatedAt), ETag: channelTag(r),
	}, nil
}

// by is the audit line of a change that the request of ctx makes; detail must hold
// no secret.
func (s *server) by(ctx context.Context, action, target string, detail any) ledger.Change {
	return auth.By(ctx, action, target, detail)
}
