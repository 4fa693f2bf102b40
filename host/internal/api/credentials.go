package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/period"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// How long a rotated credential lives on.
const (
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 30 * 24 * time.Hour
)

// longestLife bounds how long a credential lives that has an end.
const longestLife = 100 * 365 * 24 * time.Hour

// Token is a channel's token, an agent's key or an API key without its secret.
type Token struct {
	ID         string `json:"id"`
	Hint       string `json:"hint" doc:"The token's last four characters"`
	Live       bool   `json:"live"`
	CreatedAt  Time   `json:"created_at"`
	ExpiresAt  *Time  `json:"expires_at" nullable:"true"`
	RevokedAt  *Time  `json:"revoked_at" nullable:"true"`
	LastUsedAt *Time  `json:"last_used_at" nullable:"true"`
}

func (s *server) showToken(c ledger.Credential) Token {
	return Token{
		ID: strconv.FormatInt(c.ID, 10), Hint: c.Hint, Live: c.Live(s.Now()), CreatedAt: timeOf(c.CreatedAt),
		ExpiresAt: when(c.ExpiresAt), RevokedAt: when(c.RevokedAt), LastUsedAt: when(c.LastUsedAt),
	}
}

// Rotation says how an older credential makes room for a new one.
type Rotation struct {
	Overlap string `json:"overlap,omitempty" doc:"How long older ones live on, such as 90m, 7d or 0s; at most 30d, 24h unless said otherwise"`
	Expires string `json:"expires,omitempty" doc:"How long the new one lives, such as 90d; without it, for ever"`
}

// purpose is what a channel's tokens and an agent's keys differ in.
type purpose struct {
	noun   string // "token"; also the field of a request that holds one
	action string // in the audit log, up to what is done
}

var (
	forChannel = purpose{"token", "token"}
	forAgent   = purpose{"key", "agent.key"}
)

// listCredentials is a page of an owner's credentials.
func (s *server) listCredentials(ctx context.Context, of ledger.Owner, in Page, what string) (page []ledger.Credential, next string, err error) {
	after, err := in.after()
	if err != nil {
		return nil, "", err
	}
	page, err = s.Store.Credentials(ctx, of, after, in.Limit)
	if err != nil {
		return nil, "", s.fault(err, what)
	}
	return page, in.next(len(page), func() int64 { return page[len(page)-1].ID }), nil
}

// listTokensOf is a page of what a channel or an agent has.
func (s *server) listTokensOf(ctx context.Context, of ledger.Owner, in Page, p purpose) (tokens []Token, next string, err error) {
	page, next, err := s.listCredentials(ctx, of, in, p.noun+"s")
	if err != nil {
		return nil, "", err
	}
	tokens = make([]Token, len(page))
	for i, c := range page {
		tokens[i] = s.showToken(c)
	}
	return tokens, next, nil
}

// rotate makes a credential, unless the operator brings one of their own; the
// older ones end after the overlap. name is the owner's.
func (s *server) rotate(ctx context.Context, of ledger.Owner, name string, in Rotation, own string, p purpose) (auth.Issued, error) {
	if err := s.operators(own, p); err != nil {
		return auth.Issued{}, err
	}
	overlap := defaultOverlap
	if in.Overlap != "" {
		var err error
		if overlap, err = duration("body.overlap", in.Overlap, maxOverlap); err != nil {
			return auth.Issued{}, err
		}
	}
	life, err := duration("body.expires", in.Expires, longestLife)
	if err != nil {
		return auth.Issued{}, err
	}
	made, err := s.issuer.Rotate(ctx, of, auth.Rotation{Secret: own, Life: life, Overlap: overlap},
		s.by(ctx, p.action+".rotate", name, map[string]string{"overlap": overlap.String()}))
	var wrong *auth.FieldError
	if errors.As(err, &wrong) {
		return auth.Issued{}, field(422, "body."+p.noun, wrong.Message, "")
	}
	if err != nil {
		return auth.Issued{}, s.faultOfSecret(err, p)
	}
	return made, nil
}

// revoke ends a credential, and what is open by it. name is the owner's.
func (s *server) revoke(ctx context.Context, of ledger.Owner, name, ref string, p purpose) error {
	id, err := strconv.ParseInt(ref, 10, 64)
	if err != nil {
		err = ledger.ErrNotFound
	} else {
		err = s.issuer.Revoke(ctx, of, id, s.by(ctx, p.action+".revoke", name, map[string]string{p.noun: s.nameOf(ctx, of, id)}))
	}
	if err != nil {
		return s.fault(err, fmt.Sprintf("%s %q", p.noun, ref))
	}
	return nil
}

// nameOf is what pages call a credential: its id, and the letters that it ends with.
func (s *server) nameOf(ctx context.Context, of ledger.Owner, id int64) string {
	name := strconv.FormatInt(id, 10)
	if list, err := s.Store.Credentials(ctx, of, id-1, 1); err == nil && len(list) == 1 && list[0].ID == id {
		name += " …" + list[0].Hint
	}
	return name
}

// operators refuses a secret that is the operator's: a secret opens one thing only.
func (s *server) operators(own string, p purpose) error {
	if own != "" && s.Keys.Valid(own) {
		return s.faultOfSecret(ledger.ErrTokenTaken, p)
	}
	return nil
}

// first makes what a new channel or agent shows first: the operator's own secret,
// or a new one.
func (s *server) first(kind ledger.CredentialKind, own string, p purpose) (secret string, stored *ledger.NewCredential, err error) {
	if err := s.operators(own, p); err != nil {
		return "", nil, err
	}
	secret, err = auth.NewSecret(kind, own)
	if err != nil {
		return "", nil, field(422, "body."+p.noun, err.Error(), "")
	}
	n := auth.NewCredential(secret, time.Time{})
	return secret, &n, nil
}

// faultOfSecret is fault of a request that brings a secret.
func (s *server) faultOfSecret(err error, p purpose) error {
	if errors.Is(err, ledger.ErrTokenTaken) {
		return field(409, "body."+p.noun, "is in use or was used before: choose another "+p.noun, "")
	}
	return s.fault(err, p.noun)
}

func duration(location, text string, most time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := period.Parse(text)
	if err != nil || d > most {
		return 0, field(422, location, fmt.Sprintf("expected %s, at most %.0f days", period.Form, most.Hours()/24), clip(text))
	}
	return d, nil
}

// adapters are what is open by channels' tokens.
type adapters struct{ *bridge.Slots }

func (a adapters) Revoked(_ ledger.Owner, id int64) {
	a.DetachToken(id, wire.CloseRevoked, "token revoked")
}

func (a adapters) Expire(of ledger.Owner, keep int64, at time.Time) {
	a.Slots.Expire(of.Key, keep, at)
}

// dialled are what is open by agents' keys.
type dialled struct{ *agent.Roster }

func (d dialled) Revoked(of ledger.Owner, id int64) { d.Revoke(of.Key, id) }

func (d dialled) Expire(of ledger.Owner, keep int64, at time.Time) { d.Roster.Expire(of.Key, keep, at) }

// programs are what is open by API keys: at front ends, and streams of the API itself.
type programs struct{ *server }

func (p programs) Revoked(_ ledger.Owner, id int64) {
	for _, e := range p.Fronts {
		e.Revoked(id)
	}
	if p.Gate != nil {
		p.Gate.EndLeases(context.Background())
	}
}

func (p programs) Expire(ledger.Owner, int64, time.Time) {} // an API key is not rotated

func (s *server) newIssuer() *auth.Issuer {
	return &auth.Issuer{Store: s.Store, Now: s.Now, Open: map[ledger.CredentialKind]auth.Openings{
		ledger.ChannelToken: adapters{s.Slots}, ledger.AgentKey: dialled{s.Agents}, ledger.APIKey: programs{s},
	}}
}
