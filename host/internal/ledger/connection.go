package ledger

import "time"

// Meeting is what happened at the door.
type Meeting uint8

// What happens at the door. The numbers are those of the database.
const (
	Attached Meeting = iota // came and was let in
	Left                    // went, or was sent away
	Turned                  // was not let in
)

// Names of meetings, as the API says them.
var meetings = [...]string{"attached", "left", "refused"}

func (m Meeting) String() string {
	if int(m) < len(meetings) {
		return meetings[m]
	}
	return "unknown"
}

// ParseMeeting is the inverse of String.
func ParseMeeting(name string) (Meeting, bool) {
	for i, known := range meetings {
		if known == name {
			return Meeting(i), true //nolint:gosec // G115: there are three
		}
	}
	return 0, false
}

// Connection is a line of the history of connections. Like ones within an hour are one
// line, but those of Attached and Left, whose order tells something.
type Connection struct {
	ID         int64
	Owner      Owner // a channel or an agent; its key 0 = nobody knows whose
	What       Meeting
	At         time.Time // of the first
	Latest     time.Time
	Count      int
	Remote     string // address without port; "" = the host itself
	Credential int64  // that was shown, of the owner; 0 = none that is known
	Code       int    // with which the connection was closed by the host; 0 = it was not
	Why        string // for people, at most MaxConnectionWhy bytes
}

// Bounds of the history of connections.
const (
	MaxConnectionWhy = 256
	KeepConnections  = 30 * 24 * time.Hour
	MaxConnections   = 1000 // lines of one owner, and of nobody
)

// ConnectionQuery is which lines are wanted.
type ConnectionQuery struct {
	Owner Owner // its Kind "" = of all
	What  *Meeting
}
