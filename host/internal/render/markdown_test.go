package render

import (
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFlatten(t *testing.T) {
	for _, c := range []struct{ name, md, none, basic string }{
		{"empty", "", "", ""},
		{"onlyWhiteSpace", " \n\n ", "", ""},
		{"emphasis", "*a* _b_ **c** __d__ ***e*** ~~f~~", "a b c d e f", "*a* *b* **c** **d** ***e*** ~~f~~"},
		{"emphasisOverLines", "**a\nb**", "a\nb", "**a\nb**"},
		{"notEmphasis", "2 * 3 * 4, snake_case_name, ~5 ~6", "2 * 3 * 4, snake_case_name, ~5 ~6", "2 * 3 * 4, snake_case_name, ~5 ~6"},
		{"escapes", `\*a\* \[b\] \# \- c\_d \\ \q`, `*a* [b] # - c_d \ \q`, `\*a\* \[b\] # - c\_d \\ \q`},
		{"entities", "&lt;b&gt; &amp; &#42; &#x1F600; &nbsp;x &nosuch; &#0; &;", "<b> & * 😀 \u00a0x &nosuch; \ufffd &;", "<b> & \\* 😀 \u00a0x &nosuch; \ufffd &;"},

		{"heading", "# A\nb\n\n## C ##\n\nd", "A\nb\n\nC\n\nd", "**A**\nb\n\n**C**\n\nd"},
		{"headingOfMarks", "# A **b** *c* `d` [e](f)", "A b c d e (f)", "**A b *c* `d` [e](f)**"},
		{"headingUnderlined", "A\nb\n===\nc\n---\nd", "A b\nc\nd", "**A b**\n**c**\nd"},
		{"headingEmpty", "#\na", "a", "a"},

		{"bullets", "- a\n- b\n  - c\n    * d\n+ e", "• a\n• b\n  • c\n    • d\n• e", "- a\n- b\n  - c\n    - d\n- e"},
		{"bulletsBehindText", "Some:\n- a\n- b\n\nend", "Some:\n• a\n• b\n\nend", "Some:\n- a\n- b\n\nend"},
		{"bulletsLoose", "- a\n\n  more\n\n\n- b", "• a\n\n  more\n\n• b", "- a\n\n  more\n\n- b"},
		{"bulletsOfLines", "- a\n  b\nc", "• a\n  b\n  c", "- a\n  b\n  c"},
		{"bulletEmpty", "-\n- a", "•\n• a", "-\n- a"},
		{"bulletOfABullet", "- - a", "• • a", "- - a"},
		{"numbers", "3. a\n3. b\n   - c\n\n9) d", "3. a\n4. b\n  • c\n\n9) d", "3. a\n4. b\n   - c\n\n9) d"},
		{"tasks", "- [ ] a\n- [x] b\n  more\n- c", "[ ] a\n[x] b\n  more\n• c", "- [ ] a\n- [x] b\n  more\n- c"},
		{"tasksOfNumbers", "1. [X] a", "1. [x] a", "1. [x] a"},

		{"link", "[a](https://b.c) d", "a (https://b.c) d", "[a](https://b.c) d"},
		{"linkTitle", `[a](https://b.c "t")`, "a (https://b.c)", "[a](https://b.c)"},
		{"linkOfMarks", "[**a** `b`\nc](u)", "a b c (u)", "[**a** `b` c](u)"},
		{"linkToItself", "[https://b.c](https://b.c)", "https://b.c", "https://b.c"},
		{"linkToItselfShort", "[b.c](https://b.c/) [a@b.c](mailto:a@b.c)", "https://b.c/ mailto:a@b.c", "https://b.c/ mailto:a@b.c"},
		{"linkEmpty", "[](u) [a]()", "u a", "u a"},
		{"linkOddURL", "[a](b_(c)) [d](<e f>) [g](h&amp;i\\)j)", "a (b_(c)) d (e f) g (h&i)j)", "[a](b_%28c%29) [d](e%20f) [g](h&i%29j)"},
		{"linkByReference", "[a] [b][A] [c]\n\n[a]: https://x.y 't'", "a (https://x.y) b (https://x.y) [c]", "[a](https://x.y) [b](https://x.y) [c]"},
		{"definitionNotUsed", "[INFO]: done\n[b]: c\n\n[b]", "[INFO]: done\n\nb (c)", "[INFO]: done\n\n[b](c)"},
		{"autolink", "<https://a.b> <c@d.e> https://a.b/x_y_z. www.a.b", "https://a.b c@d.e https://a.b/x_y_z. www.a.b", "https://a.b c@d.e https://a.b/x_y_z. www.a.b"},
		{"image", "![a *b*](c.png) ![](d.png)", "a b (c.png) d.png", "[a *b*](c.png) d.png"},
		{"imageWithin", "![a](data:image/png;base64,AAAA) ![](data:,)", "a image", "a image"},
		{"imageInALink", "[![a](b.png)](https://c.d) [![](b.png)](https://c.d)", "a (https://c.d) https://c.d", "[a](https://c.d) https://c.d"},

		{"code", "`a` ``b`c`` `` `d` `` `*e*\nf`", "a b`c `d` *e* f", "`a` ``b`c`` `` `d` `` `*e* f`"},
		{"codeFenced", "a\n```go\nx := 1\n\n\ty\n```\nb", "a\nx := 1\n\n\ty\nb", "a\n```go\nx := 1\n\n\ty\n```\nb"},
		{"codeTildes", "~~~a `b`\n```\n~~~", "```", "````a \n```\n````"},
		{"codeIndented", "a\n\n    b\n      c\n\nd", "a\n\nb\n  c\n\nd", "a\n\n```\nb\n  c\n```\n\nd"},
		{"codeNotClosed", "```\n*a*", "*a*", "```\n*a*\n```"},
		{"codeInAList", "1. a\n   ```\n   b\n     c\n   ```\n   d", "1. a\nb\n  c\n  d", "1. a\n   ```\n   b\n     c\n   ```\n   d"},
		{"codeInABullet", "- ```\n  a\n  ```", "•\na", "- ```\n  a\n  ```"},

		{"quote", "> a\n> b\nc\n>\n> > d", "> a\n> b\n> c\n>\n> > d", "> a\n> b\n> c\n>\n> > d"},
		{"quoteOfBlocks", "> # a\n> - b\n> ```\n> c\n> ```", "> a\n> • b\n> c", "> **a**\n> - b\n> ```\n> c\n> ```"},
		{"quoteThenText", "> a\n\nb", "> a\n\nb", "> a\n\nb"},
		{"rule", "a\n\n***\nb", "a\n\n──────────\nb", "a\n\n──────────\nb"},

		{"table", "|a|*b*|\n|-|:-:|\n|日本語|d \\| e|\n|`f`|[g](h)|i|\n|j|",
			"a         b\n──────  ─────\n日本語  d | e\nf       g (h)\nj",
			"```\na         b\n──────  ─────\n日本語  d | e\nf       g (h)\nj\n```"},
		{"tableAligned", "a|b\n:-|-:\nccc|ddd\ne|f", "a      b\n───  ───\nccc  ddd\ne      f", "```\na      b\n───  ───\nccc  ddd\ne      f\n```"},
		{"tableBehindText", "x\n|a|\n|-|\n\ny", "x\n\na\n─\n\ny", "x\n\n```\na\n─\n```\n\ny"},
		{"tableOfBackticks", "|a|\n|-|\n|\\`\\`\\`|", "a\n───\n```", "````\na\n───\n```\n````"},
		{"tableOfLongCells", "|a|b|\n|-|-|\n|" + strings.Repeat("x", 50) + "|c|",
			"a" + strings.Repeat(" ", 41) + "b\n" + strings.Repeat("─", 40) + "  ─\n" + strings.Repeat("x", 50) + "  c",
			"```\na" + strings.Repeat(" ", 41) + "b\n" + strings.Repeat("─", 40) + "  ─\n" + strings.Repeat("x", 50) + "  c\n```"},

		{"html", "a <b>b</b> <!-- c --> d<br>e", "a b  d\ne", "a b  d\ne"},
		{"htmlBlock", "<div class=x>\n<p>a &amp; b</p>\n<!-- c > d -->\n</div>\n\ne", "a & b\n\ne", "a & b\n\ne"},
		{"htmlOnOneLine", "<p>a</p><ul><li>b</li><li>c</li></ul>", "a\n\nb\n\nc", "a\n\nb\n\nc"},
		{"notHTML", "a < b > c <3 x<y", "a < b > c <3 x<y", "a < b > c <3 x<y"},
		{"hardBreaks", "a  \nb\\\nc", "a\nb\nc", "a\nb\nc"},
		{"blankLines", "a\n\n\n\nb\n \n\t\nc\n\n", "a\n\nb\n\nc", "a\n\nb\n\nc"},
		{"lineBreaks", "a\r\nb\r\n\r\n\r\n- c\r\n- d\r\n\r\n```\r\ne\r\n```\r\n", "a\nb\n\n• c\n• d\n\ne", "a\nb\n\n- c\n- d\n\n```\ne\n```"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := flatten(c.md, none); got != c.none {
				t.Errorf("none: got %q, want %q", got, c.none)
			}
			if got := flatten(c.md, basic); got != c.basic {
				t.Errorf("basic: got %q, want %q", got, c.basic)
			}
			for _, level := range []string{full, "", "other"} {
				if got := flatten(c.md, level); got != c.md {
					t.Errorf("%s: got %q", level, got)
				}
			}
		})
	}
}

// Text without markup stays as it is.
func TestFlattenProse(t *testing.T) {
	words := []string{"word", "Ends.", "well,", "it’s", "日本語。", "é", "👩‍👩‍👧", "3.5", "50%", "a/b", "C:", "(so)", "\"quoted\"", "x=1", "snake_case", "#tag",
		"https://example.org/a_b?c=d&e=f", "me@example.org", "AT&T", "$5", "@name", "–", "\u3000indented", "a:b"}
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		var b strings.Builder
		b.WriteString("First")
		for range r.Intn(400) {
			b.WriteString([]string{" ", " ", " ", " ", " ", "\nso ", "\n\n"}[r.Intn(7)])
			if strings.HasSuffix(b.String(), "\n\n") {
				b.WriteString("Then ")
			}
			b.WriteString(words[r.Intn(len(words))])
		}
		prose := b.String()
		for _, level := range []string{none, basic} {
			if got := flatten(prose, level); got != prose {
				t.Fatalf("seed %d, %s: got\n%q\nof\n%q", seed, level, got, prose)
			}
		}
	}
}

// What basic leaves is Markdown that it leaves as it is.
func TestFlattenBasicIsStable(t *testing.T) {
	for seed := range int64(300) {
		once := flatten(document(rand.New(rand.NewSource(seed))), basic)
		if twice := flatten(once, basic); twice != once {
			t.Fatalf("seed %d: %q becomes %q", seed, once, twice)
		}
	}
}

// A long document is the same as its blocks, however it is cut for the parser.
func TestFlattenLong(t *testing.T) {
	block := "# Title\n\nSome *words* and `code`.\n\n- a\n  - b\n\n|a|b|\n|-|-|\n|c|d|\n\n```go\n# not a title\n\n- not an item\n```\n\n"
	for _, level := range []string{none, basic} {
		want := strings.TrimSuffix(strings.Repeat(flatten(block, level)+"\n\n", 500), "\n\n")
		if got := flatten(strings.Repeat(block, 500), level); got != want {
			t.Errorf("%s: got %.300q", level, got)
		}
	}
	code := strings.Repeat("[*a*](b) > > c\n\n", 5000)
	if got := flatten("x\n\n```\n"+code+"```\n\n*y*", none); got != "x\n\n"+code+"\ny" {
		t.Errorf("long code: got %.100q … %q", got, got[len(got)-20:])
	}
}

// Texts that make parsers slow or their stacks deep.
func TestFlattenIsLinear(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, 1<<17/len(s)) }
	plain := timed(func() { flatten(many("some words. "), none) })
	for name, md := range map[string]string{
		"quotes":        many(">"),
		"quoteLines":    many("> a\n"),
		"lists":         many("- "),
		"listsOfBlanks": strings.Repeat("+ ", 1<<15) + strings.Repeat("\n", 1<<15),
		"numbers":       many("1. "),
		"mixed":         many("> - "),
		"indented":      indented(500),
		"brackets":      many("["),
		"pairs":         strings.Repeat("[", 1<<15) + strings.Repeat("]", 1<<15),
		"images":        strings.Repeat("![", 1<<15) + strings.Repeat("](a)", 1<<15),
		"linksOpen":     many("[a](b"),
		"linksPointed":  many("[a](<b"),
		"definitions":   many("[a]: b\n"),
		"definitionsOf": many("[a]: b '\n"),
		"references":    "[a]: http://" + strings.Repeat("x", 4000) + "\n\n" + many("[a]"),
		"emphasis":      many("*a_ "),
		"emphasisNests": many("*a **b "),
		"strikes":       many("~a_"),
		"backticks":     many("!~~:\\```") + many("\n`"),
		"tags":          many("<a "),
		"comments":      many("<!-- "),
		"commentsBlock": "<div>\n" + many("<!-- >"),
		"columns":       many("|a") + "|\n" + many("|-") + "|\n" + many("|\n"),
		"table":         strings.Repeat("|a", 39) + "|\n" + strings.Repeat("|-", 39) + "|\n" + many("|\n"),
		"delimiters":    many("-|-\n"),
		"fences":        many("```\n"),
		"entities":      many("&"),
		"addresses":     many("a@b.c_"),
		"urls":          many("http://a.b/( "),
		"nul":           many("\x00"),
	} {
		for _, level := range []string{none, basic} {
			var got string
			wantLinear(t, name+", "+level, timed(func() { got = flatten(md, level) }), plain)
			checkFlat(t, md, got)
		}
	}
}

func indented(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return b.String()
}

func FuzzFlatten(f *testing.F) {
	for _, s := range []string{
		"", "# a\n\n- b\n  1. c\n\n> d\n", "|a|b|\n|-|:-:|\n|c|", "```go\na\n```\n", "[a](b \"c\") ![d](e) <https://f.g>", "[a]\n\n[a]: b", "- [x] a", "<b>c</b><!-- d -->",
		"**a *b ~~c~~ `d`***", "a  \nb\\\nc", "&lt;\\*", "***\n---\n===", "\t- a\n\t\tb", "~~~\n> a\n~~~", "a\r\nb", "\x00\xff",
	} {
		f.Add(s, byte(1))
		f.Add(s, byte(50))
	}
	f.Fuzz(func(t *testing.T, s string, times byte) {
		if len(s)*int(times) > 1<<16 {
			return
		}
		md := strings.Repeat(s, int(times))
		for _, level := range []string{none, basic} {
			checkFlat(t, md, flatten(md, level))
		}
	})
}

// checkFlat checks what flatten promises of any text: a table's padding aside,
// the result is at most a few times as long.
func checkFlat(t *testing.T, md, got string) {
	t.Helper()
	padding := (cellWidth + 2) * (strings.Count(md, "|") + strings.Count(md, "\n") + 1)
	if !strings.Contains(md, "-") {
		padding = 0
	}
	if len(got) > 10*len(md)+padding+1024 {
		t.Errorf("%d bytes become %d: %.200q", len(md), len(got), md)
	}
	if utf8.ValidString(md) && !utf8.ValidString(got) {
		t.Errorf("broken UTF-8 of %.200q", md)
	}
}
