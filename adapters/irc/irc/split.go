package irc

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// minLimit is the smallest limit that split accepts: one rune must fit.
const minLimit = utf8.UTFMax

// split turns text into lines of at most limit bytes. Line breaks of the text
// stay, blank lines go, and longer ones are cut between words; a word that is
// longer itself is cut between characters as a reader counts them. Nothing but
// white space is lost, and nothing in a result can end a line early: control
// characters are taken out first.
func split(text string, limit int) []string {
	limit = max(limit, minLimit)
	var lines []string
	for line := range strings.SplitSeq(lineBreaks.Replace(text), "\n") {
		line = strings.TrimRightFunc(plain(strings.ToValidUTF8(line, "\uFFFD")), unicode.IsSpace)
		for line != "" {
			at := cutPoint(line, limit)
			if head := strings.TrimRightFunc(line[:at], unicode.IsSpace); head != "" {
				lines = append(lines, head)
			}
			if line = line[at:]; len(lines) > 0 && at > 0 {
				line = strings.TrimLeftFunc(line, unicode.IsSpace)
			}
		}
	}
	return lines
}

// lineBreaks brings all that ends a line, or would in a chat window, to "\n".
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// cutPoint is where to cut line so that the first part fits in limit bytes:
// after the last white space, if that leaves no line under half full; else where
// Unicode allows a line to break; else between characters; else between runes.
func cutPoint(line string, limit int) int {
	if len(line) <= limit {
		return len(line)
	}
	var space, breakable, cluster int // the last cut points that fit
	rest, state := line, -1
	for used := 0; rest != ""; {
		var c string
		var boundaries int
		c, rest, boundaries, state = uniseg.StepString(rest, state)
		used += len(c)
		blank := strings.TrimSpace(c) == ""
		// White space at the cut is dropped, so it may hang over the edge.
		if used > limit && (!blank || used-len(c) > limit) {
			break
		}
		if used > limit {
			return used - len(c)
		}
		cluster = used
		if boundaries&uniseg.MaskLine != uniseg.LineDontBreak {
			breakable = used
			if blank {
				space = used
			}
		}
	}
	switch {
	case space >= limit/2 && space > 0:
		return space
	case breakable > 0:
		return breakable
	case cluster > 0:
		return cluster
	}
	at := 0
	for at < len(line) {
		_, size := utf8.DecodeRuneInString(line[at:])
		if at+size > limit {
			break
		}
		at += size
	}
	return at
}

// capLines keeps the first most lines; one more then says how many it cut.
func capLines(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	return append(lines[:most:most], fmt.Sprintf("… (%d more lines cut)", len(lines)-most))
}
