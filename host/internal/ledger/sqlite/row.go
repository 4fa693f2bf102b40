package sqlite

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// statuses are how the database keeps a status: by its place.
var statuses = []message.Status{message.StatusCompleted, message.StatusPending, message.StatusStreaming, message.StatusError}

func statusNumber(s message.Status) int64 { return int64(max(0, slices.Index(statuses, s))) }

// Unit is what is committed together: a message with its answers, sends, or
// changes of state. Everything in it belongs to one conversation.
type Unit struct {
	Conversation *Conversation // nil = there is no more than a Cursor
	Chain        *Chain        // without a Conversation: whose cursor it is
	Cursor       string        // where the adapter reads on from now on; "" = as it was
	In           *ledger.Row
	Out          []ledger.Row // with In set, each answers it
	Settle       []ledger.Settlement
	Set          *ledger.Settings // the conversation's settings from now on; nil = as they were

	// Behind is a unit that was appended before this one and must be on the disk
	// if this one is to be; nil = none. It fails with it.
	Behind *Unit

	// Done runs on the writer (see also Leader) after the commit, or after it failed. It must
	// not block and must not call the store, except for Append.
	Done func(Result)

	failed bool // owned by the writer
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
func (r Result) Later(f ledger.Flusher) {
	if r.batch == nil {
		f.Flush()
		return
	}
	if later := r.batch.later; len(later) == 0 || later[len(later)-1] != f { // units of one connection come together
		r.batch.later = append(later, f)
	}
}

// Chain is a channel's place in the log. One exists per channel and process.
type Chain struct {
	Channel int64
	head    atomic.Int64 // newest message
	lastIn  atomic.Int64
	lastOut atomic.Int64
	cursor  atomic.Pointer[string]

	delivered atomic.Pointer[time.Time] // see LastDelivered; nil = not read yet

	// owned by the writer
	next       ledger.MessageID
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
func (c *Chain) LastIn() ledger.MessageID { return ledger.MessageID(c.lastIn.Load()) }

// LastOut is the newest outbound message; 0 = none yet.
func (c *Chain) LastOut() ledger.MessageID { return ledger.MessageID(c.lastOut.Load()) }

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
	head, lastIn, lastOut, offer ledger.MessageID
	turns                        int64
	ledger.Settings
}

// turn is that of the conversation's newest message; what is sent before any user
// spoke belongs to the first.
func (e *ends) turn() int64 { return max(e.turns-1, 0) }
