// Package delivery decides what of a conversation is sent when, to an adapter
// that acknowledges: as many messages in flight as it takes at once, the others in
// order behind them, retries with a growing pause, and an end to both. It does no
// I/O; times come in, decisions go out.
package delivery

import (
	"cmp"
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

// pause is what to wait before the next try, when n have failed: at least what the
// protocol says. Up to a quarter of that is added by chance, so that what failed together
// is not tried together.
func pause(n int) time.Duration {
	d := LastPause
	if n < 12 { // beyond, the shift is over LastPause anyway
		d = min(LastPause, FirstPause<<max(0, n-1))
	}
	return d + time.Duration(rand.Int64N(int64(d)/4+1)) //nolint:gosec // G404: it spreads load
}

// Lane is the order of one conversation. The zero Lane is empty. Its methods must
// not be called at the same time.
//
// A message flies alone that has several frames, since its next frame waits for the
// one before, one that is written some time after it left, and one that was refused,
// until it is known whether the far end takes anything again.
type Lane struct {
	waiting  []Message // ascending
	flights  []Message // in the order in which they left
	reserved int       // are being committed, and fly then
	alone    bool      // what flies, or is reserved, flies alone
	due      time.Time // nothing is taken before
}

// Message is what a lane knows of one.
type Message struct {
	ID    ledger.MessageID
	Tries uint32 // that failed
	Frame uint16 // those before it are acknowledged
	Many  bool   // it has more frames than one, or is written later
	Later bool   // it was refused until a time that the far end named
}

func (m *Message) fliesAlone() bool { return m.Many || m.Tries > 0 || m.Later }

// Empty reports that the lane can be forgotten.
func (l *Lane) Empty() bool { return len(l.flights) == 0 && l.reserved == 0 && len(l.waiting) == 0 }

// Flight is what is known of a message in flight; nil = it is not. It is good until
// the next call of another method.
func (l *Lane) Flight(id ledger.MessageID) *Message {
	if i := l.flightAt(id); i >= 0 {
		return &l.flights[i]
	}
	return nil
}

// IsFirst reports whether of what is in flight the message left first.
func (l *Lane) IsFirst(id ledger.MessageID) bool { return len(l.flights) > 0 && l.flights[0].ID == id }

// Waits is what is known of a message that waits; nil = it does not. It is good until
// the next call of another method.
func (l *Lane) Waits(id ledger.MessageID) *Message {
	if i, there := slices.BinarySearchFunc(l.waiting, id, byID); there {
		return &l.waiting[i]
	}
	return nil
}

func (l *Lane) flightAt(id ledger.MessageID) int {
	return slices.IndexFunc(l.flights, func(m Message) bool { return m.ID == id })
}

// free reports whether one more may fly, of so many at once.
func (l *Lane) free(window int, alone bool) bool {
	busy := len(l.flights) + l.reserved
	return busy == 0 || !alone && !l.alone && busy < window
}

// Reserve keeps a place for a message that is about to be committed as sent; false if
// it must wait. Of so many as window may fly at once, and none beside one with many
// frames, or that is written later. Start or Release follows.
func (l *Lane) Reserve(window int, alone bool) bool {
	if len(l.waiting) > 0 || !l.free(window, alone) {
		return false
	}
	l.reserved++
	l.alone = alone
	return true
}

// Release gives up what Reserve kept.
func (l *Lane) Release() {
	l.reserved--
	l.landed()
}

// landed is to be called when less flies or is reserved than before.
func (l *Lane) landed() {
	if len(l.flights) == 0 && l.reserved == 0 {
		l.alone = false
	}
}

// Start puts a message in flight that Reserve kept a place for. False: it must wait,
// since an older one waits by now, which was on its way to the queue, or was taken
// back.
func (l *Lane) Start(id ledger.MessageID) bool {
	l.reserved--
	if len(l.waiting) > 0 && l.waiting[0].ID < id {
		l.landed()
		return false
	}
	l.flights = append(l.flights, Message{ID: id, Many: l.alone})
	return true
}

// Wait puts a message among those that wait, in the order of ids. One that is in flight
// stays there, and of one that waits already it counts what is said of it now.
func (l *Lane) Wait(m Message) {
	if l.flightAt(m.ID) < 0 {
		l.insert(m)
	}
}

func (l *Lane) insert(m Message) {
	i, there := slices.BinarySearchFunc(l.waiting, m.ID, byID)
	if there {
		l.waiting[i] = m
		return
	}
	if i == 0 {
		l.due = time.Time{} // it was another's
	}
	l.waiting = slices.Insert(l.waiting, i, m)
}

func byID(m Message, id ledger.MessageID) int { return cmp.Compare(m.ID, id) }

// Take puts the first message in flight, if there is one whose time has come, and less
// than window fly.
func (l *Lane) Take(now time.Time, window int) (Message, bool) {
	due, ok := l.Due(window)
	if !ok || now.Before(due) {
		return Message{}, false
	}
	m := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.flights = append(l.flights, m)
	l.alone = m.fliesAlone()
	return m, true
}

// First is what waits first; false = nothing does.
func (l *Lane) First() (ledger.MessageID, bool) {
	if len(l.waiting) == 0 {
		return 0, false
	}
	return l.waiting[0].ID, true
}

// Due is when Take has something; false = not before something else happens. What is
// reserved is decided on first.
func (l *Lane) Due(window int) (time.Time, bool) {
	ok := len(l.waiting) > 0 && l.reserved == 0 && l.free(window, l.waiting[0].fliesAlone())
	return l.due, ok
}

// Many says of a message in flight that it has many frames, or is written later. False:
// it can't fly yet, since others do, and waits again, with what left behind it, which it
// returns.
func (l *Lane) Many(id ledger.MessageID) (back []ledger.MessageID, ok bool) {
	l.Flight(id).Many = true
	if len(l.flights) > 1 || l.reserved > 0 {
		return l.Back(id), false
	}
	l.alone = true
	return nil, true
}

// Acked counts a frame of a message in flight as taken; false if it is not the one that
// is awaited.
func (l *Lane) Acked(id ledger.MessageID, frame int) bool {
	m := l.Flight(id)
	if m == nil || frame != int(m.Frame) {
		return false
	}
	m.Frame++
	return true
}

// Settle ends a message that is in flight.
func (l *Lane) Settle(id ledger.MessageID) {
	if i := l.flightAt(id); i >= 0 {
		l.flights = slices.Delete(l.flights, i, i+1)
		l.landed()
	}
}

// Back lets a message in flight wait again, with all that left behind it, which it
// returns. It counts as no try.
func (l *Lane) Back(id ledger.MessageID) (back []ledger.MessageID) {
	i := l.flightAt(id)
	if i < 0 {
		return nil
	}
	return l.back(i)
}

func (l *Lane) back(from int) (back []ledger.MessageID) {
	for _, m := range l.flights[from:] {
		l.insert(m)
		back = append(back, m.ID)
	}
	l.flights = l.flights[:from]
	l.landed()
	return back
}

// Retry lets a message in flight wait for its next try, and all that left behind it,
// which the far end does not take either: order is kept. It returns them all. after is
// how long the far end wants to be left alone, 0 = it did not say: to wait that out is no
// failure, and counts as no try. False if it was tried as often as it may be, or more:
// then it is for the caller to Settle, and those behind it alone are returned.
func (l *Lane) Retry(id ledger.MessageID, now time.Time, after time.Duration, attempts int) (back []ledger.MessageID, again bool) {
	i := l.flightAt(id)
	m := &l.flights[i]
	wait := max(after, FirstPause)
	if m.Later = after > 0; !m.Later {
		m.Tries++
		if int(m.Tries) >= attempts {
			return l.back(i + 1), false
		}
		wait = pause(int(m.Tries))
	}
	back = l.back(i)
	if l.waiting[0].ID == id { // else one with an earlier id was decided on later
		l.due = now.Add(wait)
	}
	return back, true
}

// Drop takes a message from those that wait; false if it does not.
func (l *Lane) Drop(id ledger.MessageID) bool {
	i, there := slices.BinarySearchFunc(l.waiting, id, byID)
	if there {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		if i == 0 {
			l.due = time.Time{}
		}
	}
	return there
}
