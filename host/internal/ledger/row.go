package ledger

import "time"

// Direction says who spoke.
type Direction int8

// In is from the platform, Out to it.
const (
	In Direction = iota
	Out
)

func (d Direction) String() string {
	if d == In {
		return "in"
	}
	return "out"
}

// State is a message's delivery state (protocol section B4).
type State int8

// Inbound messages go received → handled, failed or expired; outbound ones
// queued → sent → delivered, failed or expired.
const (
	Received State = iota
	Handled
	Queued
	Sent
	Delivered
	Failed
	Expired
)

var stateNames = [...]string{"received", "handled", "queued", "sent", "delivered", "failed", "expired"}

func (s State) String() string { return stateNames[s] }

// Reason says why a message failed or expired: a closed list.
type Reason string

// The reasons of protocol section B4 that this host gives.
const (
	ReasonNotAttached      Reason = "adapter_not_attached"
	ReasonRejected         Reason = "rejected"
	ReasonQueueFull        Reason = "queue_full"
	ReasonUnknownOutcome   Reason = "unknown_outcome"
	ReasonRetriesExhausted Reason = "retries_exhausted"
	ReasonTTL              Reason = "ttl"
	ReasonFrameTooLarge    Reason = "frame_too_large"
	ReasonAgentAway        Reason = "agent_away"
	ReasonAgentTimeout     Reason = "agent_timeout"
	ReasonAgentRefused     Reason = "agent_refused" // the agent, or what stands before it, does not take the turn
	ReasonAgentFailed      Reason = "agent_failed"
)

// Reasons lists them.
var Reasons = [...]Reason{
	ReasonNotAttached, ReasonRejected, ReasonQueueFull, ReasonUnknownOutcome, ReasonRetriesExhausted, ReasonTTL, ReasonFrameTooLarge, ReasonAgentAway, ReasonAgentTimeout,
	ReasonAgentRefused, ReasonAgentFailed,
}

// Status says how far what a message says is made: a word of the message model.
type Status string

// The statuses of a message.
const (
	StatusPending   Status = "pending"
	StatusStreaming Status = "streaming"
	StatusCompleted Status = "completed"
	StatusError     Status = "error"
)

// Row is one message as the log keeps it. Append fills in ID and Turn.
type Row struct {
	ID         MessageID
	Direction  Direction
	State      State
	Reason     Reason
	ReplyTo    MessageID
	Turn       int64 // of the conversation, that it belongs to
	Text       string
	Parts      []byte // JSON array; nil = one text part
	Origin     []byte // Origin, packed
	Meta       []byte // JSON object; nil = none
	Notes      []byte // JSON array of what was degraded; nil = none
	PlatformID string // unique in the channel; "" = none
	Offers     bool   // carries buttons
	Handle     string // outbound: what the platform knows it by; "" = not known
	Tracked    bool   // sent, and to be acknowledged: after a crash it is queued again

	Status Status // "" = completed
	Aside  bool   // inbound: begins no turn and does not say where answers go
}

// Settlement moves a message to another state.
type Settlement struct {
	ID      MessageID
	State   State
	Reason  Reason
	Notes   []byte   // nil = as they were
	Content *Content // nil = as it was

	// Of adapters that acknowledge, and of messages that wait for their agent.
	Tracked bool   // sent, and to be acknowledged, see Row; received, and it waits: recovery finds it even if it is answered
	Frame   int    // queued or tracked: the first frame that is not acknowledged
	Tries   int    // likewise: how often it failed
	Told    bool   // of one that waits for its agent: its user was told so
	Handle  string // "" = as it was
	Life    []Life // what happened to it
}

// LifeReplayed is what happened to a message that is to go out, or to its agent,
// again: the time that it may wait begins anew.
const LifeReplayed = "replayed"

// Life is something that happened to a message, beside the happy path.
type Life struct {
	At     time.Time // Append fills it in
	What   string    // a word
	Detail string    // "" = nothing to add
}

// Content is what a message says, once that is known.
type Content struct {
	Status Status
	Text   string
	Parts  []byte
	Meta   []byte
	Offers bool
}

// Settings are what users change in one conversation.
type Settings struct {
	Agent string // "" = the channel's
	Muted bool
}

// Flusher is something that collects during a commit's done calls. Flush must
// not block and may be called more often than needed.
type Flusher interface{ Flush() }
