package search

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"Hello, World_2!":              "hello world 2",
		"Crème brûlée, STRASSE Straße": "creme brulee strasse strasse",
		"Łódź Ærø naïve œuvre":         "lodz aero naive oeuvre",
		"e\u0301clair":                 "eclair",
		"Ελλάδος ΕΛΛΆΔΟΣ":              "ελλαδοσ ελλαδοσ",
		"Привет, ЁЛКА":                 "привет елка",
		"今日は晴れ":                        "今 日 は 晴 れ",
		"학교에서":                         "학 교 에 서",
		"ab今cd":                        "ab 今 cd",
		"soft\u00adhyphen":             "softhyphen",
		"ﬁne ①":                        "fine 1",
		"\u0301":                       "",
		"a\xffb":                       "a b",
		"  ":                           "",
		"مُحَمَّد":                     "محمد",
	} {
		if got := Words(text, MaxText); got != want {
			t.Errorf("%q: found %q, expected %q", text, got, want)
		}
	}
	if got := Words(strings.Repeat("x", 1000), MaxText); len(got) != maxWord {
		t.Errorf("a long word counts by %d bytes", len(got))
	}
	if got := Words("one two three", 7); got != "one two" {
		t.Errorf("of seven bytes: %q", got)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`hello wor`:                  `{text author} : "hello" AND {text author} : "wor" *`,
		`hello `:                     `{text author} : "hello"`,
		`"new york"`:                 `{text author} : "new york"`,
		`"new york`:                  `{text author} : "new york"`,
		`a -b -"c d"`:                `({text author} : "a") NOT ({text author} : "b" OR {text author} : "c d")`,
		`from:ann`:                   `author : "ann" *`,
		`From:"Ann Lee" x `:          `{text author} : "x" AND author : "ann lee"`,
		`http://a.example/x `:        `{text author} : "http a example x"`,
		`a"b AND OR NOT NEAR(x) * ^`: `{text author} : "a b" AND {text author} : "and" AND {text author} : "or" AND {text author} : "not" AND {text author} : "near x"`,
		`今日`:                         `{text author} : "今 日" *`,
		`state:failed`:               ``,
		`-only`:                      ``,
		`x -from:bob`:                `({text author} : "x") NOT (author : "bob")`,
	} {
		q, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := q.FTS(nil); got != want {
			t.Errorf("%s:\nfound    %s\nexpected %s", text, got, want)
		}
	}
	q, err := Parse(`state:Failed -state:sent channel:irc -channel:"a b" before:2026-01-31 after:2026-01-01T10:00:00Z`)
	if err != nil || !slices.Equal(q.States, []string{"failed"}) || !slices.Equal(q.Without.States, []string{"sent"}) ||
		!slices.Equal(q.Channels, []string{"irc"}) || !slices.Equal(q.Without.Channels, []string{"a b"}) ||
		!q.Before.Equal(time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)) || !q.After.Equal(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v", q, err)
	}
	if got := q.FTS([]string{"c1", "c2"}); got != `place : ("c1" OR "c2")` {
		t.Errorf("places: %s", got)
	}
	for text, want := range map[string]string{
		`state:lost`: "state: found \"lost\", expected received", `before:tomorrow`: "before: found \"tomorrow\", expected a day",
		`channel:`: "channel: found nothing", strings.Repeat("a ", 40): "found more than 32 words", "!!!": ErrEmpty.Error(), "": ErrEmpty.Error(), "-": ErrEmpty.Error(),
	} {
		if _, err := Parse(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
	if _, err := Parse(" ... "); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
}

func TestMatch(t *testing.T) {
	for query, want := range map[string]bool{
		"fox": true, "FÓX ": true, "fo": true, "fo ": false, "ox": false, `"brown fox"`: true, `"fox brown"`: false, "-fox": false, "-cat": true,
		"ann": true, "from:ann": true, "from:fox": false, "-from:ann": false, "fox -from:bob": true, "晴れ": true, "れ晴": false,
	} {
		q, err := Parse(query)
		if err != nil {
			t.Fatal(query, err)
		}
		if got := q.Match("The quick brown föx 今日は晴れ", "Ann\nu1\n"); got != want {
			t.Errorf("%s: %v", query, got)
		}
	}
}

func TestText(t *testing.T) {
	parts := `[{"type":"text","text":"hello"},{"type":"vision","kind":"input","mimeType":"image/png","data":"c2VjcmV0","caption":"a cat","altText":"tabby"},
		{"type":"file","fileName":"report.pdf","mimeType":"application/pdf","url":"https://a.example/secret"},
		{"type":"custom","payloadType":"bridge.card","data":{"header":{"title":"Order"},"elements":[{"type":"markdown","content":"**42** pieces"}]}},
		{"type":"ui","uiId":"f1","components":[{"type":"input","name":"mail","label":"Your address"}],"submit":{"label":"Send"}},
		{"type":"ui_submit","uiId":"f1","values":{"mail":"ann at home","list":["red","blue"]}},
		{"type":"tool-call","toolCallId":"1","toolName":"t","input":{"text":"hidden"}},{"type":"tool-result","output":{"text":"hidden"}},
		{"type":"hologram","title":"shown"}]`
	got := Text("hello", []byte(parts))
	want := "hello\na cat\ntabby\nreport.pdf\nOrder\n**42** pieces\nmail\nYour address\nSend\nann at home\nred\nblue\nshown"
	if got != want {
		t.Errorf("found    %q\nexpected %q", got, want)
	}
	if got := Text("", []byte(`[{"type":"text","text":"a"}]`)); got != "a" {
		t.Errorf("without a roll-up: %q", got)
	}
	if got := Text("x", []byte(`broken`)); got != "x" {
		t.Errorf("a broken row: %q", got)
	}
}

func shownAs(all []Piece) string {
	var b strings.Builder
	for _, p := range all {
		if p.Match {
			b.WriteString("[" + p.Text + "]")
		} else {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func TestSnippet(t *testing.T) {
	long := strings.Repeat("alpha beta ", 30) + "the needle is here\nand\u202e <b>more</b>" + strings.Repeat(" gamma", 60)
	for _, c := range []struct{ query, text, want string }{
		{"fox ", "a fox, a Fóx", "a [fox], a [Fóx]"},
		{`"a fox" `, "a fox and fox", "[a] [fox] and fox"},
		{"ne", "new needle", "[new] [needle]"},
		{"from:ann", "hello", "hello"},
		{"晴れ", "今日は晴れです", "今日は[晴れ]です"},
	} {
		q, err := Parse(c.query)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(shownAs(q.Snippet(c.text)), "][", "")
		if got != c.want {
			t.Errorf("%s: found %q, expected %q", c.query, got, c.want)
		}
	}
	q, _ := Parse("needle ")
	got := shownAs(q.Snippet(long))
	if !strings.HasPrefix(got, "… ") || !strings.Contains(got, "the [needle] is here and <b>more</b> gamma") || !strings.HasSuffix(got, "…") || utf8.RuneCountInString(got) > snippetRunes+6 {
		t.Errorf("%q", got)
	}
	if got := Brief("one\n\ttwo\x1b[2J" + strings.Repeat("x", 200)); !strings.HasPrefix(got, "one  two[2Jxxx") || !strings.HasSuffix(got, "x…") {
		t.Errorf("%q", got)
	}
}

// FuzzQuery: whatever somebody writes, nothing of it reaches the index but quoted
// words, what matches has a snippet, and pieces put together are the text.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{`a "b c" -d from:e`, `") OR text : ("`, "“今” x", "-", `"`, "state:failed", "\xff\"", "a\x00b"} {
		f.Add(s, "a b c今 "+s)
	}
	f.Fuzz(func(t *testing.T, query, text string) {
		q, err := Parse(query)
		if err != nil {
			return
		}
		all := slices.Concat(q.Words, q.From, q.Without.Words, q.Without.From)
		for _, p := range all {
			for _, w := range p.Words {
				if w == "" || strings.ContainsAny(w, "\"*^:(){} \x00") || len(w) > maxWord {
					t.Fatalf("word %q", w)
				}
			}
		}
		if n := len(all); strings.Count(q.FTS([]string{"c1"}), `"`) != 2*(n+1) {
			t.Fatalf("%s", q.FTS([]string{"c1"}))
		}
		matched, hit := q.Match(text, ""), false
		for _, p := range q.Snippet(text) {
			hit = hit || p.Match
			if strings.ContainsAny(p.Text, "\n\x00\x1b") {
				t.Fatalf("piece %q", p.Text)
			}
		}
		if utf8.ValidString(text) && matched && len(q.Words) > 0 && !hit {
			t.Fatalf("%q is in %q, and not shown", query, text)
		}
	})
}
