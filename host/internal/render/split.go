package render

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const white = " \n\t\r"

// split cuts text into chunks of at most limit code points (0 = no limit) that
// take at most room bytes as a JSON string. It cuts behind a line, a sentence
// or a word, in that order of liking, and never inside a grapheme unless that
// alone is too large. Nothing but the white space at a cut is lost. There is
// always at least one chunk. Fenced code that is cut is closed in the one chunk
// and opened again in the next one.
func split(text string, limit, room int) []string { return splitUpTo(math.MaxInt, text, limit, room) }

// splitUpTo is split, but that it ends after most chunks: the rest of the text is lost.
func splitUpTo(most int, text string, limit, room int) []string {
	if fitsWhole(text, limit, room) {
		return []string{text}
	}
	s := splitter{text: text, limit: limit, room: room, fences: findFences(text, limit, room)}
	for s.text != "" && len(s.chunks) < most {
		s.next()
	}
	if s.chunks == nil {
		return []string{""}
	}
	return s.chunks
}

// fitsWhole reports that split has nothing to do.
func fitsWhole(text string, limit, room int) bool {
	return (limit <= 0 || len(text) <= limit || utf8.RuneCountInString(text) <= limit) && (6*len(text)+2 <= room || wire.StringLen(text) <= room)
}

type splitter struct {
	text        string // what is left
	at          int    // how much of the text is not
	limit, room int
	fences      []fence // those that end in what is left
	chunks      []string
}

// next takes a chunk from what is left.
func (s *splitter) next() {
	for len(s.fences) > 0 && s.fences[0].end <= s.at {
		s.fences = s.fences[1:]
	}
	head := ""
	if len(s.fences) > 0 && s.fences[0].body <= s.at {
		head = s.fences[0].open
	}
	n := s.longest(head)
	if n == len(s.text) {
		s.take(head+s.text, n)
		return
	}
	if i := s.broken(n); i >= 0 {
		f := s.fences[i]
		start := f.start - s.at
		if start < n/2 && s.takeCode(head, f) {
			return
		}
		if start > 0 {
			s.takeText(head, start)
			return
		}
		s.fences = s.fences[i+1:] // there is no room for it: it is text like any other
	}
	s.takeText(head, spare(s.text, n, cut(s.text, n)))
}

// longest is how much of what is left fits beside the strings.
func (s *splitter) longest(beside ...string) int {
	limit, room := s.limit, s.room
	for _, b := range beside {
		room -= wire.StringLen(b) - 2
		if limit > 0 {
			limit -= utf8.RuneCountInString(b)
		}
	}
	return longest(s.text, limit, room)
}

// broken is the index of the fenced code that a cut at n would be inside of, or -1.
func (s *splitter) broken(n int) int {
	for i, f := range s.fences {
		if f.end > s.at+n {
			if f.start < s.at+n {
				return i
			}
			break
		}
	}
	return -1
}

// takeText ends a chunk at n, without the white space there.
func (s *splitter) takeText(head string, n int) {
	chunk := strings.TrimRight(s.text[:n], white)
	if chunk != "" {
		chunk = head + chunk
	}
	s.take(chunk, s.skip(n))
}

// skip is n and the white space from there, but not the indent of a fence.
func (s *splitter) skip(n int) int {
	to := n + len(s.text[n:]) - len(strings.TrimLeft(s.text[n:], white))
	for _, f := range s.fences {
		if f.body > s.at+to {
			return max(n, min(to, f.start-s.at))
		}
	}
	return to
}

// takeCode ends a chunk within fenced code, and the code with it; false if
// there is no room for some of it.
func (s *splitter) takeCode(head string, f fence) bool {
	n := min(cut(s.text, s.longest(head, "\n", f.close)), f.last-s.at)
	if n <= max(f.body-s.at, 0) {
		return false
	}
	code := s.text[:n]
	skip := n
	if code[n-1] != '\n' {
		skip += len(lineBreak(s.text[n:]))
	}
	if s.at+skip >= f.last {
		skip = s.skip(f.end - s.at) // it is closed here already
	}
	if strings.Trim(code, white) == "" {
		s.take("", skip)
		return true
	}
	if code[n-1] != '\n' {
		code += "\n"
	}
	s.take(head+code+f.close, skip)
	return true
}

// take adds the chunk, if it is not empty, and leaves out n bytes of the text.
func (s *splitter) take(chunk string, n int) {
	if chunk != "" {
		s.chunks = append(s.chunks, chunk)
	}
	s.text = s.text[n:]
	s.at += n
}

// longest is the length in bytes of the longest prefix of whole graphemes that
// fits. Of a grapheme that alone is too large it is as much as fits; at least
// one code point.
func longest(text string, limit, room int) int {
	// No more than this can fit, and what ends there does not: one byte of text
	// takes at least one of room, one code point at most four of text. Looking
	// no further keeps split linear whatever the graphemes are.
	window := room
	if limit > 0 && limit < room {
		window = min(window, 4*limit+4)
	}
	text = text[:min(len(text), window)]
	n, runes, size := 0, 0, 2
	for n < len(text) {
		cluster := grapheme(text[n:])
		runes += utf8.RuneCountInString(cluster)
		size += wire.StringLen(cluster) - 2
		if limit > 0 && runes > limit || size > room {
			break
		}
		n += len(cluster)
	}
	if n > 0 {
		return n
	}
	for runes, size = 0, 2; n < len(text); {
		_, w := utf8.DecodeRuneInString(text[n:])
		runes++
		size += wire.StringLen(text[n:n+w]) - 2
		if n > 0 && (limit > 0 && runes > limit || size > room) {
			break
		}
		n += w
	}
	return n
}

// grapheme is the first one of s, which is not empty.
func grapheme(s string) string {
	if s[0] < utf8.RuneSelf && s[0] != '\r' && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1]
	}
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(s, -1)
	return cluster
}

// cut finds the best place to end a chunk of at most n bytes within its second
// half; the text is longer.
func cut(text string, n int) int {
	half := n / 2
	if lineBreak(text[n:]) != "" {
		return n
	}
	if i := strings.LastIndexByte(text[:n], '\n'); i >= half {
		return i + 1
	}
	for i := n; i > half; i-- {
		if sentenceEnds(text, i) {
			return i
		}
	}
	if text[n] == ' ' {
		return n
	}
	if i := strings.LastIndexByte(text[:n], ' '); i >= half {
		return i + 1
	}
	return n
}

// lineBreak is the one that text begins with.
func lineBreak(text string) string {
	if strings.HasPrefix(text, "\n") || strings.HasPrefix(text, "\r\n") {
		return text[:1+strings.IndexByte(text, '\n')]
	}
	return ""
}

const (
	stops     = ".!?…"
	wideStops = "。！？" // no space comes after these
	closers   = "\"')]}*_”’»」』）】》"
)

// sentenceEnds reports whether a sentence ends in front of text[i:], which is
// not empty; a quote or bracket may close behind the stop.
func sentenceEnds(text string, i int) bool {
	space := text[i] == ' '
	if !utf8.RuneStart(text[i]) || !space && text[i-1] < utf8.RuneSelf && strings.IndexByte(closers, text[i-1]) < 0 {
		return false
	}
	next, _ := utf8.DecodeRuneInString(text[i:])
	if strings.ContainsRune(closers+wideStops, next) {
		return false
	}
	const most = 4 // so that a line of brackets does not take quadratic time
	for range most {
		last, w := utf8.DecodeLastRuneInString(text[:i])
		switch {
		case strings.ContainsRune(wideStops, last), space && strings.ContainsRune(stops, last):
			return true
		case i == w || !strings.ContainsRune(closers, last):
			return false
		}
		i -= w
	}
	return false
}

// spare moves a cut of a chunk of at most n bytes in front of the code span,
// link or URL that it is inside of, if that starts in the second half.
func spare(text string, n, at int) int {
	start := strings.LastIndexByte(text[:at], '\n') + 1
	line := text[start:min(len(text), at+n)]
	if i := strings.IndexByte(line[at-start:], '\n'); i >= 0 {
		line = line[:at-start+i]
	}
	found := at
	spans(line, func(from, to int) {
		if from += start; from >= max(n/2, 1) && from < found && start+to > at {
			found = from
		}
	})
	return found
}

// spans calls fn for each code span, link and URL of a line.
func spans(line string, fn func(from, to int)) {
	var brackets []int
	var open [16]bool // no run of so many backticks comes any more
	parens := true    // a closing parenthesis comes
	for i := 0; i < len(line); {
		end := i + 1
		switch c := line[i]; {
		case c == '\\':
			end++
		case c == '`':
			end = codeEnd(line, i, &open)
			fn(i, end)
		case c == '[':
			brackets = append(brackets, i)
		case c == ']' && len(brackets) > 0:
			from := brackets[len(brackets)-1]
			brackets = brackets[:len(brackets)-1]
			if !parens || !strings.HasPrefix(line[i+1:], "(") {
				break
			}
			if n := strings.IndexByte(line[i:], ')'); n > 0 {
				end = i + n + 1
				fn(from, end)
			} else {
				parens = false
			}
		case c == 'h' && (strings.HasPrefix(line[i:], "http://") || strings.HasPrefix(line[i:], "https://")):
			if end = len(line); strings.ContainsAny(line[i:], " \t<>]") {
				end = i + strings.IndexAny(line[i:], " \t<>]")
			}
			fn(i, end)
		}
		i = end
	}
}

// codeEnd is where the code span ends that starts at i, or else the backticks there.
func codeEnd(line string, i int, open *[16]bool) int {
	run := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
	if run >= len(open) || open[run] {
		return i + run
	}
	for at := i + run; at < len(line); {
		next := strings.IndexByte(line[at:], '`')
		if next < 0 {
			break
		}
		at += next
		n := len(line[at:]) - len(strings.TrimLeft(line[at:], "`"))
		if at += n; n == run {
			return at
		}
	}
	open[run] = true
	return i + run
}
