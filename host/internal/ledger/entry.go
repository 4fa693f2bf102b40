package ledger

import "time"

// Entry is a message as it was kept.
type Entry struct {
	Row
	Channel        int64
	ConversationID int64
	Conversation   string // the effective conversation_id
	Origin         Origin
	Lost           error     // why Origin is not what was stored; nil = it is
	SettledAt      time.Time // when its state last changed; zero = never since it was committed
}

// Origin is who spoke, and the routing that goes with it.
type Origin struct {
	SessionKey string
	UserID     string
	UserName   string
	Agent      string // outbound: who answered
	ReplyCtx   string // JSON, the adapter's own
}

// Settled is when the message came into the state that it is in.
func (e *Entry) Settled() time.Time {
	if e.SettledAt.IsZero() { // it was stored so
		return e.ID.Time()
	}
	return e.SettledAt
}

// Making reports that the message is still being made.
func (e *Entry) Making() bool {
	return e.Status == StatusPending || e.Status == StatusStreaming
}

// Waiting is a queued message, without what it says.
type Waiting struct {
	ID           MessageID
	Conversation string
	Frame, Tries int
}

// OpenMessage is an inbound message that was committed but not handled.
type OpenMessage struct {
	Entry
	Listed bool // as one that waits for its agent, or was replayed; see Settlement
	Told   bool // the user was told that it waits
}
