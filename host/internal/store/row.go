package store

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

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
)

// Reasons lists them.
var Reasons = [...]Reason{
	ReasonNotAttached, ReasonRejected, ReasonQueueFull, ReasonUnknownOutcome, ReasonRetriesExhausted, ReasonTTL, ReasonFrameTooLarge, ReasonAgentAway, ReasonAgentTimeout,
}

// Row is one message as the log keeps it. Append fills in ID.
type Row struct {
	ID         MessageID
	Direction  Direction
	State      State
	Reason     Reason
	ReplyTo    MessageID
	Text       string
	Parts      []byte // JSON array; nil = one text part
	Origin     []byte // Origin, appended
	Meta       []byte // JSON object; nil = none
	Notes      []byte // JSON array of what was degraded; nil = none
	PlatformID string // unique in the channel; "" = none
	Offers     bool   // carries buttons
	Handle     string // outbound: what the platform knows it by; "" = not known
	Tracked    bool   // sent, and to be acknowledged: after a crash it is queued again

	Status message.Status // "" = completed
	Aside  bool           // inbound: begins no turn and does not say where answers go
}

// statuses are how the database keeps a status: by its place.
var statuses = []message.Status{message.StatusCompleted, message.StatusPending, message.StatusStreaming, message.StatusError}

func statusNumber(s message.Status) int64 { return int64(max(0, slices.Index(statuses, s))) }

// Unit is what is committed together: a message with its answers, sends, or
// changes of state. Everything in it belongs to one conversation.
type Unit struct {
	Conversation *Conversation // nil = there is no more than a Cursor
	Chain        *Chain        // without a Conversation: whose cursor it is
	Cursor       string        // where the adapter reads on from now on; "" = as it was
	In           *Row
	Out          []Row // with In set, each answers it
	Settle       []Settlement
	Set          *Settings // the conversation's settings from now on; nil = as they were

	// Behind is a unit that was appended before this one and must be on the disk
	// if this one is to be; nil = none. It fails with it.
	Behind *Unit

	// Done runs on the writer (see also Leader) after the commit, or after it failed. It must
	// not block and must not call the store, except for Append.
	Done func(Result)

	failed bool // owned by the writer
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
	Tries   int    // likewise: how often it failed; of one that waits: more than 0 if the user was told
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
	Status message.Status
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

// Result tells how a commit went.
type Result struct {
	Err   error // nil, ErrDuplicate, ErrRemoved or wrapping ErrUnavailable
	batch *batch
}

// At is when the commit was over, about: units that were committed together share
// one reading of the clock.
func (r Result) At() time.Time {
	if r.batch == nil {
		return time.Now()
	}
	if r.batch.at.IsZero() {
		r.batch.at = time.Now()
	}
	return r.batch.at
}

// Later calls f.Flush after the Done of every unit of the same commit ran, so
// that what they all left there can go out in one write.
func (r Result) Later(f Flusher) {
	if r.batch == nil {
		f.Flush()
		return
	}
	if later := r.batch.later; len(later) == 0 || later[len(later)-1] != f { // units of one connection come together
		r.batch.later = append(later, f)
	}
}

// Flusher is something that collects during a commit's Done calls. Flush must
// not block and may be called more often than needed.
type Flusher interface{ Flush() }

// Errors of a commit.
var (
	ErrDuplicate   = errors.New("message is already stored")
	ErrRemoved     = errors.New("channel or message was deleted")
	ErrUnavailable = errors.New("storage is unavailable")
)

// Chain is a channel's place in the log. One exists per channel and process.
type Chain struct {
	Channel int64
	head    atomic.Int64 // newest message
	lastIn  atomic.Int64
	lastOut atomic.Int64
	cursor  atomic.Pointer[string]

	delivered atomic.Pointer[time.Time] // see LastDelivered; nil = not read yet

	// owned by the writer
	next       MessageID
	nextCursor string // "" = as it was
	staged     bool
	removed    bool
}

// Cursor is the last one that was committed; "" = none yet.
func (c *Chain) Cursor() string {
	if p := c.cursor.Load(); p != nil {
		return *p
	}
	return ""
}

// chain is whose log the unit goes to.
func (u *Unit) chain() *Chain {
	if u.Conversation == nil {
		return u.Chain
	}
	return u.Conversation.Chain
}

// LastIn is the newest inbound message, answered or refused; 0 = none yet.
func (c *Chain) LastIn() MessageID { return MessageID(c.lastIn.Load()) }

// LastOut is the newest outbound message; 0 = none yet.
func (c *Chain) LastOut() MessageID { return MessageID(c.lastOut.Load()) }

// Conversation is a conversation's place in the log. Its holder makes sure
// that one exists per conversation at a time.
type Conversation struct {
	ID    int64
	Key   string
	Chain *Chain

	// owned by the writer
	saved  bool
	staged bool
	now    ends
	next   ends
}

type ends struct {
	head, lastIn, lastOut, offer MessageID
	turns                        int64
	Settings
}

// turn is that of the conversation's newest message; what is sent before any user
// spoke belongs to the first.
func (e *ends) turn() int64 { return max(e.turns-1, 0) }
