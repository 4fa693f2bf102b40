package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Conversation is one conversation of a channel.
type Conversation struct {
	ChannelID      string       `json:"channel_id"`
	Channel        string       `json:"channel" doc:"The channel's name"`
	ConversationID string       `json:"conversation_id"`
	Agent          string       `json:"agent" doc:"Chosen in this conversation; empty = the channel's"`
	Muted          bool         `json:"muted" doc:"Notices of the host are off"`
	Turns          int64        `json:"turns"`
	LastMessageID  string       `json:"last_message_id"`
	LastMessageAt  Time         `json:"last_message_at"`
	Last           *LastMessage `json:"last" doc:"The newest message, in short; null = it was deleted"`
	Waiting        int64        `json:"waiting" doc:"Messages to the platform that are queued or not acknowledged yet"`
	Failed         int64        `json:"failed" doc:"Messages to the platform that failed or expired, among the newest 10,000 such of the host"`
}

// LastMessage is a conversation's newest message in a list.
type LastMessage struct {
	Direction string `json:"direction" enum:"in,out"`
	Author    string `json:"author"`
	Snippet   string `json:"snippet" doc:"How it begins, on one line"`
	State     string `json:"state"`
	Reason    string `json:"reason,omitempty"`
	Streaming bool   `json:"streaming" doc:"It is still being made"`
}

type conversationList struct {
	Conversations []Conversation `json:"conversations"`
	NextCursor    string         `json:"next_cursor,omitempty"`
}

func (s *server) conversations() {
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/conversations", "list-all-conversations", "Conversations of all channels, latest first", 200, 404, 422)), s.listAllConversations)
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/channels/{id}/conversations", "list-conversations", "Conversations of a channel, latest first", 200, 404, 422)), s.listConversations)
}

func (s *server) listConversations(ctx context.Context, in *struct {
	ChannelRef
	Page
}) (*body[conversationList], error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.conversationsOf(ctx, []int64{row.Key}, in.Page)
}

func (s *server) listAllConversations(ctx context.Context, in *struct {
	Page
	Channel string `query:"channel" maxLength:"64" doc:"Only of this channel"`
}) (*body[conversationList], error) {
	channels, err := s.readable(ctx, in.Channel)
	if err != nil {
		return nil, err
	}
	return s.conversationsOf(ctx, channels, in.Page)
}

// readable are the channels of which the caller may read messages, or the one
// that is named; nil = all.
func (s *server) readable(ctx context.Context, ref string) ([]int64, error) {
	if ref != "" {
		row, err := s.find(ctx, ref)
		return []int64{row.Key}, err
	}
	if !holderOf(ctx).Limited() {
		return nil, nil
	}
	rows, err := s.visible(ctx, 0, auth.MaxKeyChannels)
	if err != nil {
		return nil, s.fault(err, "channels")
	}
	keys := make([]int64, len(rows))
	for i, r := range rows {
		keys[i] = r.Key
	}
	return keys, nil
}

func (s *server) conversationsOf(ctx context.Context, channels []int64, p Page) (*body[conversationList], error) {
	before, err := p.after()
	if err != nil {
		return nil, err
	}
	found, err := s.Store.Conversations(ctx, channels, ledger.MessageID(before), p.Limit)
	if err != nil {
		return nil, s.fault(err, "conversations")
	}
	names := s.channelNames()
	out := conversationList{Conversations: make([]Conversation, 0, len(found))}
	for i, c := range found {
		row, there, err := names.of(ctx, c.Channel)
		if err != nil {
			return nil, s.fault(err, "conversations")
		}
		if !there { // deleted, and about to be swept
			continue
		}
		out.Conversations = append(out.Conversations, Conversation{
			ChannelID: row.ID, Channel: row.Name, ConversationID: c.Key, Agent: c.Settings.Agent, Muted: c.Settings.Muted, Turns: c.Turns,
			LastMessageID: c.Newest.String(), LastMessageAt: timeOf(c.Newest.Time()), Last: s.showLast(c.Last), Waiting: c.Waiting, Failed: c.Failed,
		})
		s.pace(i)
	}
	out.NextCursor = p.next(len(found), func() int64 { return int64(found[len(found)-1].Newest) })
	return &body[conversationList]{out}, nil
}

func (s *server) showLast(e *ledger.Entry) *LastMessage {
	if e == nil {
		return nil
	}
	return &LastMessage{
		Direction: e.Direction.String(), Author: authorOf(*e), Snippet: e.Text,
		State: e.State.String(), Reason: string(e.Reason), Streaming: e.Making(),
	}
}

// channelNames looks channels up, each once.
type channelNames struct {
	s    *server
	rows map[int64]*ledger.Channel // nil = deleted
}

func (s *server) channelNames() *channelNames { return &channelNames{s, map[int64]*ledger.Channel{}} }

// of is the channel with a key; false if it was deleted.
func (n *channelNames) of(ctx context.Context, key int64) (ledger.Channel, bool, error) {
	row, known := n.rows[key]
	if !known {
		found, err := n.s.Store.ChannelByKey(ctx, key)
		switch {
		case err == nil:
			row = &found
		case !isNotFound(err):
			return ledger.Channel{}, false, err
		}
		n.rows[key] = row
	}
	if row == nil {
		return ledger.Channel{}, false, nil
	}
	return *row, true, nil
}
