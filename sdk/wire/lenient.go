package wire

import "math/bits"

// Lenient is a set of fields of a frame of protocol 1.0 that were not as the protocol
// has them, and that were read all the same, as adapters in the field rely on it: a
// number or a boolean in the place of an id or a name is its text, any other value
// there is absent, and an absent text is empty. Protocol 1.1 refuses them.
type Lenient uint8

// lenientText is behind those of authorKeys, which have the first bits.
const lenientText Lenient = 1 << 4

// authorKeys are the fields that say where a frame is from, in the order of Lenient's
// bits.
var authorKeys = [...]int{keySessionKey, keyConversationID, keyUserID, keyUserName}

// Names lists the fields, in the order of the protocol.
func (l Lenient) Names() []string {
	names := make([]string, 0, bits.OnesCount8(uint8(l)))
	for i, key := range authorKeys {
		if l&(1<<i) != 0 {
			names = append(names, keyNames[key])
		}
	}
	if l&lenientText != 0 {
		names = append(names, keyNames[keyText])
	}
	return names
}

// scalar reports a number or a boolean.
func (f *fields) scalar(key int) bool {
	switch c := f[key][0]; c {
	case 't', 'f', '-':
		return true
	default:
		return '0' <= c && c <= '9'
	}
}
