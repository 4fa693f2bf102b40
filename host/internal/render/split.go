package render

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

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
		if chunk := strings.TrimRight(text[:n], " \n\t\r"); chunk != "" {
			chunks = append(chunks, chunk)
		}
		text = strings.TrimLeft(text[n:], " \n\t\r")
	}
	if chunks == nil {
		return []string{""}
	}
	return chunks
}

// longest is the length in bytes of the longest prefix of whole graphemes that
// fits; at least one code point.
func longest(text string, limit, room int) int {
	n, runes, size := 0, 0, 2
	state := -1
	for rest := text; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		runes += utf8.RuneCountInString(cluster)
		size += wire.StringLen(cluster) - 2
		if limit > 0 && runes > limit || size > room {
			break
		}
		n += len(cluster)
	}
	if n == 0 { // a grapheme larger than a whole chunk
		_, n = utf8.DecodeRuneInString(text)
	}
	return n
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
