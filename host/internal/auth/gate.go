package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Grant is what a token opens.
type Grant struct {
	Channel   ledger.Channel
	Token     int64
	ExpiresAt time.Time // zero = never
}

// AgentGrant is what an agent's key opens.
type AgentGrant struct {
	Agent     ledger.Agent
	Key       int64     // its id; see agent.Keyed
	ExpiresAt time.Time // zero = never
}

// Gate checks channels' tokens, agents' keys, those of the API, and sessions.
type Gate struct {
	Failures Failures // of all that was refused here, and wherever else somebody asks to be let in

	store Ledger
	now   func() time.Time

	mu       sync.Mutex // guards what follows
	tokens   ledger.Uses
	keys     ledger.Uses
	apiKeys  ledger.Uses
	sessions ledger.Uses
	leases   map[*lease]struct{}
}

// NewGate makes the gate of a store. now nil = time.Now.
func NewGate(s Ledger, now func() time.Time) *Gate {
	if now == nil {
		now = time.Now
	}
	return &Gate{store: s, now: now, tokens: ledger.Uses{}, keys: ledger.Uses{}, apiKeys: ledger.Uses{}, sessions: ledger.Uses{}, leases: map[*lease]struct{}{}}
}

// Admit returns what the token of a channel opens, or ErrInvalid whatever is
// wrong with it, after the same work. Other errors are storage's.
func (g *Gate) Admit(ctx context.Context, token string) (Grant, error) {
	var c ledger.Channel
	t, err := g.check(ctx, token, g.store.TokenByHash, func(ctx context.Context, key int64) (enabled bool, err error) {
		c, err = g.store.ChannelByKey(ctx, key)
		return c.Enabled, err
	})
	if err != nil {
		return Grant{}, g.Failures.note(ChannelToken, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens[t.ID] = g.now()
	return Grant{Channel: c, Token: t.ID, ExpiresAt: t.ExpiresAt}, nil
}

// AdmitAgent is Admit for the key of an agent.
func (g *Gate) AdmitAgent(ctx context.Context, key string) (AgentGrant, error) {
	var a ledger.Agent
	t, err := g.check(ctx, key, g.store.AgentKeyByHash, func(ctx context.Context, key int64) (enabled bool, err error) {
		a, err = g.store.AgentByKey(ctx, key)
		return a.Enabled, err
	})
	if err != nil {
		return AgentGrant{}, g.Failures.note(AgentKey, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keys[t.ID] = g.now()
	return AgentGrant{Agent: a, Key: t.ID, ExpiresAt: t.ExpiresAt}, nil
}

// check finds the credential of a secret. It is alive and its owner enabled, or
// the error is ErrInvalid or storage's.
func (g *Gate) check(ctx context.Context, secret string, find func(context.Context, []byte) (ledger.Token, error), owner func(context.Context, int64) (bool, error)) (ledger.Token, error) {
	hash := Hash(secret)
	t, err := find(ctx, hash)
	known := err == nil
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return ledger.Token{}, err
	}
	if !known {
		t.Hash = make([]byte, sha256.Size)
	}
	enabled, err := owner(ctx, t.Owner) // also for an unknown secret: it costs the same
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return ledger.Token{}, err
	}
	same := subtle.ConstantTimeCompare(hash, t.Hash) == 1
	if !known || !same || err != nil || !enabled || !t.Live(g.now()) {
		return ledger.Token{}, ErrInvalid
	}
	return t, nil
}

// Serve writes down when credentials were last used, and ends the leases of those
// that ended, once a second.
func (g *Gate) Serve(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return g.flush(context.WithoutCancel(ctx))
		case <-tick.C:
			g.endLeases(ctx)
			if err := g.flush(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, ledger.ErrUnavailable) {
				return err
			}
		}
	}
}

func (g *Gate) flush(ctx context.Context) error {
	g.mu.Lock()
	tokens, keys, apiKeys, sessions := g.tokens, g.keys, g.apiKeys, g.sessions
	g.tokens, g.keys, g.apiKeys, g.sessions = ledger.Uses{}, ledger.Uses{}, ledger.Uses{}, ledger.Uses{}
	g.mu.Unlock()
	if len(tokens)+len(keys)+len(apiKeys)+len(sessions) == 0 {
		return nil
	}
	err := g.store.Touch(ctx, tokens, keys, apiKeys, sessions)
	if err != nil { // next time
		g.mu.Lock()
		defer g.mu.Unlock()
		again(g.tokens, tokens)
		again(g.keys, keys)
		again(g.apiKeys, apiKeys)
		again(g.sessions, sessions)
	}
	return err
}

// again puts uses back that were not written down, unless there are later ones.
func again(to, from ledger.Uses) {
	for id, at := range from {
		if to[id].Before(at) {
			to[id] = at
		}
	}
}
