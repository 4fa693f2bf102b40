package intake

import (
	"bytes"

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
