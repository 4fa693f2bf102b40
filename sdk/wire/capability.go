package wire

import (
	"math/bits"
	"slices"
	"strings"
)

// Caps is a set of capabilities. The zero value is empty; every effective set
// holds at least CapText.
type Caps uint32

// The capabilities in catalogue order: those of protocol 1.0, then those of 1.1.
const (
	CapText Caps = 1 << iota
	CapCard
	CapButtons
	CapImage
	CapFile
	CapTyping
	CapUpdateMessage
	CapReplyToMessage

	CapAck           // 1.1: message_ack in both directions
	CapParts         // 1.1: send_parts; message.parts, message.attachments
	CapStream        // 1.1: stream, stream_end
	CapDeleteMessage // 1.1: delete_message; message_delete
	CapReaction      // 1.1: send_reaction; reaction
	CapAudio         // 1.1: send_audio; message.attachments
	CapForm          // 1.1: send_form; form_submit
)

// The capabilities that count in a session of each protocol.
const (
	CapsV10 = CapReplyToMessage<<1 - 1
	CapsV11 = CapForm<<1 - 1
)

var capNames = []string{
	"text", "card", "buttons", "image", "file", "typing", "update_message", "reply_to_message",
	"ack", "parts", "stream", "delete_message", "reaction", "audio", "form",
}

// CapNames lists the capability names of protocol 1.0, in catalogue order.
func CapNames() []string { return CapsV10.Names() }

// CapNamesFor lists the capability names that count under protocol (see
// Negotiate), in catalogue order. What an operator allows is of the newest:
// CapNamesFor(V11.String()).
func CapNamesFor(protocol string) []string { return capsOf(protocol).Names() }

// ParseCaps reads capability names of protocol 1.0. Names it does not know, and
// those of 1.1, come back in unknown, in their order, without repeats being merged.
func ParseCaps(names []string) (set Caps, unknown []string) {
	return parseCaps(CapsV10, names)
}

// ParseCapsFor is ParseCaps under the protocol that the adapter asked for, since
// the capabilities of 1.1 count only there (see Negotiate). An operator's
// allow-list outlives sessions and is read as of V11.
func ParseCapsFor(protocol string, names []string) (set Caps, unknown []string) {
	return parseCaps(capsOf(protocol), names)
}

func capsOf(protocol string) Caps {
	if Negotiate(protocol) == V10 {
		return CapsV10
	}
	return CapsV11
}

func parseCaps(known Caps, names []string) (set Caps, unknown []string) {
	for _, n := range names {
		c := Caps(0)
		if i := slices.Index(capNames, n); i >= 0 {
			c = known & (1 << i)
		}
		if c == 0 {
			unknown = append(unknown, n)
		}
		set |= c
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
