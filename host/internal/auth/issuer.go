package auth

import (
	"context"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Credentials is where an issuer keeps them.
type Credentials interface {
	CreateCredential(ctx context.Context, of ledger.Owner, n ledger.NewCredential, by ledger.Change) (ledger.Credential, error)
	RotateCredential(ctx context.Context, of ledger.Owner, n ledger.NewCredential, until time.Time, by ledger.Change) (ledger.Credential, error)
	RevokeCredential(ctx context.Context, of ledger.Owner, id int64, by ledger.Change) error
}

// Issuer makes and ends credentials, and ends what is open by them.
type Issuer struct {
	Store Credentials
	Now   func() time.Time
	Open  map[ledger.CredentialKind]Openings // nothing is open by a kind that is not in it
}

// Openings are what is open by credentials of one kind, such as connections.
type Openings interface {
	// Revoked ends what was opened by one credential.
	Revoked(of ledger.Owner, id int64)
	// Expire ends at a time what was opened by the owner's credentials, but for one.
	Expire(of ledger.Owner, keep int64, at time.Time)
}

// Issued is a credential that was just made, with its secret, which is shown once.
type Issued struct {
	ledger.Credential
	Secret string
}

// Rotation says how a new credential takes the place of older ones.
type Rotation struct {
	Secret  string        // brought by the operator; "" = one is made
	Life    time.Duration // of the new one; 0 = for ever
	Overlap time.Duration // how long the older ones live on
}

// NewSecret is the operator's own, if there is one, or a new one for a credential
// of the kind. An error says what is wrong with the operator's own.
func NewSecret(kind ledger.CredentialKind, own string) (string, error) {
	if own != "" {
		return own, CheckOwnToken(own)
	}
	return Generate(prefixes[kind]), nil
}

var prefixes = map[ledger.CredentialKind]string{ledger.ChannelToken: TokenPrefix, ledger.AgentKey: AgentKeyPrefix, ledger.APIKey: KeyPrefix}

// NewCredential is what is stored of a secret.
func NewCredential(secret string, expires time.Time) ledger.NewCredential {
	return ledger.NewCredential{Hash: Hash(secret), Hint: secret[len(secret)-4:], ExpiresAt: expires}
}

// CreateKey makes an API key; life 0 = for ever. Errors are ledger.ErrNameTaken and
// those of storage.
func (i *Issuer) CreateKey(ctx context.Context, t ledger.Terms, life time.Duration, by ledger.Change) (Issued, error) {
	secret, err := NewSecret(ledger.APIKey, "")
	if err != nil {
		return Issued{}, err
	}
	n := NewCredential(secret, i.after(life))
	n.Terms = t
	made, err := i.Store.CreateCredential(ctx, ledger.OfHost(), n, by)
	return Issued{made, secret}, err
}

// Rotate makes a credential. The owner's older ones, and what is open by them,
// end after the overlap. Errors are *FieldError, about the secret that the
// operator brought, ledger.ErrTokenTaken and those of storage.
func (i *Issuer) Rotate(ctx context.Context, of ledger.Owner, r Rotation, by ledger.Change) (Issued, error) {
	secret, err := NewSecret(of.Kind, r.Secret)
	if err != nil {
		return Issued{}, &FieldError{"secret", err.Error()}
	}
	until := i.Now().Add(r.Overlap)
	made, err := i.Store.RotateCredential(ctx, of, NewCredential(secret, i.after(r.Life)), until, by)
	if err != nil {
		return Issued{}, err
	}
	if o := i.Open[of.Kind]; o != nil {
		o.Expire(of, made.ID, until)
	}
	return Issued{made, secret}, nil
}

// Revoke ends a credential of the owner, and what is open by it, immediately. A
// second time changes nothing. Errors are ledger.ErrNotFound and those of storage.
func (i *Issuer) Revoke(ctx context.Context, of ledger.Owner, id int64, by ledger.Change) error {
	if err := i.Store.RevokeCredential(ctx, of, id, by); err != nil {
		return err
	}
	if o := i.Open[of.Kind]; o != nil {
		o.Revoked(of, id)
	}
	return nil
}

func (i *Issuer) after(life time.Duration) time.Time {
	if life == 0 {
		return time.Time{}
	}
	return i.Now().Add(life)
}
