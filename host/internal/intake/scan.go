package intake

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// MaxDepth is how deep the JSON of a body may be nested: what a message may hold, and
// what is around it.
const MaxDepth = message.MaxDepth + 16

// extent is what decoding a body costs.
type extent struct {
	values int // at least as many as there are
	depth  int // of the deepest
}

// measure looks how many values JSON has and how deep they lie, without decoding it.
// It ends early at more than most values (0 = not bounded) or MaxDepth levels. What
// is no JSON has some extent too.
func measure(b []byte, most int) extent {
	e, depth := extent{values: 1}, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = endOfText(b, i)
		case ',':
			e.values++
		case '{', '[':
			e.values++
			depth++
			e.depth = max(e.depth, depth)
		case '}', ']':
			depth--
		}
		if e.depth > MaxDepth || most > 0 && e.values > most {
			return e
		}
	}
	return e
}

// Values is how many values JSON has, roughly, or more than MaxValues if it has more.
func Values(b []byte) int { return measure(b, MaxValues).values }

// CheckText is why the texts of JSON can't be taken, nil = they can: bytes that are no
// UTF-8, and half a surrogate pair, would be stored as other characters than came.
func CheckText(b []byte) *Refusal {
	if !utf8.Valid(b) {
		at := 0
		for at < len(b) {
			r, n := utf8.DecodeRune(b[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		return &Refusal{Status: http.StatusUnprocessableEntity, Message: fmt.Sprintf("found bytes that are not UTF-8 at byte %d, expected UTF-8", at)}
	}
	for i := 0; ; i += 2 {
		n := bytes.IndexByte(b[i:], '\\')
		if n < 0 {
			return nil
		}
		i += n
		unit, ok := codeUnit(b[i:])
		if !ok || !utf16.IsSurrogate(unit) {
			continue
		}
		if low, _ := codeUnit(b[i+6:]); utf16.DecodeRune(unit, low) == utf8.RuneError {
			return &Refusal{Status: http.StatusUnprocessableEntity, Message: fmt.Sprintf("found %s at byte %d, half of a surrogate pair, expected both halves or another character", b[i:i+6], i)}
		}
		i += 6
	}
}

// codeUnit reads an escape of the form \uXXXX that b begins with.
func codeUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

// endOfText is where the string ends that begins at start: its last quote.
func endOfText(b []byte, start int) int {
	for i := start + 1; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		back := i
		for back > start+1 && b[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 { // the quote is not escaped
			return i
		}
	}
}
