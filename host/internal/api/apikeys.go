package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/store"
)

// scopeKey is where an operation says which scope opens it; without it only the
// operator's key does.
const scopeKey = "scope"

// holder tells who holds the key of an Authorization header. Errors are
// auth.ErrInvalid and those of storage.
func (s *server) holder(ctx context.Context, header string) (auth.Holder, error) {
	key, ok := bearer(header)
	switch {
	case !ok:
		return auth.Holder{}, auth.ErrInvalid
	case s.Keys.Valid(key):
		return auth.Operator(), nil
	case s.Gate == nil:
		return auth.Holder{}, auth.ErrInvalid
	}
	return s.Gate.AdmitKey(ctx, key)
}

const noKey = "no valid key: expected Authorization: Bearer KEY with the key in admin.key of the data directory"

// admit lets the holder of a key in whose scope it is; else it is the problem
// to answer with.
func (s *server) admit(ctx context.Context, header string, scope auth.Scope) (auth.Holder, error) {
	h, err := s.holder(ctx, header)
	switch {
	case errors.Is(err, auth.ErrInvalid):
		why := noKey
		if scope != "" {
			why += ", or one of scope " + string(scope)
		}
		return h, huma.Error401Unauthorized(why)
	case err != nil:
		return h, s.fault(err, "key")
	case !h.May(scope):
		need := "one of scope " + string(scope)
		if scope == "" {
			need = "the operator's"
		}
		return h, huma.Error403Forbidden("the key " + h.Name + " does not open this: expected " + need)
	}
	return h, nil
}

type holderKey struct{}

// holderOf is who makes the request of an operation.
func holderOf(ctx context.Context) auth.Holder {
	h, _ := ctx.Value(holderKey{}).(auth.Holder)
	return h
}

// authenticate is the gate of all operations.
func (s *server) authenticate(ctx huma.Context, next func(huma.Context)) {
	scope, _ := ctx.Operation().Metadata[scopeKey].(auth.Scope)
	h, err := s.admit(ctx.Context(), ctx.Header("Authorization"), scope)
	if err != nil {
		var p huma.StatusError
		if errors.As(err, &p); p.GetStatus() == http.StatusUnauthorized {
			ctx.SetHeader("WWW-Authenticate", "Bearer")
		}
		_ = huma.WriteErr(s.api, ctx, p.GetStatus(), p.Error()) // the client is told or gone
		return
	}
	next(huma.WithValue(ctx, holderKey{}, h))
}

// Key is a key without its secret.
type Key struct {
	Token
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
}

type createdAPIKey struct {
	Key
	Secret string `json:"key" doc:"Shown once"`
}

type apiKeyBody struct {
	Name    string   `json:"name" maxLength:"64" doc:"[a-z][a-z0-9._-]{0,62}"`
	Scopes  []string `json:"scopes" maxItems:"16" doc:"What it opens: agent:run"`
	Expires string   `json:"expires,omitempty" doc:"How long the key lives, such as 720h; without it, for ever"`
}

type apiKeyList struct {
	Keys       []Key  `json:"keys"`
	NextCursor string `json:"next_cursor,omitempty"`
}

func (s *server) apiKeys() {
	huma.Register(s.api, operation("GET", "/keys", "list-keys", "Keys, oldest first; the operator's own is none of them", 200, 422), s.listAPIKeys)
	huma.Register(s.api, operation("POST", "/keys", "create-key", "Make a key; the answer shows it once", 201, 409, 422), s.createAPIKey)
	huma.Register(s.api, operation("DELETE", "/keys/{key}", "delete-key", "End a key, and what it has under way, at once", 204, 404), s.deleteAPIKey)
}

func (s *server) listAPIKeys(ctx context.Context, in *Page) (*body[apiKeyList], error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	keys, err := s.Store.Keys(ctx, after, in.Limit)
	if err != nil {
		return nil, s.fault(err, "keys")
	}
	out := apiKeyList{Keys: make([]Key, len(keys))}
	for i, k := range keys {
		out.Keys[i] = s.showAPIKey(k)
	}
	out.NextCursor = in.next(len(keys), func() int64 { return keys[len(keys)-1].ID })
	return &body[apiKeyList]{out}, nil
}

func (s *server) createAPIKey(ctx context.Context, in *body[apiKeyBody]) (*body[createdAPIKey], error) {
	if err := auth.CheckKeyName(in.Body.Name); err != nil {
		return nil, field(422, "body.name", err.Error(), "")
	}
	if err := auth.CheckScopes(in.Body.Scopes); err != nil {
		return nil, field(422, "body.scopes", err.Error(), "")
	}
	lives, err := duration("body.expires", in.Body.Expires, longestLife)
	if err != nil {
		return nil, err
	}
	var expires time.Time
	if lives > 0 {
		expires = s.Now().Add(lives)
	}
	secret := auth.Generate(auth.KeyPrefix)
	made, err := s.Store.CreateKey(ctx, in.Body.Name, in.Body.Scopes, auth.NewToken(secret, expires), s.by("key.create", in.Body.Name, in.Body))
	if errors.Is(err, store.ErrNameTaken) {
		return nil, field(http.StatusConflict, "body.name", "is taken by another key: choose another name, or delete that one", in.Body.Name)
	}
	if err != nil {
		return nil, s.fault(err, "key")
	}
	return &body[createdAPIKey]{createdAPIKey{s.showAPIKey(made), secret}}, nil
}

func (s *server) deleteAPIKey(ctx context.Context, in *struct {
	Key string `path:"key" maxLength:"64" doc:"The key's id or name"`
}) (*struct{}, error) {
	k, err := s.Store.RevokeKey(ctx, in.Key, s.by("key.delete", "", nil))
	if err != nil {
		return nil, s.fault(err, fmt.Sprintf("key %q", in.Key))
	}
	if s.AGUI != nil {
		s.AGUI.Revoke(k.ID)
	}
	return nil, nil
}

func (s *server) showAPIKey(k store.Key) Key {
	return Key{s.showToken(k.Token), k.Name, orEmpty(k.Scopes)}
}
