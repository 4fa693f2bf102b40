package ledger

const (
	// MaxDeadCounted bounds what a count of dead letters looks at: at 5 µs each it
	// takes a quarter of a second.
	MaxDeadCounted = 50_000
)

// Dying is a channel, by its key, and a reason why messages of it are dead.
type Dying struct {
	Channel int64
	Reason  Reason
}

// DeadCounts is how many dead letters there are. It must not be changed.
type DeadCounts struct {
	Of    map[Dying]int64
	Whole bool // all were counted; else there are more, older than the newest MaxDeadCounted
}

// ByChannel are the counts of channels, by their keys.
func (c DeadCounts) ByChannel() map[int64]int64 {
	out := map[int64]int64{}
	for d, n := range c.Of {
		out[d.Channel] += n
	}
	return out
}

// Total is the count of all.
func (c DeadCounts) Total() (n int64) {
	for _, of := range c.Of {
		n += of
	}
	return n
}
