package render

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// fence is fenced code: where its first line starts, its code starts, its last
// line starts and ends. What is not closed ends with the text.
type fence struct {
	start, body, last, end int
	open, close            string // the lines that open it again and close it
}

// findFences finds the fenced code that is worth keeping whole: its fences take
// at most a quarter of a chunk.
func findFences(text string, limit, room int) []fence {
	var out []fence
	open := false
	for at := 0; at < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i
		}
		line := text[at:end]
		next := min(end+1, len(text))
		switch {
		case !open:
			if f, ok := opens(line); ok {
				f.start, f.body, f.last, f.end = at, next, len(text), len(text)
				out, open = append(out, f), true
			}
		case closes(line, out[len(out)-1].close):
			out[len(out)-1].last, out[len(out)-1].end, open = at, end, false
		case strings.Count(line[:quoted(line)], ">") < strings.Count(out[len(out)-1].close, ">"):
			out[len(out)-1].last, out[len(out)-1].end, open = at, at, false // the quote that it is in ends
			continue
		}
		at = next
	}
	return slices.DeleteFunc(out, func(f fence) bool {
		return limit > 0 && utf8.RuneCountInString(f.open+f.close) > limit/4 || wire.StringLen(f.open+f.close) > room/4
	})
}

// opens reports whether the line opens fenced code. It may be in a quote and
// the first line of a list item.
func opens(line string) (f fence, ok bool) {
	i := quoted(line)
	for {
		item := len(line[i:]) - len(strings.TrimLeft(line[i:], "0123456789"))
		if i+item+1 >= len(line) || line[i+item+1] != ' ' {
			break
		}
		if c := line[i+item]; c != '.' && c != ')' && (item > 0 || c != '-' && c != '*' && c != '+') {
			break
		}
		i += item + 1
		i += quoted(line[i:])
	}
	mark := fenced("", strings.TrimRight(line[i:], white))
	if mark == "" {
		return f, false
	}
	prefix := strings.Map(func(r rune) rune {
		if r == '>' || r == '\t' {
			return r
		}
		return ' '
	}, line[:i])
	return fence{open: prefix + strings.TrimRight(line[i:], white) + "\n", close: prefix + mark}, true
}

// closes reports whether the line closes the fenced code that is closed so.
func closes(line, with string) bool {
	return fenced(with[quoted(with):], line[quoted(line):]) == ""
}

// quoted is the length of the indent and the marks of quotes that the line begins with.
func quoted(line string) int { return len(line) - len(strings.TrimLeft(line, " \t>")) }

// fenced is the fence that code is in behind the line, if before it it is in
// the fence; "" = none.
func fenced(fence, line string) string {
	rest := strings.TrimLeft(line, "`")
	if rest == line {
		rest = strings.TrimLeft(line, "~")
	}
	run := line[:len(line)-len(rest)]
	switch {
	case len(run) < 3:
		return fence
	case fence == "" && (run[0] == '~' || !strings.Contains(rest, "`")):
		return run
	case fence != "" && strings.HasPrefix(run, fence) && strings.Trim(rest, white) == "":
		return ""
	}
	return fence
}
