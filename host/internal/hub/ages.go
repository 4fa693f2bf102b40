package hub

import (
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Less than this between two looks is the clock being kept right, not a jump;
// and older ones than so many are forgotten.
const (
	smallJump = 2 * time.Second
	maxJumps  = 64
)

// ages tells how old messages are. A message's id has the wall clock's time, and
// that clock may be set: a day forward must not expire what has waited for a
// minute. So each jump is noted, and counts in no message's age that was made
// before it. One goroutine uses it.
type ages struct {
	now   func() time.Time
	zero  time.Time     // of the steady clock
	ahead time.Duration // of it, the wall clock when it was last looked at
	jumps []jump
}

type jump struct {
	before ledger.MessageID // messages with lower ids were made before it
	by     time.Duration
}

func newAges(now func() time.Time) *ages {
	a := &ages{now: now, zero: time.Now()}
	a.ahead = a.drift()
	return a
}

// drift is how far the wall clock is ahead of the steady one, counted from zero.
func (a *ages) drift() time.Duration {
	return a.now().Round(0).Sub(a.zero.Round(0)) - time.Since(a.zero)
}

// look notes a jump since the last look. newID gives an id that divides older
// messages from younger ones.
func (a *ages) look(newID func() ledger.MessageID) {
	ahead := a.drift()
	by := ahead - a.ahead
	a.ahead = ahead
	if by.Abs() < smallJump {
		return
	}
	if len(a.jumps) == maxJumps {
		a.jumps = slices.Delete(a.jumps, 0, 1)
	}
	a.jumps = append(a.jumps, jump{newID(), by})
}

// of is the age of a message.
func (a *ages) of(id ledger.MessageID) time.Duration {
	age := a.now().Sub(id.Time())
	for _, j := range a.jumps {
		if id < j.before {
			age -= j.by
		}
	}
	if by := a.drift() - a.ahead; by >= smallJump { // since the last look: the next one knows which are younger
		age -= by
	}
	return age
}
