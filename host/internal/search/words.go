// Package search says what of a message can be searched for, and what a query
// asks for. It reads nothing: the store keeps the index.
package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord bounds a word in bytes: what is longer, such as base64, counts by its
// beginning.
const maxWord = 64

// scanner divides a text into words, folded: lower case, without diacritics. A
// word is letters, digits and marks; of scripts that put no spaces between words
// every character is one, so that any part of a sentence is found as a phrase.
type scanner struct {
	text     string
	at       int
	from, to int // of the word in text
	word     []byte
}

// next finds the next word; false at the end.
func (s *scanner) next() bool {
	s.word = s.word[:0]
	for s.at < len(s.text) {
		c := s.text[s.at]
		if c < utf8.RuneSelf {
			if w := asciiWord[c]; w != 0 {
				s.add(1, w)
			} else if s.ended(1) {
				return true
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s.text[s.at:])
		switch {
		case alone(r):
			if len(s.word) > 0 {
				return true
			}
			s.from, s.to = s.at, s.at+n
			s.word = utf8.AppendRune(s.word, r)
			s.at += n
			return true
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			s.addFolded(r, n)
		case r == '\u00ad' || r == '\u200d' || r == '\u200c': // within words, and not seen
			if len(s.word) > 0 {
				s.to = s.at + n
			}
			s.at += n
		default:
			if s.ended(n) {
				return true
			}
		}
	}
	return len(s.word) > 0
}

// asciiWord is what a byte counts as in a word; 0 = it ends one.
var asciiWord = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z':
			t[c] = byte(c)
		case 'A' <= c && c <= 'Z':
			t[c] = byte(c) + 'a' - 'A'
		}
	}
	return t
}()

// ended passes what is between words; true if one ends here.
func (s *scanner) ended(n int) bool {
	s.at += n
	return len(s.word) > 0
}

// add takes n bytes of text that count as what is given.
func (s *scanner) add(n int, as ...byte) {
	if len(s.word) == 0 {
		s.from = s.at
	}
	if len(s.word)+len(as) <= maxWord {
		s.word = append(s.word, as...)
	}
	s.at += n
	s.to = s.at
}

func (s *scanner) addFolded(r rune, n int) {
	var buf [16]byte
	as := buf[:0]
	if d := norm.NFKD.PropertiesString(s.text[s.at : s.at+n]).Decomposition(); d != nil {
		for len(d) > 0 {
			part, size := utf8.DecodeRune(d)
			as = fold(as, part)
			d = d[size:]
		}
	} else {
		as = fold(as, r)
	}
	if len(as) == 0 && len(s.word) == 0 { // a mark on nothing
		s.at += n
		return
	}
	s.add(n, as...)
}

// fold appends what a character counts as; nothing for a diacritic, or what is no
// part of a word.
func fold(dst []byte, r rune) []byte {
	switch {
	case 0x300 <= r && r <= 0x36f, 0x591 <= r && r <= 0x5c7, 0x64b <= r && r <= 0x65f, r == 0x670, r == 0x640:
		return dst
	case !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r):
		return dst
	}
	switch r = unicode.ToLower(r); r {
	case 'ß':
		return append(dst, "ss"...)
	case 'æ':
		return append(dst, "ae"...)
	case 'œ':
		return append(dst, "oe"...)
	case 'ø':
		r = 'o'
	case 'ł':
		r = 'l'
	case 'đ', 'ð':
		r = 'd'
	case 'ı':
		r = 'i'
	case 'ς':
		r = 'σ'
	}
	return utf8.AppendRune(dst, r)
}

// alone reports a character of a script that is written without spaces.
func alone(r rune) bool {
	if r < 0x0e00 {
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && !unicode.IsPunct(r) && !unicode.IsSymbol(r)
}

// Words is a text as the index keeps it: its words, with a space between any two.
// Of most bytes of text it looks at no more.
func Words(text string, most int) string {
	if len(text) > most {
		text = text[:most] // what it cuts in two is no word that anybody looks for
	}
	var out strings.Builder
	out.Grow(len(text))
	s := scanner{text: text}
	for s.next() {
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		out.Write(s.word)
	}
	return out.String()
}
