package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

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
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	keys, err := s.Store.AgentKeys(ctx, row.Key, after, in.Limit)
	if err != nil {
		return nil, s.fault(err, "keys")
	}
	out := keyList{Keys: make([]Token, len(keys))}
	for i, k := range keys {
		out.Keys[i] = s.showToken(k)
	}
	out.NextCursor = in.next(len(keys), func() int64 { return keys[len(keys)-1].ID })
	return &body[keyList]{out}, nil
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
	n, err := s.rotation(b.Rotation, "body.key", b.Key, auth.AgentKeyPrefix)
	if err != nil {
		return nil, err
	}
	made, err := s.Store.RotateAgentKey(ctx, row.Key, n.stored, n.until, s.by(ctx, "agent.key.rotate", row.Name, n.detail))
	if err != nil {
		return nil, s.faultOfKey(err, "key")
	}
	s.Agents.Expire(row.Key, made.ID, n.until)
	return &body[createdKey]{createdKey{s.showToken(made), n.secret}}, nil
}

func (s *server) revokeKey(ctx context.Context, in *keyRef) (*struct{}, error) {
	row, err := s.findAgent(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(in.Key, 10, 64)
	if err == nil {
		err = s.Store.RevokeAgentKey(ctx, row.Key, id, s.by(ctx, "agent.key.revoke", row.Name, map[string]string{"key": in.Key}))
	} else {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return nil, s.fault(err, fmt.Sprintf("key %q", in.Key))
	}
	s.Agents.Revoke(row.Key, id)
	return nil, nil
}

// faultOfKey is fault where the secret that is taken is an agent's key.
func (s *server) faultOfKey(err error, where string) error {
	if errors.Is(err, ledger.ErrTokenTaken) {
		return field(http.StatusConflict, "body.key", "is in use or was used before: choose another key", "")
	}
	return s.fault(err, where)
}
