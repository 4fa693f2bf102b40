package wire

import "strings"

// Protocol is a version of the Bridge Protocol that this package speaks. The
// zero value is 1.0, so that whoever does not know of versions speaks that.
type Protocol uint8

// The protocols, oldest first.
const (
	V10 Protocol = iota
	V11
)

// String is the version as register and register_ack write it.
func (p Protocol) String() string {
	if p == V10 {
		return "1.0"
	}
	return "1.1"
}

// Negotiate is the protocol of a session whose adapter asked for this one: the
// newest that is not newer. None and 1.0 are V10; 1.1 and all that is newer
// (1.2, 2.0) are V11, and the acknowledgement says so. What is no version, such
// as "abc" or "1.1-beta", is V10: register of 1.0 ignores fields it does not
// know, so an adapter of 1.0 may have a field of this name for its own use.
func Negotiate(asked string) Protocol {
	numbers := strings.Split(asked, ".")
	for _, n := range numbers {
		if n == "" || strings.Trim(n, "0123456789") != "" {
			return V10
		}
	}
	switch major := numbers[0]; {
	case isOver(major, '1'):
		return V11
	case isOver(major, '0') && len(numbers) > 1 && isOver(numbers[1], '0'):
		return V11
	}
	return V10
}

// isOver compares a number of any length, for a peer wrote it, with one digit.
func isOver(number string, digit byte) bool {
	number = strings.TrimLeft(number, "0")
	return len(number) > 1 || len(number) == 1 && number[0] > digit
}

// Dialect is what a session has negotiated: what its frames may be, beyond
// protocol 1.0 without capabilities, which is the zero value.
type Dialect struct {
	Protocol Protocol
	Caps     Caps // effective
}
