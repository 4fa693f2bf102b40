// Package delivery decides what of a conversation is sent when, to an adapter
// that acknowledges: one message in flight, the others in order behind it,
// retries with a growing pause, and an end to both. It does no I/O; times come
// in, decisions go out.
package delivery

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Limits of what waits for an adapter. A channel may set its own.
const (
	DefaultTTL      = 24 * time.Hour // how long a message may wait …
	DefaultLength   = 10_000         // how many of a channel may …
	DefaultAttempts = 10             // and how often one is tried
)

// The pause before a message is tried again doubles from the first to the last.
const (
	FirstPause = time.Second
	LastPause  = 5 * time.Minute
)

// AckTimeout is how long an adapter may take to acknowledge a frame (protocol
// section B2): then it gets it once more, then its session is closed.
const AckTimeout = 60 * time.Second

// pause is what to wait before the next try, when n have failed. A quarter of it
// is chance, so that what failed together is not tried together.
func pause(n int) time.Duration {
	d := LastPause
	if n < 12 { // beyond, the shift is over LastPause anyway
		d = min(LastPause, FirstPause<<max(0, n-1))
	}
	return d - time.Duration(rand.Int64N(int64(d)/4+1)) //nolint:gosec // G404: it spreads load
}

// Lane is the order of one conversation. The zero Lane is empty. Its methods
// must not be called at the same time.
type Lane struct {
	waiting  []ledger.MessageID // ascending
	flight   ledger.MessageID   // 0 = none
	reserved bool               // one is being committed that will be in flight
	frame    int                // of the one in flight: those before it are acknowledged
	tries    int                // of the first, that failed
	due      time.Time          // nothing is taken before
}

// Empty reports that the lane can be forgotten.
func (l *Lane) Empty() bool { return l.flight == 0 && !l.reserved && len(l.waiting) == 0 }

// Flight is what is in flight, with its first frame that is not acknowledged; 0
// = nothing.
func (l *Lane) Flight() (id ledger.MessageID, frame int) { return l.flight, l.frame }

// Reserve keeps the lane for a message that is about to be committed as sent;
// false if it must wait. Start or Release follows.
func (l *Lane) Reserve() bool {
	if !l.Empty() {
		return false
	}
	l.reserved = true
	return true
}

// Release gives up what Reserve kept.
func (l *Lane) Release() { l.reserved = false }

// Start puts the message in flight that the lane was reserved for.
func (l *Lane) Start(id ledger.MessageID) {
	l.reserved = false
	l.fly(id)
}

func (l *Lane) fly(id ledger.MessageID) { l.flight, l.frame = id, 0 }

// Wait puts a message among those that wait, in the order of ids. One that waits
// or is in flight already stays where it is.
func (l *Lane) Wait(id ledger.MessageID) {
	if id != l.flight {
		l.insert(id)
	}
}

func (l *Lane) insert(id ledger.MessageID) {
	i, there := slices.BinarySearch(l.waiting, id)
	if there {
		return
	}
	if i == 0 && l.flight == 0 {
		l.tries, l.due = 0, time.Time{} // they were another's
	}
	l.waiting = slices.Insert(l.waiting, i, id)
}

// Take puts the first message in flight, if there is one whose time has come.
func (l *Lane) Take(now time.Time) (ledger.MessageID, bool) {
	if l.flight != 0 || l.reserved || len(l.waiting) == 0 || now.Before(l.due) {
		return 0, false
	}
	l.fly(l.waiting[0])
	l.waiting = l.waiting[1:]
	return l.flight, true
}

// First is what waits first; false = nothing does.
func (l *Lane) First() (ledger.MessageID, bool) {
	if len(l.waiting) == 0 {
		return 0, false
	}
	return l.waiting[0], true
}

// Due is when Take has something; false = not before something else happens.
func (l *Lane) Due() (time.Time, bool) {
	return l.due, l.flight == 0 && !l.reserved && len(l.waiting) > 0
}

// Acked counts a frame of the message in flight as taken; false if it is not the
// one that is awaited.
func (l *Lane) Acked(id ledger.MessageID, frame int) bool {
	if id == 0 || id != l.flight || frame != l.frame {
		return false
	}
	l.frame++
	return true
}

// Resume says at which frame the message in flight goes on.
func (l *Lane) Resume(frame int) { l.frame = frame }

// Settle ends the message that is in flight.
func (l *Lane) Settle() { l.flight, l.tries, l.due = 0, 0, time.Time{} }

// Back lets the message in flight wait again: its session was lost. It counts as
// no try.
func (l *Lane) Back() {
	if l.flight == 0 {
		return
	}
	l.insert(l.flight)
	if l.waiting[0] != l.flight { // one with an earlier id was decided on later
		l.tries, l.due = 0, time.Time{}
	}
	l.flight = 0
}

// Retry lets the message in flight wait again for its next try, and says when
// that is; false if it was tried as often as it may be, or more: then it is for
// the caller to Settle.
func (l *Lane) Retry(now time.Time, attempts int) (time.Time, bool) {
	l.tries++
	if l.tries >= attempts {
		return time.Time{}, false
	}
	l.due = now.Add(pause(l.tries))
	due := l.due
	l.Back()
	return due, true
}

// Tries is how often the first message has failed.
func (l *Lane) Tries() int { return l.tries }

// Failed tells how often the first message had failed before the lane was made.
func (l *Lane) Failed(tries int) { l.tries = tries }

// Drop takes a message from those that wait; false if it does not.
func (l *Lane) Drop(id ledger.MessageID) bool {
	i, there := slices.BinarySearch(l.waiting, id)
	if there {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		if i == 0 && l.flight == 0 {
			l.tries, l.due = 0, time.Time{}
		}
	}
	return there
}
