package console

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// allowed are the elements and attributes that a part may become. Anything else
// came out of a message.
var allowed = map[string]string{
	"p": "class dir", "div": "class dir", "span": "class dir", "a": "href rel target download", "blockquote": "class dir", "ul": "class aria-label", "ol": "start", "li": "dir", "hr": "",
	"dl": "class", "dt": "dir", "dd": "dir", "figure": "class", "figcaption": "dir", "img": "src alt loading", "audio": "controls preload src aria-label", "video": "controls preload src aria-label",
	"strong": "", "em": "", "del": "", "code": "", "pre": "", "br": "", "table": "", "thead": "", "tbody": "", "tr": "", "th": "", "td": "",
}

// check reads HTML as a browser does and reports what is not allowed.
func check(t *testing.T, from, page string) {
	t.Helper()
	nodes, err := html.ParseFragment(strings.NewReader(page), &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		for n := range n.Descendants() {
			checkNode(t, from, n)
		}
		checkNode(t, from, n)
	}
}

func checkNode(t *testing.T, from string, n *html.Node) {
	t.Helper()
	if n.Type == html.CommentNode {
		t.Errorf("%q becomes a comment: text is lost", from)
	}
	if n.Type != html.ElementNode {
		return
	}
	names, ok := allowed[n.Data]
	if !ok {
		t.Errorf("%q becomes <%s>", from, n.Data)
	}
	for _, a := range n.Attr {
		if !strings.Contains(" "+names+" ", " "+a.Key+" ") {
			t.Errorf("%q becomes <%s %s=%q>", from, n.Data, a.Key, a.Val)
		}
		outward := strings.HasPrefix(a.Val, "http://") || strings.HasPrefix(a.Val, "https://") || strings.HasPrefix(a.Val, "mailto:")
		own := strings.HasPrefix(a.Val, "/storage/v1/object/sign/")
		switch {
		case a.Key == "href" && !outward && !own:
			t.Errorf("%q becomes a link to %q", from, a.Val)
		case a.Key == "src" && !own && !strings.HasPrefix(a.Val, "data:image/"):
			t.Errorf("%q loads %q", from, a.Val)
		}
	}
	if n.Data == "a" && !strings.Contains(render(t, n), `rel="noopener noreferrer nofollow"`) {
		t.Errorf("%q becomes a link that tells where it was: %s", from, render(t, n))
	}
}

func render(t *testing.T, n *html.Node) string {
	t.Helper()
	var b strings.Builder
	if err := html.Render(&b, n); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func shownParts(t *testing.T, parts []message.Part) string {
	t.Helper()
	var b strings.Builder
	for _, c := range partsOf(parts, maxShownText) {
		if err := c.Render(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// hostile are the texts that all pages are tried with.
func hostile(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile("../../../sdk/message/testdata/hostile.json")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	if err := json.Unmarshal(b, &out); err != nil || len(out) < 20 {
		t.Fatalf("%d hostile texts: %v", len(out), err)
	}
	return out
}

// everyPart is one part of each type there is.
func everyPart(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("../../../sdk/message/testdata/parts.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// poison makes text of every text in a JSON value, but for what says which kind of
// thing it is in the first place.
func poison(key string, v any, text string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, value := range v {
			v[k] = poison(k, value, text)
		}
	case []any:
		for i := range v {
			v[i] = poison(key, v[i], text)
		}
	case string:
		if key != "type" && v != message.PayloadCard && v != message.PayloadButtons {
			return text
		}
	}
	return v
}

// poisoned are parts of every type, with nothing but the text in them.
func poisoned(t testing.TB, text string) []message.Part {
	t.Helper()
	var all []any
	if err := json.Unmarshal(everyPart(t), &all); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(poison("", all, text))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := message.ParseParts(b)
	if err != nil {
		t.Fatal(err)
	}
	return append(parts,
		message.NewCard(&wire.Card{Header: &wire.Header{Title: text, Color: text}, Elements: []wire.Element{
			{Type: wire.ElementMarkdown, Content: text}, {Type: wire.ElementNote, Text: text}, {Type: wire.ElementActions, Buttons: [][]wire.Button{{{Text: text, Value: text, Style: text}}}},
			{Type: wire.ElementListItem, Text: text, Button: &wire.Button{Text: text, Value: text}},
			{Type: wire.ElementSelect, Placeholder: text, InitValue: text, CallbackPrefix: text, Options: []wire.Option{{Text: text, Value: text}}},
			{Type: wire.ElementType(text), Text: text},
		}}),
		message.NewButtons(text, [][]wire.Button{{{Text: text, Value: text, Style: text}}}))
}

// TestHostileParts: whatever a message holds in whichever place, what it becomes
// is words.
func TestHostileParts(t *testing.T) {
	for _, text := range hostile(t) {
		check(t, text, shownParts(t, poisoned(t, text)))
	}
}

// TestEveryPart: each part says something, in words, and none what it must not.
func TestEveryPart(t *testing.T) {
	parts, err := message.ParseParts(everyPart(t))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range parts {
		seen[p.Type] = true
		page := shownParts(t, []message.Part{p})
		check(t, p.Type, page)
		if len(page) < 20 || strings.Contains(page, "x-unknown") {
			t.Errorf("%s becomes %q", p.Type, page)
		}
	}
	for _, name := range message.Types() {
		if !seen[name] {
			t.Errorf("no %s was tried", name)
		}
	}
	tools := shownParts(t, []message.Part{
		message.NewToolCall("c", "weather", json.RawMessage(`{"key":"secret-input"}`), message.ToolAwaitingApproval),
		message.NewToolResult("c", "weather", json.RawMessage(`{"key":"secret-output"}`)),
	})
	if strings.Contains(tools, "secret") || !strings.Contains(tools, "weather · awaiting approval") {
		t.Errorf("tools become %s", tools)
	}
}

func TestMarkdown(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"bold", "a **b**", "<p>a <strong>b</strong></p>\n"},
		{"html is text", "a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"},
		{"a block of html is text", "<div>\n*a*\n</div>", "<p class=\"said\">&lt;div&gt;\n*a*\n&lt;/div&gt;</p>\n"},
		{"link", "[a](https://example.org/x)", `<p><a href="https://example.org/x" rel="noopener noreferrer nofollow" target="_blank">a</a></p>` + "\n"},
		{"link to a script", "[a](javascript:alert(1))", "<p>a <code>javascript:alert(1)</code></p>\n"},
		{"link to this host", "[a](/console/logout)", "<p>a <code>/console/logout</code></p>\n"},
		{"picture elsewhere", "![a](https://example.org/x.png)", `<p><a href="https://example.org/x.png" rel="noopener noreferrer nofollow" target="_blank">Picture: a</a></p>` + "\n"},
		{"picture in a link", "[![a](https://example.org/x.png)](https://example.org/y)",
			`<p><a href="https://example.org/y" rel="noopener noreferrer nofollow" target="_blank">Picture: a <code>https://example.org/x.png</code></a></p>` + "\n"},
		{"heading", "# a", "<p><strong>a</strong></p>\n"},
		{"bare address", "see https://example.org/x", `<p>see <a href="https://example.org/x" rel="noopener noreferrer nofollow" target="_blank">https://example.org/x</a></p>` + "\n"},
		{"too long to be parsed", strings.Repeat("*", maxMarkdown+1), `<p class="said">` + strings.Repeat("*", maxMarkdown+1) + "</p>"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			if err := markdown(tc.in).Render(t.Context(), &b); err != nil || b.String() != tc.want {
				t.Errorf("got %q, want %q; %v", clip(b.String(), 500), clip(tc.want, 500), err)
			}
		})
	}
}

func TestSafeLink(t *testing.T) {
	for in, want := range map[string]string{
		"https://example.org/a?b=c#d": "https://example.org/a?b=c#d", "HTTP://example.org": "http://example.org", "mailto:a@example.org": "mailto:a@example.org",
		"javascript:alert(1)": "", "JaVaScRiPt:alert(1)": "", "java\tscript:alert(1)": "", " https://example.org": "", "//example.org": "", "/console/": "", "data:text/html,x": "",
		"https:alert(1)": "", "https://": "", "vbscript:x": "", "file:///etc/passwd": "", "https://example.org\\@evil.example": "", "": "",
	} {
		if got := safeLink(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestOwnFile(t *testing.T) {
	const path = "/storage/v1/object/sign/agent-files/agent-inputs/c1/6f1c7b2a.png"
	for in, want := range map[string]string{
		"http://127.0.0.1:8080" + path + "?token=a.b": path + "?token=a.b", path + "?token=a": path + "?token=a", "https://pontoon.example" + path + "?token=a%22b": path + "?token=a%22b",
		path: "", "https://example.org/x.png": "", "/storage/v1/object/sign/../../../../api/v1/channels?token=a": "", "/storage/v1/object/sign/a/%2e%2e/b?token=a": "",
		"/storage/v1/object/sign/a/..%2f..?token=a": "", "/storage/v1/object/sign//b?token=a": "", "/console/?token=a": "",
	} {
		if got := ownFile(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestInlinePicture(t *testing.T) {
	const dot = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
	if got := inlinePicture(dot); got != "data:image/gif;base64,"+dot {
		t.Errorf("got %q", got)
	}
	for _, in := range []string{"", "not base64!", "PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+", "aGVsbG8="} {
		if got := inlinePicture(in); got != "" {
			t.Errorf("%q is taken for a picture: %q", in, got)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, text := range hostile(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b strings.Builder
		if err := markdown(text).Render(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		check(t, text, b.String())
	})
}
