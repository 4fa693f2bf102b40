package ledger

import (
	"time"
)

// Token is the credential of a channel, or of an agent, without its secret. Zero
// times are "never".
type Token struct {
	ID         int64
	Owner      int64  // key of the channel or the agent
	Hash       []byte // SHA-256
	Hint       string // the last four characters
	CreatedAt  time.Time
	ExpiresAt  time.Time
	RevokedAt  time.Time
	LastUsedAt time.Time
}

// Live reports whether the token opens what it is for at the given time.
func (t Token) Live(at time.Time) bool {
	return t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || at.Before(t.ExpiresAt))
}

// NewToken is a token about to be stored.
type NewToken struct {
	Hash      []byte
	Hint      string
	ExpiresAt time.Time // zero = never
}

// Uses are when credentials were last used, by id.
type Uses = map[int64]time.Time
