package hub

import (
	"math/bits"
	"time"
)

// recentSaid is how many of an adapter's newest words on messages are remembered: what
// share of them refuses tells whether the far end takes messages now.
const recentSaid = 20

// Said is what the adapters of a channel said of the messages that they got, since the
// process began. A message that is refused for now and tried again counts each time.
type Said struct {
	Confirmed, Refused     uint64
	ConfirmedAt, RefusedAt time.Time // the newest of each; zero = there was none
	Why                    string    // of the newest refusal, in the adapter's words

	known  int    // how many of the newest are remembered
	recent uint32 // of them the newest is the lowest bit; 1 = it refused
}

// hear counts what an adapter said of a message. why is what it said of a refusal.
func (s *Said) hear(confirmed bool, at time.Time, why string) {
	s.known = min(s.known+1, recentSaid)
	s.recent = s.recent << 1 & (1<<recentSaid - 1)
	if confirmed {
		s.Confirmed++
		s.ConfirmedAt = at
		return
	}
	s.recent |= 1
	s.Refused++
	s.RefusedAt, s.Why = at, why
}

// Recent is how many of the newest words are known, and how many of them refuse.
func (s *Said) Recent() (of, refused int) { return s.known, bits.OnesCount32(s.recent) }

// Said is what a channel's adapters said; the zero value if it was not used in this
// process (what was before, ledger.Ends tell).
func (h *Hub) Said(key int64) Said {
	c := h.known(key)
	if c == nil {
		return Said{}
	}
	ch := c.lock()
	defer ch.unlock()
	if ch.tally == nil {
		return Said{}
	}
	return ch.tally.Said
}
