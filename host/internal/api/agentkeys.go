package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

type createdKey struct {
	Token
	Secret string `json:"key" doc:"Shown once"`
}

type rotateKeyBody struct {
	Rotation
	Key string `json:"key,omitempty" doc:"A key of your own; without one, one is made"`
}

type keyRef struct {
	AgentRef
	Key string `path:"key" maxLength:"20"`
}

type keyList struct {
	Keys       []Token `json:"keys"`
	NextCursor string  `json:"next_cursor,omitempty"`
}

func (s *server) agentKeys() {
	huma.Register(s.api, opens(auth.ScopeManage, wholeHost, operation("GET", "/agents/{id}/keys", "list-agent-keys", "An agent's keys, oldest first", 200, 404)), s.listKeys)
	huma.Register(s.api, opens(auth.ScopeManage, wholeHost, operation("POST", "/agents/{id}/keys", "rotate-agent-key", "Add a key; the older ones end after the overlap", 201, 404, 409, 422)), s.rotateKey)
	huma.Register(s.api, opens(auth.ScopeManage, wholeHost, operation("DELETE", "/agents/{id}/keys/{key}", "revoke-agent-key", "End a key, and the connection that uses it, at once", 204, 404)), s.revokeKey)
}

func (s *server) listKeys(ctx context.Context, in *struct {
	AgentRef
	Page
}) (*body[keyList], error) {
	row, err := s.findAgent(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	keys, next, err := s.listTokensOf(ctx, ledger.OfAgent(row.Key), in.Page, forAgent)
	return &body[keyList]{keyList{keys, next}}, err
}

func (s *server) rotateKey(ctx context.Context, in *struct {
	AgentRef
	Body *rotateKeyBody // nil = all as by default
}) (*body[createdKey], error) {
	row, err := s.findAgent(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if k, known := s.Agents.Kind(row.Kind); known && !k.Keys {
		return nil, huma.Error409Conflict("agent " + row.Name + " is of kind " + row.Kind + ", which has no keys")
	}
	b := rotateKeyBody{}
	if in.Body != nil {
		b = *in.Body
	}
	made, err := s.rotate(ctx, ledger.OfAgent(row.Key), row.Name, b.Rotation, b.Key, forAgent)
	return &body[createdKey]{createdKey{s.showToken(made.Credential), made.Secret}}, err
}

func (s *server) revokeKey(ctx context.Context, in *keyRef) (*struct{}, error) {
	row, err := s.findAgent(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return nil, s.revoke(ctx, ledger.OfAgent(row.Key), row.Name, in.Key, forAgent)
}
