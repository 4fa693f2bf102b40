package api

import (
	"context"
	"net/http"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// MessageRef names a message of a channel.
type MessageRef struct {
	ChannelRef
	Message string `path:"message" maxLength:"64" doc:"The message's id"`
}

// ReactionRef names an emoji on a message.
type ReactionRef struct {
	MessageRef
	Emoji string `path:"emoji" minLength:"1" maxLength:"64" doc:"As the platform writes it: the emoji itself, or its name"`
}

func (s *server) acts() {
	huma.Register(s.api, opens(auth.ScopeSend, byChannel, operation("DELETE", "/channels/{id}/messages/{message}", "delete-message",
		"Take a message back at the platform; history keeps it, and this as a message of its own", 202, 404, 409, 422)), s.deleteMessage)
	huma.Register(s.api, opens(auth.ScopeSend, byChannel, operation("PUT", "/channels/{id}/messages/{message}/reactions/{emoji}", "add-reaction",
		"React to a message at the platform", 202, 404, 409, 422)), func(ctx context.Context, in *ReactionRef) (*body[sentBody], error) {
		return s.react(ctx, in, false)
	})
	huma.Register(s.api, opens(auth.ScopeSend, byChannel, operation("DELETE", "/channels/{id}/messages/{message}/reactions/{emoji}", "remove-reaction",
		"Take a reaction back at the platform", 202, 404, 409, 422)), func(ctx context.Context, in *ReactionRef) (*body[sentBody], error) {
		return s.react(ctx, in, true)
	})
}

func (s *server) deleteMessage(ctx context.Context, in *MessageRef) (*body[sentBody], error) {
	return s.do(ctx, in, message.Message{}, message.MetaDeletes)
}

func (s *server) react(ctx context.Context, in *ReactionRef, remove bool) (*body[sentBody], error) {
	if strings.ContainsFunc(in.Emoji, unicode.IsControl) {
		return nil, field(422, "path.emoji", "found a control character, expected an emoji or its name", "")
	}
	m := message.Text(in.Emoji)
	m.Meta = m.Meta.With(message.MetaReaction, in.Emoji)
	if remove {
		m.Meta[message.MetaRemoved] = []byte("true")
	}
	return s.do(ctx, &in.MessageRef, m, message.MetaReactsTo)
}

// do sends m, which does to an earlier message what the metadata key says.
func (s *server) do(ctx context.Context, in *MessageRef, m message.Message, key string) (*body[sentBody], error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	e, err := s.message(ctx, row, "path.message", in.Message, http.StatusNotFound)
	if err != nil {
		return nil, err
	}
	m.Role, m.Status = message.RoleAgent, message.StatusCompleted
	m.Meta = m.Meta.With(key, e.ID.String())
	if h := packed.EditHandle(&e); h != "" {
		m.Meta = m.Meta.With(message.MetaPreviewHandle, h)
	}
	return s.send(ctx, row, hub.Outgoing{Conversation: e.Conversation, Message: m})
}
