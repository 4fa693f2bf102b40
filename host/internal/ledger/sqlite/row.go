package sqlite

import (
	"slices"
	"sync/atomic"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// statuses are how the database keeps a status: by its place.
var statuses = []ledger.Status{ledger.StatusCompleted, ledger.StatusPending, ledger.StatusStreaming, ledger.StatusError}

// inFlight is how the database keeps the state of a message that is sent and not
// acknowledged, and that is not on the pending list: behind the mark recovery finds it
// by this. Nobody else sees it.
const inFlight = ledger.Expired + 1

// stateNumber is how the database keeps a new row's state.
func stateNumber(r *ledger.Row) int64 {
	if flies(r) {
		return int64(inFlight)
	}
	return int64(r.State)
}

// flies reports a row that is sent, and to be acknowledged.
func flies(r *ledger.Row) bool { return r.State == ledger.Sent && r.Tracked }

// kind is what a message on the pending list waits for, as the database keeps it.
type kind int64

const (
	forAdapter kind = iota
	forAck
	forAgent
)

// kindOf is what a message in a state waits for that is on the pending list.
func kindOf(s ledger.State) kind {
	switch s {
	case ledger.Queued:
		return forAdapter
	case ledger.Received:
		return forAgent
	}
	return forAck
}

func statusNumber(s ledger.Status) int64 { return int64(max(0, slices.Index(statuses, s))) }

// unit is a unit that was appended, and whom to tell what became of it.
type unit struct {
	*ledger.Unit
	done func(ledger.Result) // nil = nobody
}

// chain is the channel that the unit goes to.
func (u unit) chain() *chain { return u.Owner().Engine.(*chain) }

// conversation is where the unit goes to; nil = there is no more than a cursor.
func (u unit) conversation() *conversation {
	if u.Conversation == nil {
		return nil
	}
	return u.Conversation.Engine.(*conversation)
}

// chain is a channel's place in the log. One exists per channel and process.
type chain struct {
	channel int64
	head    atomic.Int64 // newest message
	lastIn  atomic.Int64
	lastOut atomic.Int64
	owner   atomic.Pointer[ledger.Tail] // nil = nobody

	written atomic.Pointer[written] // see Ends; nil = not read yet

	// owned by the writer
	epoch      ledger.Epoch // of the latest owner; 0 = there was none. See writer.ownFirst
	next       ledger.MessageID
	nextCursor *string // nil = as it was
	staged     bool
	removed    bool
}

// conversation is a conversation's place in the log.
type conversation struct {
	ledger.Conversation // what its holder has
	chain               *chain

	// owned by the writer
	saved  bool
	staged bool
	now    ends
	next   ends
}

func newConversation(id int64, key string, tail *ledger.Tail) *conversation {
	c := &conversation{Conversation: ledger.Conversation{ID: id, Key: key, Tail: tail}, chain: tail.Engine.(*chain)}
	c.Engine = c
	return c
}

type ends struct {
	head, lastIn, lastOut, offer ledger.MessageID
	turns                        int64
	ledger.Settings
}

// turn is that of the conversation's newest message; what is sent before any user
// spoke belongs to the first.
func (e *ends) turn() int64 { return max(e.turns-1, 0) }
