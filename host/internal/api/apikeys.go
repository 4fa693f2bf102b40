package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Key is a key without its secret.
type Key struct {
	Token
	Name     string       `json:"name"`
	Scopes   []string     `json:"scopes"`
	Channels []KeyChannel `json:"channels" doc:"What it is limited to; empty = it is not"`
}

// KeyChannel is a channel that a key is limited to.
type KeyChannel struct {
	ID   string `json:"id"`
	Name string `json:"name" doc:"Empty: it was deleted"`
}

type createdAPIKey struct {
	Key
	Secret string `json:"key" doc:"Shown once"`
}

type apiKeyBody struct {
	Name     string   `json:"name" maxLength:"64" doc:"[a-z][a-z0-9._-]{0,62}"`
	Scopes   []string `json:"scopes" maxItems:"16" doc:"What it opens: read, send, manage, admin, agent:run"`
	Channels []string `json:"channels,omitempty" maxItems:"100" doc:"Ids or names of the only channels that are there for it; without them, all. Not with admin and agent:run"`
	Expires  string   `json:"expires,omitempty" doc:"How long the key lives, such as 30d; without it, for ever"`
}

type apiKeyList struct {
	Keys       []Key  `json:"keys"`
	NextCursor string `json:"next_cursor,omitempty"`
}

// APIKeyRef names a key.
type APIKeyRef struct {
	Key string `path:"key" maxLength:"64" doc:"The key's id or, while it lives, name"`
}

func (s *server) apiKeys() {
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("GET", "/keys", "list-keys", "Keys, oldest first; the operator's own is none of them", 200, 422)), s.listAPIKeys)
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("POST", "/keys", "create-key", "Make a key; the answer shows it once", 201, 409, 422)), s.createAPIKey)
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("GET", "/keys/{key}", "get-key", "One key", 200, 404)), s.getAPIKey)
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("DELETE", "/keys/{key}", "delete-key", "End a key, and what it has under way, at once", 204, 404)), s.deleteAPIKey)
}

func (s *server) listAPIKeys(ctx context.Context, in *Page) (*body[apiKeyList], error) {
	page, next, err := s.listCredentials(ctx, ledger.OfHost(), *in, "keys")
	if err != nil {
		return nil, err
	}
	out := apiKeyList{Keys: make([]Key, len(page)), NextCursor: next}
	for i, c := range page {
		if out.Keys[i], err = s.showAPIKey(ctx, c); err != nil {
			return nil, err
		}
	}
	return &body[apiKeyList]{out}, nil
}

func (s *server) getAPIKey(ctx context.Context, in *APIKeyRef) (*body[Key], error) {
	k, err := s.Store.APIKeyByRef(ctx, in.Key)
	if err != nil {
		return nil, s.fault(err, fmt.Sprintf("key %q", in.Key))
	}
	shown, err := s.showAPIKey(ctx, k)
	return &body[Key]{shown}, err
}

func (s *server) createAPIKey(ctx context.Context, in *body[apiKeyBody]) (*body[createdAPIKey], error) {
	if err := auth.CheckKeyName(in.Body.Name); err != nil {
		return nil, field(422, "body.name", err.Error(), "")
	}
	if err := auth.CheckScopes(in.Body.Scopes, len(in.Body.Channels) > 0); err != nil {
		return nil, field(422, "body.scopes", err.Error(), "")
	}
	channels, err := s.channelIDs(ctx, in.Body.Channels)
	if err != nil {
		return nil, err
	}
	life, err := duration("body.expires", in.Body.Expires, longestLife)
	if err != nil {
		return nil, err
	}
	made, err := s.issuer.CreateKey(ctx, ledger.Terms{Name: in.Body.Name, Scopes: in.Body.Scopes, Channels: channels}, life,
		s.by(ctx, "key.create", in.Body.Name, in.Body))
	if errors.Is(err, ledger.ErrNameTaken) {
		return nil, field(http.StatusConflict, "body.name", "is taken by another key: choose another name, or delete that one", in.Body.Name)
	}
	if err != nil {
		return nil, s.fault(err, "key")
	}
	shown, err := s.showAPIKey(ctx, made.Credential)
	return &body[createdAPIKey]{createdAPIKey{shown, made.Secret}}, err
}

// channelIDs finds the channels that a key is to be limited to.
func (s *server) channelIDs(ctx context.Context, refs []string) ([]string, error) {
	var ids []string
	for i, ref := range refs {
		row, err := s.Store.Channel(ctx, ref)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil, field(422, fmt.Sprintf("body.channels[%d]", i), "no such channel, expected an id or a name", clip(ref))
		}
		if err != nil {
			return nil, s.fault(err, "channels")
		}
		if !slices.Contains(ids, row.ID) {
			ids = append(ids, row.ID)
		}
	}
	return ids, nil
}

func (s *server) deleteAPIKey(ctx context.Context, in *APIKeyRef) (*struct{}, error) {
	c, err := s.Store.APIKeyByRef(ctx, in.Key)
	if err == nil {
		err = s.issuer.Revoke(ctx, c.Owner, c.ID, s.by(ctx, "key.delete", c.Name, nil))
	}
	if err != nil {
		return nil, s.fault(err, fmt.Sprintf("key %q", in.Key))
	}
	return nil, nil
}

func (s *server) showAPIKey(ctx context.Context, k ledger.Credential) (Key, error) {
	out := Key{s.showToken(k), k.Name, orEmpty(k.Scopes), make([]KeyChannel, len(k.Channels))}
	for i, id := range k.Channels {
		row, err := s.Store.Channel(ctx, id)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return Key{}, s.fault(err, "key "+k.Name)
		}
		out.Channels[i] = KeyChannel{id, row.Name}
	}
	return out, nil
}
