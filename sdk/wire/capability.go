package wire

import (
	"math/bits"
	"strings"
)

// Caps is a set of capabilities. The zero value is empty; every effective set
// holds at least CapText.
type Caps uint32

// The capabilities of protocol 1.0, in catalogue order.
const (
	CapText Caps = 1 << iota
	CapCard
	CapButtons
	CapImage
	CapFile
	CapTyping
	CapUpdateMessage
	CapReplyToMessage
)

var capNames = []string{"text", "card", "buttons", "image", "file", "typing", "update_message", "reply_to_message"}

// CapNames lists every capability name this package knows, in catalogue order.
func CapNames() []string { return append([]string(nil), capNames...) }

// ParseCaps reads capability names. Names it does not know come back in
// unknown, in their order, without repeats being merged.
func ParseCaps(names []string) (set Caps, unknown []string) {
next:
	for _, n := range names {
		for i, known := range capNames {
			if n == known {
				set |= 1 << i
				continue next
			}
		}
		unknown = append(unknown, n)
	}
	return set, unknown
}

// Effective is what an adapter may be sent: what it declared, cut by the
// operator's allow-list (empty = no cut), and always text.
func Effective(declared, allow Caps) Caps {
	if allow != 0 {
		declared &= allow
	}
	return declared | CapText
}

// Has reports whether every capability of c is in the set.
func (s Caps) Has(c Caps) bool { return s&c == c }

// Names lists the set's members in catalogue order; never nil.
func (s Caps) Names() []string {
	names := make([]string, 0, bits.OnesCount32(uint32(s)))
	for i, n := range capNames {
		if s&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

func (s Caps) String() string { return strings.Join(s.Names(), ",") }

// Profile is what a far end can show beyond its capabilities. Zero values mean
// "no limit known". An operator sets it on the channel of a 1.0 adapter.
type Profile struct {
	MaxText        int    `json:"max_text,omitempty" doc:"Longest text of one message, in Unicode code points" minimum:"0" maximum:"1000000"`
	Markdown       string `json:"markdown,omitempty" doc:"Markdown dialect that the platform shows" enum:"none,basic,full"`
	MaxButtons     int    `json:"max_buttons,omitempty" doc:"Most buttons of one message" minimum:"0" maximum:"10000"`
	EditIntervalMS int    `json:"edit_interval_ms,omitempty" doc:"Shortest time between two edits of one message, in milliseconds" minimum:"0" maximum:"3600000"`
	Parallel       int    `json:"parallel,omitempty" doc:"Conversations that the adapter serves at once" minimum:"0" maximum:"100000"`
}

// View is what a far end can be shown: its effective capabilities and profile.
type View struct {
	Caps    Caps
	Profile Profile
	Local   bool // on this machine: paths of files mean something to it
}
