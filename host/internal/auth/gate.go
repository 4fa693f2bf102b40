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

	mu     sync.Mutex  // guards what follows
	used   ledger.Uses // since they were written down last
	leases map[*lease]struct{}
}

// NewGate makes the gate of a store. now nil = time.Now.
func NewGate(s Ledger, now func() time.Time) *Gate {
	if now == nil {
		now = time.Now
	}
	return &Gate{store: s, now: now, used: newUses(), leases: map[*lease]struct{}{}}
}

func newUses() ledger.Uses {
	return ledger.Uses{Credentials: map[ledger.CredentialRef]time.Time{}, Sessions: map[int64]time.Time{}}
}

// Admit returns what the token of a channel opens, or ErrInvalid whatever is
// wrong with it, after the same work. Other errors are storage's.
func (g *Gate) Admit(ctx context.Context, token string) (Grant, error) {
	var of ledger.Channel
	c, err := g.admit(ctx, ledger.ChannelToken, token, func(ctx context.Context, key int64) (enabled bool, err error) {
		of, err = g.store.ChannelByKey(ctx, key)
		return of.Enabled, err
	})
	if err != nil {
		return Grant{}, err
	}
	return Grant{Channel: of, Token: c.ID, ExpiresAt: c.ExpiresAt}, nil
}

// AdmitAgent is Admit for the key of an agent.
func (g *Gate) AdmitAgent(ctx context.Context, key string) (AgentGrant, error) {
	var of ledger.Agent
	c, err := g.admit(ctx, ledger.AgentKey, key, func(ctx context.Context, key int64) (enabled bool, err error) {
		of, err = g.store.AgentByKey(ctx, key)
		return of.Enabled, err
	})
	if err != nil {
		return AgentGrant{}, err
	}
	return AgentGrant{Agent: of, Key: c.ID, ExpiresAt: c.ExpiresAt}, nil
}

// AdmitKey is Admit for an API key: it returns who holds it.
func (g *Gate) AdmitKey(ctx context.Context, secret string) (Holder, error) {
	c, err := g.admit(ctx, ledger.APIKey, secret, func(context.Context, int64) (bool, error) { return true, nil }) // it has no owner that could be disabled
	if err != nil {
		return Holder{}, err
	}
	return Holder{ID: c.ID, Name: c.Name, Scopes: c.Scopes, Channels: c.Channels}, nil
}

// admit finds the credential of a secret, and notes that it was used. enabled tells
// of the owner with a key whether what it has opens anything.
func (g *Gate) admit(ctx context.Context, kind ledger.CredentialKind, secret string, enabled func(context.Context, int64) (bool, error)) (ledger.Credential, error) {
	var c ledger.Credential
	err := g.check(secret, func(hash []byte) (stored []byte, l ledger.Lifetime, err error) {
		c, err = g.store.CredentialByHash(ctx, kind, hash)
		return c.Hash, c.Lifetime, err
	}, func() (bool, error) { return enabled(ctx, c.Owner.Key) })
	if err != nil {
		return ledger.Credential{}, g.Failures.note(kind, g.explain(c, err))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used.Credentials[c.Ref()] = g.now()
	return c, nil
}

// explain makes an error that says which credential opened nothing, if that is known.
func (g *Gate) explain(c ledger.Credential, err error) error {
	if c.ID == 0 || !errors.Is(err, ErrInvalid) {
		return err
	}
	now, d := g.now(), &Dead{Credential: c, Why: whyDisabled}
	switch {
	case !c.RevokedAt.IsZero():
		d.Why = "revoked"
	case !c.Live(now):
		d.Why = "expired"
	}
	return d
}

// check compares a secret with what find says is stored of it. It is alive and its
// owner enabled, or the error is ErrInvalid or storage's.
func (g *Gate) check(secret string, find func(hash []byte) (stored []byte, l ledger.Lifetime, err error), enabled func() (bool, error)) error {
	hash := Hash(secret)
	stored, life, err := find(hash)
	known := err == nil
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	if !known {
		stored = make([]byte, sha256.Size)
	}
	may, err := enabled() // also for an unknown secret: it costs the same
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	same := subtle.ConstantTimeCompare(hash, stored) == 1
	if !known || !same || err != nil || !may || !life.Live(g.now()) {
		return ErrInvalid
	}
	return nil
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
			g.EndLeases(ctx)
			if err := g.flush(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, ledger.ErrUnavailable) {
				return err
			}
		}
	}
}

func (g *Gate) flush(ctx context.Context) error {
	g.mu.Lock()
	used := g.used
	g.used = newUses()
	g.mu.Unlock()
	if len(used.Credentials)+len(used.Sessions) == 0 {
		return nil
	}
	err := g.store.Touch(ctx, used)
	if err != nil { // next time
		g.mu.Lock()
		defer g.mu.Unlock()
		again(g.used.Credentials, used.Credentials)
		again(g.used.Sessions, used.Sessions)
	}
	return err
}

// again puts uses back that were not written down, unless there are later ones.
func again[K comparable](to, from map[K]time.Time) {
	for k, at := range from {
		if to[k].Before(at) {
			to[k] = at
		}
	}
}
