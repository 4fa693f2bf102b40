package api

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// How long a rotated token lives on.
const (
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 30 * 24 * time.Hour
)

// longestLife bounds how long a token or a key lives that has an end.
const longestLife = 100 * 365 * 24 * time.Hour

// Token is a channel's token without its secret.
type Token struct {
	ID         string `json:"id"`
	Hint       string `json:"hint" doc:"The token's last four characters"`
	Live       bool   `json:"live"`
	CreatedAt  Time   `json:"created_at"`
	ExpiresAt  *Time  `json:"expires_at" nullable:"true"`
	RevokedAt  *Time  `json:"revoked_at" nullable:"true"`
	LastUsedAt *Time  `json:"last_used_at" nullable:"true"`
}

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
	row, after, err := s.findPage(ctx, in.ChannelRef, in.Page)
	if err != nil {
		return nil, err
	}
	tokens, err := s.Store.Tokens(ctx, row.Key, after, in.Limit)
	if err != nil {
		return nil, s.fault(err, "tokens")
	}
	out := tokenList{Tokens: make([]Token, len(tokens))}
	for i, t := range tokens {
		out.Tokens[i] = s.showToken(t)
	}
	out.NextCursor = in.next(len(tokens), func() int64 { return tokens[len(tokens)-1].ID })
	return &body[tokenList]{out}, nil
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
	n, err := s.rotation(b.Rotation, "body.token", b.Token, auth.TokenPrefix)
	if err != nil {
		return nil, err
	}
	made, err := s.Store.RotateToken(ctx, row.Key, n.stored, n.until, s.by(ctx, "token.rotate", row.Name, n.detail))
	if err != nil {
		return nil, s.fault(err, "token")
	}
	s.Slots.Expire(row.Key, made.ID, n.until)
	return &body[createdToken]{createdToken{s.showToken(made), n.secret}}, nil
}

// Rotation says how an older credential makes room for a new one.
type Rotation struct {
	Overlap string `json:"overlap,omitempty" doc:"How long older ones live on, such as 90m or 0s; at most 720h, 24h unless said otherwise"`
	Expires string `json:"expires,omitempty" doc:"How long the new one lives, such as 2160h; without it, for ever"`
}

// rotated is a new credential, and when the older ones end.
type rotated struct {
	secret string
	stored ledger.NewToken
	until  time.Time
	detail any // for the audit log
}

// rotation makes the new credential, unless the operator brings one: at says in
// which field.
func (s *server) rotation(r Rotation, at, own, prefix string) (rotated, error) {
	overlap := defaultOverlap
	if r.Overlap != "" {
		var err error
		if overlap, err = duration("body.overlap", r.Overlap, maxOverlap); err != nil {
			return rotated{}, err
		}
	}
	lives, err := duration("body.expires", r.Expires, longestLife)
	if err != nil {
		return rotated{}, err
	}
	n := rotated{detail: map[string]string{"overlap": overlap.String()}}
	if n.secret, err = secret(at, own, prefix); err != nil {
		return rotated{}, err
	}
	now := s.Now()
	var expires time.Time
	if lives > 0 {
		expires = now.Add(lives)
	}
	n.stored, n.until = auth.NewToken(n.secret, expires), now.Add(overlap)
	return n, nil
}

// secret is the operator's own, or a new one.
func secret(at, own, prefix string) (string, error) {
	if own == "" {
		return auth.Generate(prefix), nil
	}
	if err := auth.CheckOwnToken(own); err != nil {
		return "", field(422, at, err.Error(), "")
	}
	return own, nil
}

func duration(location, text string, most time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		return 0, field(422, location, fmt.Sprintf("expected a duration such as 90m or 24h, from 0s to %s", most), clip(text))
	}
	return d, nil
}

func (s *server) revokeToken(ctx context.Context, in *tokenRef) (*struct{}, error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(in.Token, 10, 64)
	if err != nil {
		return nil, s.fault(ledger.ErrNotFound, fmt.Sprintf("token %q", in.Token))
	}
	if err := s.Store.RevokeToken(ctx, row.Key, id, s.by(ctx, "token.revoke", row.Name, map[string]string{"token": in.Token})); err != nil {
		return nil, s.fault(err, fmt.Sprintf("token %q", in.Token))
	}
	s.Slots.DetachToken(id, wire.CloseRevoked, "token revoked")
	return nil, nil
}

func (s *server) showToken(t ledger.Token) Token {
	return Token{
		ID: strconv.FormatInt(t.ID, 10), Hint: t.Hint, Live: t.Live(s.Now()), CreatedAt: timeOf(t.CreatedAt),
		ExpiresAt: when(t.ExpiresAt), RevokedAt: when(t.RevokedAt), LastUsedAt: when(t.LastUsedAt),
	}
}
