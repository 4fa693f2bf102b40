package ledger

import (
	"encoding/json"
	"strings"
	"time"
)

// Agent is whom a channel may be routed to.
type Agent struct {
	Key       int64  // the database's own key; never shown
	ID        string // the id that operators see
	Name      string
	Kind      string
	Config    json.RawMessage // an object; may hold secrets, which are sealed where they are stored
	Fault     error           // secrets that can't be opened, and so are not in Config; not stored
	Enabled   bool
	Version   int64 // counts the row's changes
	CreatedAt time.Time
}

// InUseError is the error of an agent that can't go: channels are routed to it.
type InUseError struct{ Channels []string }

func (e *InUseError) Error() string {
	return "agent is in use by " + strings.Join(e.Channels, ", ")
}
