package bench

// tally is what one connection has seen of its messages.
type tally struct {
	sent       int
	answered   int // different ones
	refused    int // error frames
	duplicated int
	disordered int    // answered after a later one of the same conversation
	stray      int    // answers to what this connection never sent
	refusal    string // the first, or why no answer was waited for any longer

	got     []uint64 // one bit for each sequence number
	last    []int    // newest answered of each conversation
	counted int      // answered while measuring
	latency histogram
}

// open is how many messages wait for their answer.
func (t *tally) open() int { return t.sent - t.answered - t.refused }

// has reports whether the message was answered.
func (t *tally) has(seq int) bool {
	return seq>>6 < len(t.got) && t.got[seq>>6]&(1<<(seq&63)) != 0
}

// note counts the answer to a message that was sent; false if it is a repeat.
func (t *tally) note(seq int) bool {
	for seq>>6 >= len(t.got) {
		t.got = append(t.got, 0)
	}
	if t.has(seq) {
		t.duplicated++
		return false
	}
	t.got[seq>>6] |= 1 << (seq & 63)
	t.answered++
	c := seq % len(t.last)
	if seq < t.last[c] {
		t.disordered++
	} else {
		t.last[c] = seq
	}
	return true
}

// Count is what became of the messages of one measurement.
type Count struct {
	Sent       int    `json:"sent"`
	Answered   int    `json:"answered"`
	Refused    int    `json:"refused"` // answered by an error frame
	Lost       int    `json:"lost"`
	Duplicated int    `json:"duplicated"`
	Disordered int    `json:"out_of_order"`
	Stray      int    `json:"stray"` // answers to what was never sent
	Refusal    string `json:"refusal,omitempty"`
}

func (c *Count) add(o Count) {
	c.Sent += o.Sent
	c.Answered += o.Answered
	c.Refused += o.Refused
	c.Lost += o.Lost
	c.Duplicated += o.Duplicated
	c.Disordered += o.Disordered
	c.Stray += o.Stray
	if c.Refusal == "" {
		c.Refusal = o.Refusal
	}
}

// Clean reports whether every message was answered once and in order.
func (c Count) Clean() bool {
	return c.Refused == 0 && c.Lost == 0 && c.Duplicated == 0 && c.Disordered == 0 && c.Stray == 0
}

func (t *tally) count() Count {
	return Count{
		Sent: t.sent, Answered: t.answered, Refused: t.refused, Lost: max(t.open(), 0),
		Duplicated: t.duplicated, Disordered: t.disordered, Stray: t.stray, Refusal: t.refusal,
	}
}
