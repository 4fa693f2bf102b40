package render

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

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
		{"lineEndsAtTheLimit", "aa\nbbb\ncc", 6, 100, []string{"aa\nbbb", "cc"}},
		{"sentenceEndsAtTheLimit", "Aa. Bb cc. Dd", 10, 100, []string{"Aa. Bb cc.", "Dd"}},
		{"sentenceInQuotes", `He said "aa bb." Cc dd`, 19, 100, []string{`He said "aa bb."`, "Cc dd"}},
		{"sentenceInBold", "a **bb cc.** Dd ee", 16, 100, []string{"a **bb cc.**", "Dd ee"}},
		{"sentenceOfDots", "Aa bb… Cc dd", 10, 100, []string{"Aa bb…", "Cc dd"}},
		{"sentenceWithoutSpace", "ああああ。いい「うう。」えええ", 14, 100, []string{"ああああ。いい「うう。」", "えええ"}},
		{"sentencesOfMarks", "ああ！？いいいいい", 6, 100, []string{"ああ！？", "いいいいい"}},
		{"notASentence", "aa 1.5 bbbb cc", 8, 100, []string{"aa 1.5", "bbbb cc"}},
		{"codeSpan", "aaaa bbbb `cc dd ee` ff", 16, 100, []string{"aaaa bbbb", "`cc dd ee` ff"}},
		{"codeSpanOfTwo", "aaaa bbbb ``c` dd ee`` ff", 18, 100, []string{"aaaa bbbb", "``c` dd ee`` ff"}},
		{"codeSpanInTheFirstHalf", "a `bb cc dd ee ff gg`", 12, 100, []string{"a `bb cc dd", "ee ff gg`"}},
		{"notACodeSpan", "aaaa bbbb `cc dd ee", 16, 100, []string{"aaaa bbbb `cc dd", "ee"}},
		{"link", "aaaa bbbb [cc dd](http://e f) gg", 20, 100, []string{"aaaa bbbb", "[cc dd](http://e f)", "gg"}},
		{"linkOfAnImage", "aaaa bbbb [![c c](d)](e f) gg", 18, 100, []string{"aaaa bbbb", "[![c c](d)](e f)", "gg"}},
		{"url", "aaaa bbbb http://a.b/cccc dd", 20, 100, []string{"aaaa bbbb", "http://a.b/cccc dd"}},
		{"urlTooLong", "http://a.b/cccc", 12, 100, []string{"http://a.b/c", "ccc"}},
	} {
		t.Run(c.name, func(t *testing.T) { compare(t, split(c.text, c.limit, c.room), c.want) })
	}
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSplitFences(t *testing.T) {
	for _, c := range []struct {
		name  string
		text  string
		limit int
		want  []string
	}{
		{"before", "Some words of text.\nMore.\n```go\naaaaaaaa\nbbbbbbbb\n```\nend", 42,
			[]string{"Some words of text.\nMore.", "```go\naaaaaaaa\nbbbbbbbb\n```\nend"}},
		{"within", "a\n```go\naaaaaaaaaa\n\tbbbbbbbbb\n\tccccccccc\n```\nend", 40,
			[]string{"a\n```go\naaaaaaaaaa\n\tbbbbbbbbb\n```", "```go\n\tccccccccc\n```\nend"}},
		{"often", "```\naaaaaaaaaa\nbbbbbbbbbb\ncccccccccc\ndddddddddd\neeeeeeeeee\n```", 32,
			[]string{"```\naaaaaaaaaa\nbbbbbbbbbb\n```", "```\ncccccccccc\ndddddddddd\n```", "```\neeeeeeeeee\n```"}},
		{"tildesWithInfo", "~~~~ a `b`\naaaaaaaaaaaaaaaaaaaa\n```\n~~~\nbbbbbbbbbbbbbbbbbbbbbbbbb\n~~~~", 64,
			[]string{"~~~~ a `b`\naaaaaaaaaaaaaaaaaaaa\n```\n~~~\n~~~~", "~~~~ a `b`\nbbbbbbbbbbbbbbbbbbbbbbbbb\n~~~~"}},
		{"longLine", "```\naaaaaaaaaa bbbbbbbbbb cccccccccc\n```", 36,
			[]string{"```\naaaaaaaaaa bbbbbbbbbb \n```", "```\ncccccccccc\n```"}},
		{"notClosed", "```\naaaaaaaaaa\nbbbbbbbbbb\ncccccccccc\n", 32,
			[]string{"```\naaaaaaaaaa\nbbbbbbbbbb\n```", "```\ncccccccccc\n"}},
		{"behind", "```\naaaaaaaaaa\n```\nbbbbb ccccc ddddd", 32,
			[]string{"```\naaaaaaaaaa\n```", "bbbbb ccccc ddddd"}},
		{"inAList", "- a\n  ```\n  aaaaaaaaaa\n  bbbbbbbbbb\n  cccccccccc\n  ```\n- b", 48,
			[]string{"- a\n  ```\n  aaaaaaaaaa\n  bbbbbbbbbb\n  ```", "  ```\n  cccccccccc\n  ```\n- b"}},
		{"inAnItem", "1. ```\n   aaaaaaaaaa\n   bbbbbbbbbb\n   cccccccccc\n   ```", 54,
			[]string{"1. ```\n   aaaaaaaaaa\n   bbbbbbbbbb\n   ```", "   ```\n   cccccccccc\n   ```"}},
		{"inAQuote", "> ```\n> aaaaaaaaaa\n> bbbbbbbbbb\n> cccccccccc\n> ```", 44,
			[]string{"> ```\n> aaaaaaaaaa\n> bbbbbbbbbb\n> ```", "> ```\n> cccccccccc\n> ```"}},
		{"quoteEnds", "> ```\n> aaaaaaaaaa\nbbbbbbbbbb\ncccccccccc\ndddddddddd", 44,
			[]string{"> ```\n> aaaaaaaaaa\nbbbbbbbbbb\ncccccccccc", "dddddddddd"}},
		{"indentIsKept", "Some words of text here.\n\n  ```\n  aaaaaaaaaa\n  bbbbbb\n  ```", 44,
			[]string{"Some words of text here.", "  ```\n  aaaaaaaaaa\n  bbbbbb\n  ```"}},
		{"lineBreaks", "```\r\naaaaaaaaaa\r\nbbbbbbbbbb\r\ncccccccccc\r\n```\r\n", 34,
			[]string{"```\r\naaaaaaaaaa\r\nbbbbbbbbbb\r\n```", "```\ncccccccccc\r\n```\r\n"}},
		{"lineEndsAtTheLimit", "```\naaaaaaaaaa\nbbbbbbbbbb\n\tcccccccccc\n```", 29,
			[]string{"```\naaaaaaaaaa\nbbbbbbbbbb\n```", "```\n\tcccccccccc\n```"}},
		{"longerFenceCloses", "```\naaaaaaaaaa\nbbbbbbbbbb\n```````\ncc", 32,
			[]string{"```\naaaaaaaaaa\nbbbbbbbbbb\n```", "cc"}},
		{"endsAtTheLimit", "```\naaaaaaaaaa\nbbbbbbbbbb\n```       \ncc", 29,
			[]string{"```\naaaaaaaaaa\nbbbbbbbbbb\n```", "cc"}},
		{"noRoomForFences", "```a long info string\naaaaaaaaaa\n```", 24,
			[]string{"```a long info string", "aaaaaaaaaa\n```"}},
		{"inText", "aaaa bbbb ```cc dd``` eeee ffff gggg", 32,
			[]string{"aaaa bbbb ```cc dd``` eeee ffff", "gggg"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := split(c.text, c.limit, 1000)
			compare(t, got, c.want)
			checkSplit(t, c.text, c.limit, 1000, got)
		})
	}
}

// Code that is cut is the same code in the chunks, and nothing else becomes code.
func TestSplitKeepsCode(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		text := document(r)
		limit := 100 + r.Intn(400)
		chunks := split(text, limit, 5000)
		checkSplit(t, text, limit, 5000, chunks)
		got := ""
		for _, c := range chunks {
			got += codeOf(c)
		}
		if want := codeOf(text); squeezed(got) != squeezed(want) {
			t.Fatalf("seed %d, limit %d: the code\n%q\nbecomes\n%q\nin %q", seed, limit, want, got, chunks)
		}
	}
}

// document is Markdown with much code in it.
func document(r *rand.Rand) string {
	var b strings.Builder
	words := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = []string{"word", "`code span`", "[a link](https://example.org/x)", "Ends.", "https://example.org/y", "so，on。", "é"}[r.Intn(7)]
		}
		return strings.Join(out, " ")
	}
	for range 3 + r.Intn(10) {
		switch fence := []string{"```", "~~~", "````"}[r.Intn(3)]; r.Intn(4) {
		case 0:
			b.WriteString(words(1+r.Intn(60)) + "\n\n")
		case 1:
			b.WriteString("- " + words(1+r.Intn(9)) + "\n- " + words(1+r.Intn(9)) + "\n\n")
		default:
			b.WriteString(fence + []string{"", "go", " some info"}[r.Intn(3)] + "\n")
			for range r.Intn(30) {
				b.WriteString(strings.Repeat(" ", r.Intn(9)) + strings.Repeat("code; ", r.Intn(9)) + "\n")
			}
			b.WriteString(fence + "\n" + strings.Repeat("\n", r.Intn(2)))
		}
	}
	return b.String()
}

// codeOf is the content of all fenced code.
func codeOf(md string) string {
	var code []byte
	doc := markdown.Parse(text.NewReader([]byte(md)))
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindFencedCodeBlock {
			code = append(code, n.Lines().Value([]byte(md))...)
		}
	}
	return string(code)
}

func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }

// Texts that tempt an algorithm to look at the same bytes over and over.
func TestSplitIsLinear(t *testing.T) {
	plain := timed(func() { split(strings.Repeat("some words. ", 1<<20/12), 0, wire.MaxFrame) })
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
		"closers":        strings.Repeat("。」」」", 1<<15),
		"brackets":       strings.Repeat("[a](b ", 1<<15),
		"backticks":      strings.Repeat("`a``b```", 1<<15),
		"urls":           strings.Repeat("http://", 1<<15),
		"fences":         strings.Repeat("```\n", 1<<16),
		"giantFence":     "```\n" + strings.Repeat("a b\n", 1<<16),
		"fencesOfQuotes": strings.Repeat("> ```\n", 1<<15),
	} {
		for _, c := range []struct{ limit, room int }{{0, wire.MaxFrame}, {0, minRoom}, {1, wire.MaxFrame}, {100, wire.MaxFrame}} {
			text := text
			if c.limit == 1 {
				text = strings.ToValidUTF8(text[:1<<16], "")
			}
			var chunks []string
			took := timed(func() { chunks = split(text, c.limit, c.room) })
			wantLinear(t, fmt.Sprintf("%s, limit %d, room %d", name, c.limit, c.room), took, plain)
			checkLimits(t, text, c.limit, c.room, chunks)
			if !isFence(text) { // there the check is not linear
				checkLossless(t, text, chunks)
			}
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"", "one two", "Aa bb. Cc dd\nee", strings.Repeat("x", 300), "a" + strings.Repeat("\u0301", 100), family + family, "\x00\x01\"\\", "\xff\xc3 \xe2\x82",
		" \n\t\r ", "🇩🇪🇫🇷🇵🇱", " \u0301 \u0301", "\r\n\r\n",
		"```go\ncode\n```\n", "> ~~~\n> a b\n", "- ```\n  a\n\n  ```", "aa [b](c) `d` http://e.f/ 。」", "```\n\n\n", "\t~~~~a\r\n~~~\r\n~~~~~ \r\n",
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
		chunks := split(text, limit, room)
		checkLimits(t, text, limit, room, chunks)
		if !isFence(text) || len(text) < 4096 { // there the check is not linear
			checkLossless(t, text, chunks)
		}
	})
}

// checkSplit checks what split promises of any text.
func checkSplit(t *testing.T, text string, limit, room int, chunks []string) {
	t.Helper()
	checkLimits(t, text, limit, room, chunks)
	checkLossless(t, text, chunks)
}

func checkLimits(t *testing.T, text string, limit, room int, chunks []string) {
	t.Helper()
	if len(chunks) == 0 {
		t.Fatal("no chunk")
	}
	valid := utf8.ValidString(text)
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
	}
}

// checkLossless checks that the chunks are the text, but for white space at the
// cuts and fences there.
func checkLossless(t *testing.T, text string, chunks []string) {
	t.Helper()
	at := map[int]bool{0: true} // where in the text the chunk may begin
	for i, c := range chunks {
		next := map[int]bool{}
		for from := range at {
			after(text, from, c, i > 0, next)
		}
		if len(next) == 0 {
			t.Fatalf("chunk %d is %.80q, the text goes on with %v", i, c, at)
		}
		at = next
	}
	for from := range at {
		if strings.Trim(text[from:], white) == "" {
			return
		}
	}
	t.Fatalf("the text is lost from %v on", at)
}

// after collects where the text may go on after a chunk that begins at from,
// or behind the white space there. The first line of the chunk and its last
// one may be fences that were added.
func after(text string, from int, chunk string, opened bool, next map[int]bool) {
	begins := len(text) - len(strings.TrimLeft(text[from:], white))
	bodies := []string{chunk}
	if first, body, ok := strings.Cut(chunk, "\n"); ok && opened && isFence(first) {
		bodies = append(bodies, body)
	}
	for _, body := range bodies {
		if i := strings.LastIndexByte(body, '\n'); i >= 0 && isFence(body[i+1:]) {
			bodies = append(bodies, body[:i], body[:i+1])
		}
	}
	for i, body := range bodies {
		start := max(from, begins-len(body)+len(strings.TrimLeft(body, white)))
		if !strings.HasPrefix(text[start:], body) {
			continue
		}
		end := start + len(body)
		next[end] = true
		if i == 0 {
			continue
		}
		// In place of a longer fence that did not fit one was added.
		end += len(lineBreak(text[end:]))
		if line, _, _ := strings.Cut(text[end:], "\n"); isFence(line) {
			next[end+len(line)] = true
		}
	}
}

func isFence(line string) bool { return strings.Contains(line, "```") || strings.Contains(line, "~~~") }
