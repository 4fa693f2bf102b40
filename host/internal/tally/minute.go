package tally

import (
	"time"
)

const (
	// KeepMinutes is how long minutes are kept.
	KeepMinutes = 48 * time.Hour
)

// AllChannels is the key by which Minutes knows all channels together.
const AllChannels = 0

// Minute is what happened in a channel within one minute.
type Minute struct {
	Channel        int64     // its key, or AllChannels
	At             time.Time // its beginning
	Received, Sent int64     // messages stored, from the far end and to it
	Failed         int64     // messages that failed or expired
	Refused        int64     // messages that were not stored
	Queue          int64     // the most that waited for an adapter at once
	Latency        Counts
}

// Add counts what happened in o too, be it of another channel or another time;
// but for the queue.
func (m *Minute) Add(o *Minute) {
	m.Received += o.Received
	m.Sent += o.Sent
	m.Failed += o.Failed
	m.Refused += o.Refused
	m.Latency.Add(&o.Latency)
}
