package hub

import (
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/wallclock"
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
	clock *wallclock.Clock
	ahead time.Duration // its drift when it was last looked at
	jumps []jump
}

type jump struct {
	before ledger.MessageID // messages with lower ids were made before it
	by     time.Duration
}

func newAges(now func() time.Time) *ages {
	return &ages{clock: wallclock.New(now)}
}

// look notes a jump since the last look. newID gives an id that divides older
// messages from younger ones.
func (a *ages) look(newID func() ledger.MessageID) {
	ahead := a.clock.Drift()
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
	age := a.clock.Now().Sub(id.Time())
	for _, j := range a.jumps {
		if id < j.before {
			age -= j.by
		}
	}
	if by := a.clock.Drift() - a.ahead; by >= smallJump { // since the last look: the next one knows which are younger
		age -= by
	}
	return age
}
