package ledger

import (
	"errors"
	"time"
)

// Channel is one slot with its policy.
type Channel struct {
	Key       int64  // the database's own key; never shown
	ID        string // the id that operators see
	Name      string
	Kind      string
	Enabled   bool
	Agent     string
	Agents    []string // that a conversation may choose; empty = all
	Queue     bool
	Accept    []string // capabilities; empty = all
	Users     []string // user ids that may speak; empty = all
	Profile   Profile
	Limits    QueueLimits
	Retention int   // days that messages are kept; 0 = for ever
	Rate      int   // frames a second that its adapter may send; 0 = the host's default
	Version   int64 // counts the row's changes
	CreatedAt time.Time
}

// Profile is what a channel's operator says of its platform, over what the adapter
// says: the fields of a wire.Profile, which it converts to. 0 and "" say nothing.
type Profile struct {
	MaxText        int    `json:"max_text,omitempty"`
	Markdown       string `json:"markdown,omitempty"`
	MaxButtons     int    `json:"max_buttons,omitempty"`
	EditIntervalMS int    `json:"edit_interval_ms,omitempty"`
	Parallel       int    `json:"parallel,omitempty"`
	InFlight       int    `json:"in_flight,omitempty"`
}

// QueueLimits bound what waits for an adapter; 0 = the host's default.
type QueueLimits struct {
	TTLSeconds int `json:"ttl_seconds,omitempty" doc:"How long a message may wait" minimum:"0" maximum:"31536000"`
	Length     int `json:"length,omitempty" doc:"How many messages may wait" minimum:"0" maximum:"1000000"`
	Attempts   int `json:"attempts,omitempty" doc:"How often a message is tried that the adapter refuses for now" minimum:"0" maximum:"1000"`
}

// ErrNameTaken and ErrTokenTaken name what must be unique.
var (
	ErrNameTaken  = errors.New("name is taken")
	ErrTokenTaken = errors.New("token is in use or was used before")
)
