package render

import (
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
// always at least one chunk.
func split(text string, limit, room int) []string {
	if (limit <= 0 || len(text) <= limit || utf8.RuneCountInString(text) <= limit) && (6*len(text)+2 <= room || wire.StringLen(text) <= room) {
		return []string{text}
	}
	var chunks []string
	for text != "" {
		n := longest(text, limit, room)
		if n < len(text) {
			n = cut(text[:n], text[n:])
		}
		chunk := text[:n]
		if text = text[n:]; text != "" {
			chunk, text = strings.TrimRight(chunk, white), strings.TrimLeft(text, white)
		}
		if chunk != "" {
			chunks = append(chunks, chunk)
		}
	}
	if chunks == nil {
		return []string{""}
	}
	return chunks
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

// cut finds the best place to end a chunk within its second half.
func cut(chunk, rest string) int {
	half := len(chunk) / 2
	if i := strings.LastIndexByte(chunk, '\n'); i >= half {
		return i + 1
	}
	for i := len(chunk) - 2; i >= half; i-- {
		if chunk[i+1] == ' ' && strings.IndexByte(".!?", chunk[i]) >= 0 {
			return i + 1
		}
	}
	if rest[0] == ' ' || rest[0] == '\n' {
		return len(chunk)
	}
	if i := strings.LastIndexByte(chunk, ' '); i >= half {
		return i + 1
	}
	return len(chunk)
}
