package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Message is one message of history.
type Message struct {
	ID             string          `json:"id"`
	Direction      string          `json:"direction" enum:"in,out"`
	ConversationID string          `json:"conversation_id"`
	SessionKey     string          `json:"session_key"`
	Author         string          `json:"author" doc:"Shown author: the user's name, else id; of an answer, the agent"`
	AuthorID       string          `json:"author_id"`
	AgentName      string          `json:"agent_name"`
	Text           string          `json:"text"`
	Parts          []message.Part  `json:"parts"`
	ReplyCtx       json.RawMessage `json:"reply_ctx" doc:"The adapter's own, byte for byte; null if there was none; see encoded"`
	Metadata       message.Meta    `json:"metadata"`
	State          string          `json:"state"`
	Reason         string          `json:"reason,omitempty"`
	SettledAt      *Time           `json:"settled_at" nullable:"true" doc:"When its state last changed; null = never since it was committed"`
	PreviewHandle  string          `json:"preview_handle,omitempty" doc:"What the platform knows it by, as the adapter said"`
	ReplyTo        string          `json:"reply_to,omitempty" doc:"The message that this one answers"`
	Degraded       []render.Note   `json:"degraded"`
	TS             Time            `json:"ts"`

	Encoded map[string]string `json:"encoded,omitempty" doc:"Fields that are given as a string, since no reader could take them as they are: reply_ctx, or metadata.KEY. json = the string is their JSON, nested deeper than 64 levels, or with a number that not every parser takes; base64 = it is their bytes, which are no JSON"`
	Damaged []string          `json:"damaged,omitempty" doc:"What of the stored row can't be read: origin, parts, metadata, degraded. The rest is as it was stored"`

	Message message.Envelope `json:"message" doc:"The canonical message, whole"`
}

type messageList struct {
	Messages   []Message `json:"messages"`
	NextCursor string    `json:"next_cursor,omitempty"`
}

func (s *server) messages() {
	// The shapes of parts and metadata are not huma's to guess.
	reg := s.api.OpenAPI().Components.Schemas
	reg.RegisterTypeAlias(typeOf[message.Part](), typeOf[map[string]any]())
	reg.RegisterTypeAlias(typeOf[message.Meta](), typeOf[map[string]any]())
	reg.RegisterTypeAlias(typeOf[json.RawMessage](), typeOf[anyJSON]())
	huma.Register(s.api, s.gives(opens(auth.ScopeRead, byChannel, operation("GET", "/channels/{id}/messages", "list-messages", "Messages, newest first", 200, 404, 422)), messageList{}), s.listMessages)
	huma.Register(s.api, opens(auth.ScopeSend, byChannel, operation("POST", "/channels/{id}/messages", "send-message", "Send a message to a conversation", 202, 404, 409, 422)), s.sendMessage)
	s.acts()
	s.deadLetters()
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("POST", "/render", "render-message", "Show what an adapter would get, without sending it", 200, 422)), s.renderMessage)
	huma.Register(s.api, opens(auth.ScopeSend, byChannel, operation("POST", "/channels/{id}/test", "test-channel", "Send a test message to the latest conversation, or the one named", 202, 404, 409, 422)), s.testChannel)
	s.conversations()
	s.search()
}

func (s *server) listMessages(ctx context.Context, in *struct {
	ChannelRef
	MessagePage
	Conversation optional `query:"conversation_id"`
	Direction    string   `query:"direction" enum:"in,out"`
}) (*huma.StreamResponse, error) {
	row, after, err := s.findPage(ctx, in.ChannelRef, in.Page)
	if err != nil {
		return nil, err
	}
	scope := ledger.Scope{Channel: row.Key}
	if in.Conversation.set {
		scope.Conversation = &in.Conversation.value
	}
	if in.Direction != "" {
		d := ledger.In
		if in.Direction == "out" {
			d = ledger.Out
		}
		scope.Direction = &d
	}
	page, err := s.Pages.Open(ctx, paging.Query{In: scope, Before: ledger.MessageID(after), N: in.Limit, Bytes: in.MaxBytes})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, field(422, "query.cursor", "expected a next_cursor of the same list", in.Cursor)
	}
	if err != nil {
		return nil, s.fault(err, "messages")
	}
	return s.shown(page, `{"messages":[`, func(_ context.Context, e *ledger.Entry) (any, error) {
		return s.showMessage(*e), nil
	}, func(next ledger.MessageID) any {
		return nextPage{cursorOf(cmp.Or(next, page.Next))}
	}), nil
}

func (s *server) renderMessage(_ context.Context, in *struct{ Body RenderRequest }) (*body[Rendered], error) {
	out, err := Render(in.Body)
	if err != nil {
		return nil, err
	}
	return &body[Rendered]{out}, nil
}

// authorOf is who is shown as a message's author.
func authorOf(e ledger.Entry) string {
	if e.Origin.UserName == "" {
		return e.Origin.UserID + e.Origin.Agent // only one of them is there
	}
	return e.Origin.UserName
}

// showMessage makes a message as operators see it: urls of attachments are
// signed for a while.
func (s *server) showMessage(e ledger.Entry) Message {
	m := Message{
		ID: e.ID.String(), Direction: e.Direction.String(), ConversationID: e.Conversation, SessionKey: e.Origin.SessionKey,
		Author: authorOf(e), AuthorID: e.Origin.UserID, AgentName: e.Origin.Agent, Text: e.Text,
		ReplyCtx: json.RawMessage("null"), State: e.State.String(), Reason: string(e.Reason),
		SettledAt: when(e.SettledAt), PreviewHandle: e.Handle, Degraded: []render.Note{}, TS: timeOf(e.ID.Time()),
	}
	m.opaque(&e)
	if e.ReplyTo != 0 {
		m.ReplyTo = e.ReplyTo.String()
	}
	if len(e.Notes) > 0 && json.Unmarshal(e.Notes, &m.Degraded) != nil {
		m.Degraded, m.Damaged = []render.Note{}, append(m.Damaged, "degraded")
	}
	stored, err := message.ReadParts(e.Parts)
	if err != nil {
		m.Damaged = append(m.Damaged, "parts")
	}
	if m.Parts = s.Attachments.Signed(stored, 0); len(m.Parts) == 0 {
		m.Parts = message.Alone(e.Text)
	}
	m.Message = message.Envelope{
		ID: m.ID, Role: message.RoleUser, Status: message.Status(e.Status), CreatedAt: m.TS.Format(message.TimeFormat),
		SessionID: ledger.MessageID(e.ConversationID).String(), TurnIndex: e.Turn, Parts: m.Parts, Metadata: m.Metadata,
	}
	if e.Direction == ledger.Out {
		m.Message.Role = message.RoleAgent
	}
	return m
}

// opaque fills in what the host keeps for others, whatever it is. What readers
// could not take is encoded, or named as damaged: one message takes no list down.
func (m *Message) opaque(e *ledger.Entry) {
	encoded := func(field, how string) {
		if how == message.AsIs {
			return
		}
		if m.Encoded == nil {
			m.Encoded = map[string]string{}
		}
		m.Encoded[field] = how
	}
	if e.Origin.ReplyCtx != "" {
		value, how := message.Readable([]byte(e.Origin.ReplyCtx))
		m.ReplyCtx = value
		encoded("reply_ctx", how)
	}
	if e.Lost != nil {
		m.Damaged = append(m.Damaged, "origin")
	}
	meta, odd, err := packed.ReadMetadata(e)
	if err != nil {
		m.Damaged = append(m.Damaged, "metadata")
	}
	m.Metadata = meta
	for key, how := range odd {
		encoded("metadata."+key, how)
	}
}
