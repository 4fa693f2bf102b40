package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
)

type createdToken struct {
	Token
	Secret string `json:"token" doc:"Shown once"`
}

type rotateBody struct {
	Rotation
	Token string `json:"token,omitempty" doc:"A token of your own; without one, one is made"`
}

type tokenRef struct {
	ChannelRef
	Token string `path:"token" maxLength:"20"`
}

type tokenList struct {
	Tokens     []Token `json:"tokens"`
	NextCursor string  `json:"next_cursor,omitempty"`
}

func (s *server) tokens() {
	huma.Register(s.api, opens(auth.ScopeManage, byChannel, operation("GET", "/channels/{id}/tokens", "list-tokens", "A channel's tokens, oldest first", 200, 404)), s.listTokens)
	huma.Register(s.api, opens(auth.ScopeManage, byChannel, operation("POST", "/channels/{id}/tokens", "rotate-token", "Add a token; the older ones end after the overlap", 201, 404, 409, 422)), s.rotateToken)
	huma.Register(s.api, opens(auth.ScopeManage, byChannel, operation("DELETE", "/channels/{id}/tokens/{token}", "revoke-token", "End a token, and the connection that uses it, at once", 204, 404)), s.revokeToken)
}

func (s *server) listTokens(ctx context.Context, in *struct {
	ChannelRef
	Page
}) (*body[tokenList], error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	tokens, next, err := s.listTokensOf(ctx, ledger.OfChannel(row.Key), in.Page, forChannel)
	return &body[tokenList]{tokenList{tokens, next}}, err
}

func (s *server) rotateToken(ctx context.Context, in *struct {
	ChannelRef
	Body *rotateBody // nil = all as by default
}) (*body[createdToken], error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if row.Kind == plugin.Kind {
		return nil, huma.Error409Conflict("channel " + row.Name + " is that of a plugin, which needs no token")
	}
	if s.end(row) != nil {
		return nil, huma.Error409Conflict("channel " + row.Name + " is built in, and has no token: its clients have keys of another kind")
	}
	b := rotateBody{}
	if in.Body != nil {
		b = *in.Body
	}
	made, err := s.rotate(ctx, ledger.OfChannel(row.Key), row.Name, b.Rotation, b.Token, forChannel)
	return &body[createdToken]{createdToken{s.showToken(made.Credential), made.Secret}}, err
}

func (s *server) revokeToken(ctx context.Context, in *tokenRef) (*struct{}, error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return nil, s.revoke(ctx, ledger.OfChannel(row.Key), row.Name, in.Token, forChannel)
}
