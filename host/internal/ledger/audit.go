package ledger

import (
	"encoding/json"
	"time"
)

// Change is one line of the audit log. Detail, Before and After are JSON objects
// and never hold a secret.
type Change struct {
	ID     int64
	At     time.Time
	Actor  string
	Via    string // the credential: key:ID, session:ID, admin.key; "" = none
	Remote string // the actor's address; "" = the host itself
	Action string
	Target string
	Detail json.RawMessage
	Before json.RawMessage // the fields that changed; nil = it says nothing
	After  json.RawMessage

	Subject string // id of the channel or agent that was changed; "" = of nothing that has versions
	Version int64  // of its row, that the change made
}

// Size is how many bytes a change holds, without what is short.
func (c *Change) Size() int { return len(c.Detail) + len(c.Before) + len(c.After) }

// AuditQuery is which lines of the audit log are wanted; what is zero is any.
type AuditQuery struct {
	Actor  string
	Action string // also its first words: channel is all of channel.create
	Target string
	Since  time.Time
	Until  time.Time // this and later ones are left out
}
