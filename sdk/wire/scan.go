package wire

import (
	"encoding/json"
	"strings"
)

// maxFastDepth is how deep the fast path follows a value before it leaves the
// frame to the library.
const maxFastDepth = 32

// anyDepth is deeper than a frame can be.
const anyDepth = MaxFrame

// scan is the fast path of DecodeInbound: one pass over an ordinary frame, no
// allocation. It reports false on anything unusual or wrong, and the library
// decides then; what it accepts, the library accepts with the same fields
// (FuzzDecodeInbound compares the two).
func scan(s string, f *fields) bool { return scanTo(s, f, maxFastDepth) }

// scanTo is scan of values that are at most so deep. With anyDepth it does not
// look whether they are well formed: then what it finds is good for a message only.
func scanTo(s string, f *fields, depth int) bool {
	i := space(s, 0)
	if i >= len(s) || s[i] != '{' {
		return false
	}
	i = space(s, i+1)
	if i < len(s) && s[i] == '}' {
		return space(s, i+1) == len(s)
	}
	for {
		start := i
		end, escaped := stringEnd(s, i)
		if end < 0 || escaped {
			return false
		}
		name := s[start+1 : end-1]
		i = space(s, end)
		if i >= len(s) || s[i] != ':' {
			return false
		}
		i = space(s, i+1)
		end = valueEnd(s, i, depth)
		if end < 0 {
			return false
		}
		if k := keyIndex(name); k >= 0 {
			f[k] = s[i:end]
		}
		i = space(s, end)
		if i >= len(s) {
			return false
		}
		switch s[i] {
		case ',':
			i = space(s, i+1)
		case '}':
			return space(s, i+1) == len(s)
		default:
			return false
		}
	}
}

func space(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the index behind the closing quote of the string that
// starts at i, or -1. An escaped string still needs the library to be read.
func stringEnd(s string, i int) (end int, escaped bool) {
	if i >= len(s) || s[i] != '"' {
		return -1, false
	}
	i++
	quote := strings.IndexByte(s[i:], '"')
	if quote < 0 {
		return -1, false
	}
	if ordinary(s[i : i+quote]) {
		return i + quote + 1, false
	}
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			i++
		case c < 0x20:
			return -1, false
		}
	}
	return -1, false
}

// ordinary reports that s has neither a backslash nor a control character. It
// looks at eight bytes at a time: in each, a subtraction borrows into the
// highest bit if the byte is smaller than what is subtracted.
func ordinary(s string) bool {
	const (
		each = 0x0101010101010101
		high = 0x80 * each
	)
	for ; len(s) >= 8; s = s[8:] {
		v := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		slash := v ^ '\\'*each
		if ((v-' '*each)&^v|(slash-each)&^slash)&high != 0 {
			return false
		}
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '\\' {
			return false
		}
	}
	return true
}

// valueEnd returns the index behind the JSON value that starts at i, or -1; see
// scanTo.
func valueEnd(s string, i, depth int) int {
	if i >= len(s) {
		return -1
	}
	if s[i] == '"' {
		end, escaped := stringEnd(s, i)
		if escaped && !json.Valid([]byte(s[i:end])) { // \q, \u12, a quote that was escaped away
			return -1
		}
		return end
	}
	end := roughEnd(s, i, depth)
	if end < 0 || depth != anyDepth && !json.Valid([]byte(s[i:end])) {
		return -1
	}
	return end
}

// roughEnd finds where a number, literal, array or object ends if it is well
// formed, and at most so deep; the caller has it checked.
func roughEnd(s string, i, most int) int {
	depth := 0
	for i < len(s) {
		switch s[i] {
		case '"':
			end, _ := stringEnd(s, i)
			if end < 0 {
				return -1
			}
			i = end
			continue
		case '{', '[':
			if depth++; depth > most {
				return -1
			}
		case '}', ']':
			if depth == 0 {
				return i // the end of the enclosing object
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return -1
}
