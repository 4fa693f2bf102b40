package render

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const family = "👩‍👩‍👧" // one grapheme of five code points, 18 bytes

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name  string
		text  string
		limit int
		room  int
		want  []string
	}{
		{"empty", "", 0, 100, []string{""}},
		{"whole", "one two", 0, 100, []string{"one two"}},
		{"wholeKeepsWhiteSpace", " one \n", 6, 100, []string{" one \n"}},
		{"wholeAtTheLimit", "żółć", 4, 100, []string{"żółć"}},
		{"line", "aa bb\ncc dd", 8, 100, []string{"aa bb", "cc dd"}},
		{"sentence", "Aa bb. Cc dd", 10, 100, []string{"Aa bb.", "Cc dd"}},
		{"word", "aaaa bbbb cccc", 11, 100, []string{"aaaa bbbb", "cccc"}},
		{"wordEndsAtTheLimit", "aaaa bbbb", 4, 100, []string{"aaaa", "bbbb"}},
		{"noWhiteSpace", "aaaabbbbcc", 4, 100, []string{"aaaa", "bbbb", "cc"}},
		{"lineTooEarly", "a\nbbbbbbbbbb", 6, 100, []string{"a\nbbbb", "bbbbbb"}},
		{"endKeepsWhiteSpace", "aaaa bb  ", 5, 100, []string{"aaaa", "bb  "}},
		{"onlyWhiteSpace", "          ", 4, 100, []string{""}},
		{"grapheme", "ab" + family + "cd", 6, 100, []string{"ab", family + "c", "d"}},
		{"lineEnd", "ab\r\ncd", 3, 100, []string{"ab", "cd"}},
		{"graphemeTooLarge", family, 2, 100, []string{"👩\u200d", "👩\u200d", "👧"}},
		{"room", "aaaabbbb", 0, 6, []string{"aaaa", "bbbb"}},
		{"roomOfEscapes", "\"\"\"\"", 0, 6, []string{`""`, `""`}},
		{"roomOfControls", "\x01\x01\x01", 0, 14, []string{"\x01\x01", "\x01"}},
		{"roomOfRunes", "żżż", 0, 6, []string{"żż", "ż"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := split(c.text, c.limit, c.room)
			if strings.Join(got, "|") != strings.Join(c.want, "|") || len(got) != len(c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Texts that tempt an algorithm to look at the same bytes over and over.
func TestSplitIsLinear(t *testing.T) {
	for name, text := range map[string]string{
		"noSpaces":       strings.Repeat("x", 1<<20),
		"oneGrapheme":    "a" + strings.Repeat("\u0301", 1<<19),
		"joinedEmoji":    strings.Repeat("👩\u200d", 1<<17),
		"flags":          strings.Repeat("🇩", 1<<18),
		"spaces":         strings.Repeat(" ", 1<<20),
		"spaceThenWords": strings.Repeat(" ", 1<<19) + strings.Repeat("ab ", 1<<18),
		"controls":       strings.Repeat("\x01", 1<<20),
		"smallAndGiant":  strings.Repeat("a"+strings.Repeat("\u0301", 300), 1<<11),
		"newlines":       strings.Repeat("\n", 1<<20),
	} {
		for _, c := range []struct{ limit, room int }{{0, wire.MaxFrame}, {0, minRoom}, {1, wire.MaxFrame}, {100, wire.MaxFrame}} {
			text := text
			if c.limit == 1 {
				text = strings.ToValidUTF8(text[:1<<16], "")
			}
			began := time.Now()
			chunks := split(text, c.limit, c.room)
			// A quadratic walk over a million bytes takes minutes.
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s, limit %d, room %d: took %v", name, c.limit, c.room, took)
			}
			checkSplit(t, text, c.limit, c.room, chunks)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"", "one two", "Aa bb. Cc dd\nee", strings.Repeat("x", 300), "a" + strings.Repeat("\u0301", 100), family + family, "\x00\x01\"\\", "\xff\xc3 \xe2\x82",
		" \n\t\r ", "🇩🇪🇫🇷🇵🇱", " \u0301 \u0301", "\r\n\r\n",
	} {
		for _, limit := range []int{0, 1, 3, 50} {
			f.Add(s, limit, 64, byte(1))
			f.Add(s, limit, 100, byte(40))
		}
	}
	f.Fuzz(func(t *testing.T, s string, limit, room int, times byte) {
		if len(s) > 4096 || len(s)*int(times) > 1<<17 {
			return // larger than is of use
		}
		limit = max(0, limit%5000)
		room = minRoom + max(0, room%5000)
		text := strings.Repeat(s, int(times))
		checkSplit(t, text, limit, room, split(text, limit, room))
	})
}

// checkSplit checks what split promises of any text.
func checkSplit(t *testing.T, text string, limit, room int, chunks []string) {
	t.Helper()
	if len(chunks) == 0 {
		t.Fatal("no chunk")
	}
	valid := utf8.ValidString(text)
	rest := text
	for i, c := range chunks {
		if limit > 0 && utf8.RuneCountInString(c) > limit {
			t.Fatalf("chunk %d has %d code points, at most %d are allowed", i, utf8.RuneCountInString(c), limit)
		}
		if n := wire.StringLen(c); n > room {
			t.Fatalf("chunk %d takes %d bytes of %d", i, n, room)
		}
		if valid && !utf8.ValidString(c) {
			t.Fatalf("chunk %d is broken UTF-8: %q", i, c)
		}
		if c == "" && len(chunks) > 1 {
			t.Fatalf("chunk %d is empty", i)
		}
		if !strings.HasPrefix(rest, c) { // else the white space at the cut comes first
			rest = strings.TrimLeft(rest, white)
		}
		after, ok := strings.CutPrefix(rest, c)
		if !ok {
			t.Fatalf("chunk %d is %.80q, the text goes on with %.80q", i, c, rest)
		}
		rest = after
	}
	if strings.Trim(rest, white) != "" {
		t.Fatalf("%.80q is lost", rest)
	}
}
