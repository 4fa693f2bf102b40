package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Piece is a piece of a snippet: what was looked for, or what is around it.
type Piece struct {
	Text  string
	Match bool
}

const (
	snippetRunes  = 160
	snippetBefore = 40 // of them before what was looked for
)

// word is a word of a text and where it is.
type word struct {
	folded   string
	from, to int
}

// Snippet is the place of a text where it says what was looked for, on one line,
// in pieces; its beginning if it does not.
func (q *Query) Snippet(text string) []Piece {
	if len(text) > MaxText {
		text = strings.ToValidUTF8(text[:MaxText], "")
	}
	var words []word
	var folded []string
	for s := (scanner{text: text}); s.next(); {
		words = append(words, word{string(s.word), s.from, s.to})
		folded = append(folded, words[len(words)-1].folded)
	}
	hits := make([]bool, len(words))
	first := -1
	for i := range words {
		for _, p := range q.Words {
			if !p.at(folded[i:]) {
				continue
			}
			if first < 0 {
				first = i
			}
			for j := range p.Words {
				hits[i+j] = true
			}
		}
	}
	start := 0
	if first >= 0 {
		start = back(text, words[first].from, snippetBefore)
	}
	end := forth(text, start, snippetRunes)
	return pieces(text, start, end, words, hits)
}

// Brief is the beginning of a text, on one line.
func Brief(text string) string {
	end := forth(text, 0, snippetRunes)
	out := line(text[:end])
	if end < len(text) {
		out += "…"
	}
	return out
}

// back is the place n characters before at, at the beginning of a word.
func back(text string, at, n int) int {
	from := at
	for ; n > 0 && from > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	if from == 0 {
		return 0
	}
	if space := strings.IndexFunc(text[from:at], unicode.IsSpace); space >= 0 {
		from += space
	}
	return from
}

// forth is the place n characters behind at.
func forth(text string, at, n int) int {
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

func pieces(text string, start, end int, words []word, hits []bool) []Piece {
	var out []Piece
	add := func(s string, match bool) {
		if s = line(s); s == "" {
			return
		}
		if n := len(out); n > 0 && out[n-1].Match == match {
			out[n-1].Text += s
			return
		}
		out = append(out, Piece{s, match})
	}
	if start > 0 {
		add("…", false)
	}
	at := start
	for i, w := range words {
		if !hits[i] || w.from < at {
			continue
		}
		if w.from >= end {
			break
		}
		add(text[at:w.from], false)
		at = min(w.to, end)
		add(text[w.from:at], true)
	}
	add(text[at:end], false)
	if end < len(text) {
		add("…", false)
	}
	return out
}

// line makes one line of a text, and leaves out what would not be seen or could
// turn around what is.
func line(s string) string {
	clean := true
	for _, r := range s {
		if r != ' ' && !shown(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !shown(r):
			return -1
		}
		return r
	}, s)
}

func shown(r rune) bool {
	return !unicode.IsControl(r) && (!unicode.IsSpace(r) || r == ' ') && !unicode.Is(unicode.Bidi_Control, r)
}
