package auth

import (
	"context"
	"errors"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// lease is something that goes on for as long as a credential is valid.
type lease struct {
	holder Holder
	end    context.CancelFunc
}

// Lease is for answers that go on: a context that ends when what its holder came by is
// revoked, and within about a second when it has expired or was logged out. cancel
// must be called.
func (g *Gate) Lease(ctx context.Context, h Holder) (_ context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	l := &lease{h, end}
	g.mu.Lock()
	g.leases[l] = struct{}{}
	g.mu.Unlock()
	return ctx, func() {
		g.mu.Lock()
		delete(g.leases, l)
		g.mu.Unlock()
		end()
	}
}

// EndLeases ends those whose credential has ended: now, and not with the next look at
// them.
func (g *Gate) EndLeases(ctx context.Context) {
	g.mu.Lock()
	open := make([]*lease, 0, len(g.leases))
	for l := range g.leases {
		open = append(open, l)
	}
	g.mu.Unlock()
	over := map[string]bool{}
	for _, l := range open {
		via := l.holder.Via()
		ended, known := over[via]
		if !known {
			ended = g.ended(ctx, l.holder)
			over[via] = ended
		}
		if ended {
			l.end()
		}
	}
}

// ended reports whether the holder's credential is one no more.
func (g *Gate) ended(ctx context.Context, h Holder) bool {
	var l ledger.Lifetime
	var err error
	switch {
	case h.ID != 0:
		var c ledger.Credential
		c, err = g.store.APIKeyByRef(ctx, h.Ref())
		l = c.Lifetime
	case h.Session != 0:
		var s ledger.Session
		s, err = g.store.SessionByID(ctx, h.Session)
		l = idle(s)
	default: // the key of the data directory lives as long as the host
		return false
	}
	if err != nil {
		return errors.Is(err, ledger.ErrNotFound) // trouble of storage ends nothing
	}
	return !l.Live(g.now())
}

// idle is the lifetime of a session, which also ends when it is not used.
func idle(s ledger.Session) ledger.Lifetime {
	l := s.Lifetime
	if at := l.LastUsedAt.Add(SessionIdle); at.Before(l.ExpiresAt) {
		l.ExpiresAt = at
	}
	return l
}

// LiveSession reports whether somebody is still logged in at a time.
func LiveSession(s ledger.Session, at time.Time) bool { return idle(s).Live(at) }

// How long somebody stays logged in.
const (
	SessionIdle = 12 * time.Hour      // without a request
	SessionLife = 30 * 24 * time.Hour // at most
)

// AdmitSession is Admit for what a session's cookie holds: it returns who is
// logged in.
func (g *Gate) AdmitSession(ctx context.Context, secret string) (Holder, error) {
	var s ledger.Session
	var o ledger.Operator
	err := g.check(secret, func(hash []byte) (stored []byte, l ledger.Lifetime, err error) {
		s, err = g.store.SessionByHash(ctx, hash)
		return s.Hash, idle(s), err
	}, func() (bool, error) {
		var err error
		o, err = g.store.Operator(ctx)
		return true, err
	})
	if err != nil {
		return Holder{}, g.Failures.note(Login, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used.Sessions[s.ID] = g.now()
	return Holder{Session: s.ID, Name: o.Name}, nil
}
