package ledger

import "time"

// CredentialKind says what a credential opens. The list is closed; the names are
// those of the database and of the metrics.
type CredentialKind string

// Kinds of credentials.
const (
	ChannelToken CredentialKind = "channel_token" // an adapter's, of its channel
	AgentKey     CredentialKind = "agent_key"     // an agent's that dials in
	APIKey       CredentialKind = "api_key"       // a program's, for the REST API and front ends
)

// Owner is whose a credential is.
type Owner struct {
	Kind CredentialKind
	Key  int64 // of the channel or the agent; 0 of an API key, which is the host's
}

// OfChannel is the owner of a channel's tokens.
func OfChannel(key int64) Owner { return Owner{ChannelToken, key} }

// OfAgent is the owner of an agent's keys.
func OfAgent(key int64) Owner { return Owner{AgentKey, key} }

// OfHost is the owner of API keys.
func OfHost() Owner { return Owner{Kind: APIKey} }

// Lifetime is when a credential was made and used, and when it ends. Zero times
// are "never".
type Lifetime struct {
	CreatedAt  time.Time
	ExpiresAt  time.Time
	RevokedAt  time.Time
	LastUsedAt time.Time
}

// Live reports whether it opens what it is for at the given time.
func (l Lifetime) Live(at time.Time) bool {
	return l.RevokedAt.IsZero() && (l.ExpiresAt.IsZero() || at.Before(l.ExpiresAt))
}

// Credential is a channel's token, an agent's key or an API key, without its
// secret.
type Credential struct {
	ID    int64 // of its kind; never 0, and never used again
	Owner Owner
	Terms
	Hash []byte // SHA-256
	Hint string // the last four characters
	Lifetime
}

// Terms are an API key's. Of other credentials they are empty: the owner says
// what those open.
type Terms struct {
	Name     string
	Scopes   []string // what it opens
	Channels []string // ids of those that it is limited to, also of deleted ones; empty = all
}

// Door is what the tokens of a channel say together.
type Door struct {
	Used    time.Time // when an adapter last came with one; zero = none did
	Endless bool      // one of them lets adapters in for ever
	Ends    time.Time // when the last one ends or has ended, of those that were not revoked; zero = all were, or Endless
}

// Open reports whether a token lets adapters in at a time.
func (d Door) Open(at time.Time) bool { return d.Endless || at.Before(d.Ends) }

// NewCredential is a credential about to be stored.
type NewCredential struct {
	Terms
	Hash      []byte
	Hint      string
	ExpiresAt time.Time // zero = never
}

// CredentialRef names a credential.
type CredentialRef struct {
	Kind CredentialKind
	ID   int64
}

// Ref names the credential.
func (c Credential) Ref() CredentialRef { return CredentialRef{c.Owner.Kind, c.ID} }

// Uses are when credentials, and sessions, were last used.
type Uses struct {
	Credentials map[CredentialRef]time.Time
	Sessions    map[int64]time.Time
}
