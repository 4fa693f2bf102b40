package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

func (s *Store) insertCredential(ctx context.Context, q *db.Queries, of ledger.Owner, n ledger.NewCredential) (ledger.Credential, error) {
	id, err := q.NextCredentialID(ctx, string(of.Kind))
	if err != nil {
		return ledger.Credential{}, fmt.Errorf("number credential: %w", err)
	}
	channel, agent := columns(of)
	row, err := q.InsertCredential(ctx, db.InsertCredentialParams{
		Kind: string(of.Kind), ID: id, Channel: channel, Agent: agent, Name: n.Name, Scopes: list(n.Scopes), Channels: list(n.Channels),
		Hash: n.Hash, Hint: n.Hint, CreatedAt: s.now().UnixMilli(), ExpiresAt: nullTime(n.ExpiresAt),
	})
	switch {
	case breaks(err, "credential.name"):
		return ledger.Credential{}, ledger.ErrNameTaken
	case breaks(err, "credential.hash"):
		return ledger.Credential{}, ledger.ErrTokenTaken
	case err != nil:
		return ledger.Credential{}, fmt.Errorf("insert credential: %w", err)
	}
	return credential(row)
}

// CreateCredential adds a credential. Errors are ErrNameTaken, by an API key that
// is not revoked, ErrTokenTaken and those of storage.
func (s *Store) CreateCredential(ctx context.Context, of ledger.Owner, n ledger.NewCredential, by ledger.Change) (ledger.Credential, error) {
	var made ledger.Credential
	err := s.change(func(q *db.Queries) (err error) {
		if made, err = s.insertCredential(ctx, q, of, n); err != nil {
			return err
		}
		return s.audit(ctx, q, by)
	})
	return made, err
}

// RotateCredential is CreateCredential that also ends the owner's other live
// credentials at until.
func (s *Store) RotateCredential(ctx context.Context, of ledger.Owner, n ledger.NewCredential, until time.Time, by ledger.Change) (ledger.Credential, error) {
	var made ledger.Credential
	err := s.change(func(q *db.Queries) (err error) {
		if made, err = s.insertCredential(ctx, q, of, n); err != nil {
			return err
		}
		channel, agent := columns(of)
		err = q.ExpireOtherCredentials(ctx, db.ExpireOtherCredentialsParams{At: nullTime(until), Kind: string(of.Kind), Channel: channel, Agent: agent, Keep: made.ID})
		if err != nil {
			return fmt.Errorf("end older credentials: %w", err)
		}
		return s.audit(ctx, q, by)
	})
	return made, err
}

// RevokeCredential ends a credential of the owner immediately; a second time
// changes nothing.
func (s *Store) RevokeCredential(ctx context.Context, of ledger.Owner, id int64, by ledger.Change) error {
	return s.change(func(q *db.Queries) error {
		row, err := q.CredentialByID(ctx, db.CredentialByIDParams{Kind: string(of.Kind), ID: id})
		found, err := foundCredential(row, err)
		switch {
		case err != nil:
			return err
		case found.Owner != of:
			return ledger.ErrNotFound
		case !found.RevokedAt.IsZero():
			return nil
		}
		if err := q.RevokeCredential(ctx, db.RevokeCredentialParams{At: nullTime(s.now()), Kind: string(of.Kind), ID: id}); err != nil {
			return fmt.Errorf("revoke credential: %w", err)
		}
		return s.audit(ctx, q, by)
	})
}

// CredentialByHash finds a credential of a kind, live or not. One that is not live is
// read anew each time, as one that is not there: how long that takes must not tell
// them apart.
func (s *Store) CredentialByHash(ctx context.Context, kind ledger.CredentialKind, hash []byte) (ledger.Credential, error) {
	k := credentialKey{kind, string(hash)}
	c, ok, change := s.w.lookups.credentials.get(k)
	if !ok || !c.Live(s.now()) {
		row, err := s.read.CredentialByHash(ctx, db.CredentialByHashParams{Hash: hash, Kind: string(kind)})
		if c, err = foundCredential(row, err); err != nil {
			return c, err
		}
		if c.Live(s.now()) {
			s.w.lookups.credentials.put(k, c, len(k.hash)+len(c.Hash)+textBytes(c.Name, c.Hint)+textBytes(c.Scopes...)+textBytes(c.Channels...), change)
		}
	}
	c.Hash, c.Scopes, c.Channels = slices.Clone(c.Hash), slices.Clone(c.Scopes), slices.Clone(c.Channels)
	return c, nil
}

// APIKeyByRef finds an API key by its id or, if it is live, its name.
func (s *Store) APIKeyByRef(ctx context.Context, ref string) (ledger.Credential, error) {
	id, err := strconv.ParseInt(ref, 10, 64)
	if err != nil {
		row, err := s.read.LiveKeyByName(ctx, ref)
		return foundCredential(row, err)
	}
	row, err := s.read.CredentialByID(ctx, db.CredentialByIDParams{Kind: string(ledger.APIKey), ID: id})
	return foundCredential(row, err)
}

// Credentials reads up to n credentials of an owner, oldest first, from behind id
// after.
func (s *Store) Credentials(ctx context.Context, of ledger.Owner, after int64, n int) ([]ledger.Credential, error) {
	channel, agent := columns(of)
	rows, err := s.read.CredentialsOf(ctx, db.CredentialsOfParams{Kind: string(of.Kind), Channel: channel, Agent: agent, After: after, N: int64(n)})
	if err != nil {
		return nil, failed("read credentials", err)
	}
	out := make([]ledger.Credential, len(rows))
	for i, r := range rows {
		if out[i], err = credential(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Touch notes when credentials and sessions were last used.
func (s *Store) Touch(ctx context.Context, u ledger.Uses) error {
	return s.change(func(q *db.Queries) error {
		for ref, at := range u.Credentials {
			if err := q.TouchCredential(ctx, db.TouchCredentialParams{At: nullTime(at), Kind: string(ref.Kind), ID: ref.ID}); err != nil {
				return fmt.Errorf("note use of credential: %w", err)
			}
		}
		for id, at := range u.Sessions {
			if err := q.TouchSession(ctx, db.TouchSessionParams{At: at.UnixMilli(), ID: id}); err != nil {
				return fmt.Errorf("note use of session: %w", err)
			}
		}
		return nil
	})
}

// columns are what an owner's credentials have in the columns channel and agent.
func columns(o ledger.Owner) (channel, agent sql.NullInt64) {
	key := sql.NullInt64{Int64: o.Key, Valid: true}
	switch o.Kind {
	case ledger.ChannelToken:
		return key, agent
	case ledger.AgentKey:
		return channel, key
	}
	return channel, agent
}

func foundCredential(row db.Credential, err error) (ledger.Credential, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Credential{}, ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Credential{}, failed("read credential", err)
	}
	return credential(row)
}

func credential(r db.Credential) (ledger.Credential, error) {
	c := ledger.Credential{
		ID: r.ID, Owner: ledger.Owner{Kind: ledger.CredentialKind(r.Kind), Key: r.Channel.Int64 + r.Agent.Int64}, // one of them is NULL, or both
		Terms: ledger.Terms{Name: r.Name}, Hash: r.Hash, Hint: r.Hint,
		Lifetime: ledger.Lifetime{
			CreatedAt: time.UnixMilli(r.CreatedAt).UTC(), ExpiresAt: fromNull(r.ExpiresAt), RevokedAt: fromNull(r.RevokedAt), LastUsedAt: fromNull(r.LastUsedAt),
		},
	}
	if c.Owner.Kind != ledger.APIKey {
		return c, nil
	}
	if err := json.Unmarshal([]byte(r.Scopes), &c.Scopes); err != nil {
		return ledger.Credential{}, fmt.Errorf("%s %d: scopes: %w", r.Kind, r.ID, err)
	}
	if err := json.Unmarshal([]byte(r.Channels), &c.Channels); err != nil {
		return ledger.Credential{}, fmt.Errorf("%s %d: channels: %w", r.Kind, r.ID, err)
	}
	return c, nil
}

func nullTime(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

func fromNull(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMilli(n.Int64).UTC()
}
