package ledger

import (
	"context"
	"sync/atomic"
	"time"
)

// Log takes what is to be kept of the channels that this process owns.
type Log interface {
	// Own makes the caller the owner of a channel, and returns where its log ends.
	// Units of the owner before are refused from now on, with ErrFenced. Only one
	// owner appends to a channel.
	Own(ctx context.Context, channel int64) (*Tail, error)

	// Append queues a unit for the next commit. Its rows have their ids when it
	// returns; it never blocks. done runs once, after the unit is on the disk or was
	// refused, in the order in which the channel's units were appended. It must not
	// block and must not call the log, except for Append. nil = nobody asks.
	Append(u *Unit, done func(Result))

	// Release gives a channel back. Its units are fenced from now on.
	Release(t *Tail)
}

// Leading is a Log that commits for whoever can wait, see Leader. An engine need not
// have it.
type Leading interface {
	// AppendBy is Append for a caller that holds no lock and that may wait for the
	// disk: if nobody else writes, the unit is committed before it returns, and what
	// done left for the leader to flush is flushed here.
	AppendBy(l Leader, u *Unit, done func(Result))
}

// Epoch counts the owners of a channel. A commit refuses what an older one appended.
type Epoch int64

// Tail is the end of a channel's log, for its owner.
type Tail struct {
	Channel int64
	Epoch   Epoch

	// Engine is what the engine remembers of it. Nobody else looks at it.
	Engine any

	cursor atomic.Pointer[string]
}

// Cursor is where the channel's adapter reads on, as it was committed last; "" = none
// yet.
func (t *Tail) Cursor() string {
	if p := t.cursor.Load(); p != nil {
		return *p
	}
	return ""
}

// Committed is called by the engine when it has committed a cursor.
func (t *Tail) Committed(cursor string) { t.cursor.Store(&cursor) }

// Conversation is a conversation of a channel, for the channel's owner, who makes
// sure that there is one of it at a time.
type Conversation struct {
	ID   int64
	Key  string
	Tail *Tail

	// Engine is what the engine remembers of it. Nobody else looks at it.
	Engine any
}

// Recall is a conversation with what its holder must know of its past.
type Recall struct {
	*Conversation
	Settings
	Latest Origin // of the newest inbound message
	Offer  *Entry // the newest message with buttons; nil = none
	Passed bool   // a message was received since
}

// Ends are what came last in a channel; zero = nothing yet.
type Ends struct {
	LastIn    MessageID // answered or refused
	LastOut   MessageID
	Delivered time.Time // when the far end took one of its newest messages, as it was when this was first asked
	Sent      time.Time // likewise, about when one of them was written to it
}

// Scope is which messages of a channel are read.
type Scope struct {
	Channel      int64
	Conversation *string    // nil = all
	Direction    *Direction // nil = both

	// Bytes is what the messages of a page may hold: if it has more, there is no page
	// but ErrPageBytes. 0 = a page ends by PageBytes.
	Bytes int
}

// Unit is what is committed together: a message with its answers, sends, or
// changes of state. Everything in it belongs to one conversation.
type Unit struct {
	Conversation *Conversation // nil = there is no more than a Cursor
	Tail         *Tail         // without a Conversation: whose cursor it is
	Cursor       string        // where the adapter reads on from now on; "" = as it was
	In           *Row
	Out          []Row // with In set, each answers it
	Settle       []Settlement
	Set          *Settings // the conversation's settings from now on; nil = as they were

	// After is a unit that was appended before this one and must be on the disk if
	// this one is to be; nil = none. It fails with it.
	After *Unit

	// Failed is set by the engine, before done is called, if the unit was not stored.
	Failed bool
}

// Owner is the tail of the channel that the unit goes to.
func (u *Unit) Owner() *Tail {
	if u.Conversation == nil {
		return u.Tail
	}
	return u.Conversation.Tail
}

// First is the id of the unit's first message; 0 = it has none.
func (u *Unit) First() MessageID {
	switch {
	case u.In != nil:
		return u.In.ID
	case len(u.Out) > 0:
		return u.Out[0].ID
	}
	return 0
}

// Identify gives the unit's rows ids that follow one another.
func (u *Unit) Identify(from *IDs) {
	rows := len(u.Out)
	if u.In != nil {
		rows++
	}
	if rows == 0 {
		return
	}
	id := from.Take(rows)
	if u.In != nil {
		u.In.ID = id
		id++
	}
	for i := range u.Out {
		u.Out[i].ID = id
		id++
		if u.In != nil {
			u.Out[i].ReplyTo = u.In.ID
		}
	}
}

// Result tells how a commit went.
type Result struct {
	Err    error   // nil, ErrDuplicate, ErrRemoved, ErrFenced or wrapping ErrUnavailable
	Commit *Commit // nil = there was none
}

// At is when the commit was over, about: units that were committed together share
// one reading of the clock.
func (r Result) At() time.Time {
	if r.Commit == nil {
		return time.Now()
	}
	if r.Commit.at.IsZero() {
		r.Commit.at = time.Now()
	}
	return r.Commit.at
}

// Later calls f.Flush after done of every unit of the same commit ran, so that what
// they all left there can go out in one write.
func (r Result) Later(f Flusher) {
	if r.Commit == nil {
		f.Flush()
		return
	}
	if later := r.Commit.Flushers; len(later) == 0 || later[len(later)-1] != f { // units of one connection come together
		r.Commit.Flushers = append(later, f)
	}
}

// Commit is what the done calls of one commit share. The engine makes it, and flushes
// after the last of them.
type Commit struct {
	Flushers []Flusher
	at       time.Time // see Result.At; zero = nobody asked yet
}
