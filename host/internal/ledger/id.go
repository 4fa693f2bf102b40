// Package ledger is the domain: what is kept of channels, messages, agents and
// credentials, in which states, and how it is asked for. An engine, such as sqlite,
// keeps it.
package ledger

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"
)

// MessageID identifies a message for ever: 41 bits of milliseconds since
// idEpoch, 10 bits of node, 12 bits of counter. Ids ascend in commit order.
// 0 is "none".
type MessageID int64

// idEpoch is 2024-01-01 UTC in Unix milliseconds; 41 bits last until 2093.
const idEpoch = 1_704_067_200_000

const (
	nodeBits    = 10
	counterBits = 12
	idDigits    = 13 // base32 digits of 63 bits
)

// Crockford's alphabet, lower case: no i, l, o, u.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// String is the id as users see it: 13 characters that sort as the ids do.
func (id MessageID) String() string {
	var b [idDigits]byte
	for i, v := idDigits-1, uint64(id); i >= 0; i, v = i-1, v>>5 {
		b[i] = alphabet[v&31]
	}
	return string(b[:])
}

// Time is when the id was given, to the millisecond.
func (id MessageID) Time() time.Time {
	return time.UnixMilli(int64(id)>>(nodeBits+counterBits) + idEpoch).UTC()
}

// IDAt is the first id that a message of the time may have.
func IDAt(t time.Time) MessageID {
	return MessageID(min(max(0, t.UnixMilli()-idEpoch), 1<<41-1) << (nodeBits + counterBits))
}

// Cursor is the opaque text that the pages of a list are asked for by: of the
// list of messages, the one that begins before this message.
func Cursor(id int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(id, 36)))
}

// ParseCursor reads what Cursor wrote; false = it did not.
func ParseCursor(s string) (id int64, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return 0, false
	}
	id, err = strconv.ParseInt(string(b), 36, 64)
	return id, err == nil && id > 0
}

// ParseMessageID reads what String wrote.
func ParseMessageID(s string) (MessageID, error) {
	bad := func() (MessageID, error) {
		return 0, fmt.Errorf("message id: found %.40q, expected %d characters of %s", s, idDigits, alphabet)
	}
	if len(s) != idDigits || s[0] > '7' {
		return bad()
	}
	var v int64
next:
	for i := range len(s) {
		for d := range len(alphabet) {
			if s[i] == alphabet[d] {
				v = v<<5 | int64(d)
				continue next
			}
		}
		return bad()
	}
	return MessageID(v), nil
}

// IDs gives ids that ascend whatever the clock does. The caller serializes.
type IDs struct {
	Last MessageID // that was given; no id is given twice
	Now  func() time.Time
}

// Next takes one id.
func (g *IDs) Next() MessageID { return g.Take(1) }

// Take gives n ids that follow one another, and returns the first.
func (g *IDs) Take(n int) MessageID {
	at := MessageID(g.Now().UnixMilli()-idEpoch) << (nodeBits + counterBits)
	if at <= g.Last {
		at = g.Last + 1 // same millisecond, or the clock went back: count on
	}
	g.Last = at + MessageID(n) - 1
	return at
}
