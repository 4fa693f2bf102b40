package irc

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		limit      int
		want       []string
	}{
		{"empty", " \n\t\n", 20, nil},
		{"fits", "exactly ten", 11, []string{"exactly ten"}},
		{"words", "aaa bbb ccc ddd", 8, []string{"aaa bbb", "ccc ddd"}},
		{"space over the edge", "aaaa bbbb", 4, []string{"aaaa", "bbbb"}},
		{"long word", "aaaaaaaaaa", 4, []string{"aaaa", "aaaa", "aa"}},
		{"short word first", "a bbbbbbbbbbbb", 8, []string{"a", "bbbbbbbb", "bbbb"}},
		{"breaks", "a\rb\r\nc\n\nd\u2028e", 9, []string{"a", "b", "c", "d", "e"}},
		{"indent", "if:\n    go", 20, []string{"if:", "    go"}},
		{"cluster", "👨‍👩‍👧👨‍👩‍👧", 18, []string{"👨‍👩‍👧", "👨‍👩‍👧"}},
		{"cluster over limit", "é👨‍👩‍👧", 8, []string{"é", "👨‍", "👩‍", "👧"}},
		{"CJK", "浮橋浮橋", 7, []string{"浮橋", "浮橋"}},
		{"controls", "a\x00b\x02c\x01", 9, []string{"abc"}},
		{"invalid", "a\xffb", 9, []string{"a\uFFFDb"}},
	} {
		if got := split(c.text, c.limit); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "plain words here", "👩‍👩‍👧‍👦👍🏽 \r\n x", "浮橋\u00a0浮橋", "a\xff\x03" + "04red", strings.Repeat("e\u0301", 50), strings.Repeat(" ", 40) + "x", "http://example.net/a-b/c?d=e"} {
		f.Add(s, 10)
		f.Add(s, 400)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < minLimit || limit > 1000 {
			return
		}
		lines := split(text, limit)
		for _, line := range lines {
			if len(line) > limit || strings.TrimSpace(line) == "" || !utf8.ValidString(line) || strings.ContainsAny(line, "\r\n\x00\x01") {
				t.Fatalf("bad line %q at limit %d of %q", line, limit, text)
			}
		}
		// Formatting goes line by line, as split does it: a colour at a line's end has no digits.
		var want strings.Builder
		for line := range strings.SplitSeq(lineBreaks.Replace(text), "\n") {
			want.WriteString(nonSpace(plain(strings.ToValidUTF8(line, "\uFFFD"))))
		}
		if got := nonSpace(strings.Join(lines, "")); got != want.String() {
			t.Fatalf("lost text: %q became %q", text, lines)
		}
	})
}

// nonSpace is s without what split may lose.
func nonSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}
