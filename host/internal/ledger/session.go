package ledger

import (
	"strconv"
)

// MaxSessions is how many places an operator may be logged in at: another one
// ends the oldest.
const MaxSessions = 50

// Session is a place where the operator is logged in. It is never revoked: a
// session that ended is deleted.
type Session struct {
	ID   int64
	Hash []byte // SHA-256 of what the cookie holds
	Lifetime
	Remote    string // address of who logged in
	UserAgent string
}

// SessionRef is how others call a session.
func SessionRef(id int64) string { return strconv.FormatInt(id, 10) }
