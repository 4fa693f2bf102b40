package render

import "strings"

// The parser takes quadratic time for some texts, such as brackets that do not
// close. So it gets a text in pieces of a bounded weight: that of a byte is 1,
// that of what may begin markup is more.
const (
	pieceWeight = 8 << 10
	markWeight  = 16
	codeWeight  = 48 // of a run of backticks
	wildWeight  = 16 << 10
	maxNesting  = 16 // quotes and lists that begin in one line
	maxColumns  = 40
)

// piece is a part of a document that is parsed alone.
type piece struct {
	text string
	wild bool // one line with more markup than people write: it stays as it is
}

// pieces cuts a document, where it is too heavy, in front of lines that begin a
// block, or else of any line, but not within fenced code that is not in a list
// or quote. A link whose definition is in another piece stays as it is.
func pieces(md string) []piece {
	var out []piece
	start, weight := 0, 0 // of the piece
	best, behind := 0, 0  // where it is best to cut, and the weight from there
	fence := ""
	blank := false
	cut := func(at int, wild bool) {
		if at > start {
			out = append(out, piece{md[start:at], wild})
		}
		start = at
	}
	for at := 0; at < len(md); {
		end := len(md)
		if i := strings.IndexByte(md[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line := md[at:end]
		w, wild := weigh(line)
		inside := fence != ""
		if !inside && begins(line, blank) {
			best, behind = at, 0
		}
		fence = fenced(fence, line)
		switch {
		case wild && !inside:
			cut(at, false)
			cut(end, true)
			best, weight, behind, w = end, 0, 0, 0
		case weight+w > pieceWeight && best > start:
			cut(best, false)
			weight = behind
		case weight+w > pieceWeight && !inside:
			cut(at, false)
			best, weight, behind = at, 0, 0
		}
		weight += w
		behind += w
		blank = strings.Trim(line, white) == ""
		at = end
	}
	cut(len(md), false)
	return out
}

// begins reports whether a line surely begins a block.
func begins(line string, afterBlank bool) bool {
	switch c := line[0]; {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return false
	case afterBlank || c == '#' || c == '>' || fenced("", line) != "":
		return true
	case c == '-' || c == '*' || c == '+':
		return len(line) > 1 && line[1] == ' '
	}
	return false
}

// weigh is the weight of a line, and whether it has more markup than the
// parser should see.
func weigh(line string) (weight int, wild bool) {
	pipes, bars := 0, true
	var last byte
	for i := range len(line) {
		c := line[i]
		switch c {
		case '[', '<':
			weight += markWeight
		case '*', '_', '~':
			if c != last {
				weight += markWeight
			}
		case '`':
			if c != last {
				weight += codeWeight
			}
		case '|':
			pipes++
		}
		bars = bars && strings.IndexByte("|:-> \t\r\n", c) >= 0
		last = c
	}
	wild = weight > wildWeight || bars && pipes > maxColumns || nesting(line) > maxNesting
	return weight + len(line), wild
}

// nesting is how many quotes and list items begin in a line.
func nesting(line string) int {
	n, digits := 0, 0
	for i := range len(line) {
		last := i+1 == len(line) || strings.IndexByte(white, line[i+1]) >= 0
		switch c := line[i]; {
		case c == ' ' || c == '\t':
		case c == '>', last && (c == '-' || c == '+' || c == '*' || digits > 0 && (c == '.' || c == ')')):
			n++
		case c >= '0' && c <= '9' && digits < 9:
			digits++
			continue
		default:
			return n
		}
		digits = 0
	}
	return n
}
