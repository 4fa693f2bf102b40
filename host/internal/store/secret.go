package store

import (
	"database/sql"
	"time"
)

// Secret is what is kept of a credential. Zero times are "never".
type Secret struct {
	Hash       []byte // SHA-256
	Hint       string // the last four characters
	CreatedAt  time.Time
	ExpiresAt  time.Time
	RevokedAt  time.Time
	LastUsedAt time.Time
}

// Live reports whether the credential opens anything at the given time.
func (s Secret) Live(at time.Time) bool {
	return s.RevokedAt.IsZero() && (s.ExpiresAt.IsZero() || at.Before(s.ExpiresAt))
}

// NewToken is a credential about to be stored: a channel's token, or a key.
type NewToken struct {
	Hash      []byte
	Hint      string
	ExpiresAt time.Time // zero = never
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
