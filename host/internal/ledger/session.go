package ledger

import (
	"strconv"
)

// MaxSessions is how many places an operator may be logged in at: another one
// ends the oldest.
const MaxSessions = 50

// Session is a place where the operator is logged in. Of its token Hint,
// RevokedAt and Owner are empty: a session that ended is deleted.
type Session struct {
	Token
	Remote    string // address of who logged in
	UserAgent string
}

// SessionRef is how others call a session.
func SessionRef(id int64) string { return strconv.FormatInt(id, 10) }
