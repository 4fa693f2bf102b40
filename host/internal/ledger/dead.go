package ledger

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Death is when a message failed or expired: its place in the list of dead letters, of
// which the latest is the first.
type Death struct {
	At time.Time // to the millisecond
	ID MessageID // orders those of one moment; 0 = none
}

// DeadHeading is a dead letter without what it says.
type DeadHeading struct {
	Heading
	Died time.Time
}

// Death is its place.
func (h *DeadHeading) Death() Death { return Death{h.Died, h.ID} }

// Cursor is the opaque text that the letters behind this one are asked for by; "" for none.
func (d Death) Cursor() string {
	if d.ID == 0 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%s", d.At.UnixMilli(), d.ID))
}

// ParseDeath reads what Cursor wrote; false = it did not.
func ParseDeath(cursor string) (Death, bool) {
	if cursor == "" {
		return Death{}, true
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return Death{}, false
	}
	ms, ref, _ := strings.Cut(string(b), ".")
	at, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return Death{}, false
	}
	id, err := ParseMessageID(ref)
	return Death{time.UnixMilli(at).UTC(), id}, err == nil && id > 0
}
