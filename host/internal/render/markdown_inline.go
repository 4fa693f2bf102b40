package render

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// special are the characters that mean something anywhere in a line of basic
// Markdown: there they stay escaped.
const special = "\\`*_~[]"

// inline appends what is in n.
func (f *flattener) inline(dst []byte, parent ast.Node) []byte {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			dst = f.textNode(dst, n)
		case *ast.String:
			dst = append(dst, n.Value...)
		case *ast.CodeSpan:
			dst = f.codeSpan(dst, n)
		case *ast.Emphasis:
			mark := "**"[:min(n.Level, 2)]
			if n.Level > 1 && f.bold {
				mark = ""
			}
			dst = f.marked(dst, n, mark)
		case *extast.Strikethrough:
			dst = f.marked(dst, n, "~~")
		case *ast.Link:
			dst = f.link(dst, n)
		case *ast.Image:
			dst = f.image(dst, n)
		case *ast.AutoLink:
			dst = append(dst, n.Label(f.src)...)
		case *ast.RawHTML:
			dst = append(dst, tagGap(n.Segments.Value(f.src))...)
		case *extast.TaskCheckBox:
			dst = append(dst, taskBox(n)...)
		default:
			dst = f.inline(dst, n)
		}
	}
	return dst
}

func (f *flattener) textNode(dst []byte, n *ast.Text) []byte {
	if n.IsRaw() {
		dst = append(dst, n.Value(f.src)...)
	} else {
		dst = f.text(dst, n.Value(f.src))
	}
	if n.SoftLineBreak() || n.HardLineBreak() {
		dst = append(dst, '\n')
	}
	return dst
}

// marked appends what is in n, in basic between marks.
func (f *flattener) marked(dst []byte, n ast.Node, mark string) []byte {
	if !f.basic {
		return f.inline(dst, n)
	}
	return append(f.inline(append(dst, mark...), n), mark...)
}

func (f *flattener) codeSpan(dst []byte, n *ast.CodeSpan) []byte {
	var code []byte
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			code = append(code, t.Value(f.src)...)
		}
	}
	code = bytes.ReplaceAll(code, []byte("\n"), []byte(" "))
	if !f.basic {
		return append(dst, code...)
	}
	mark := strings.Repeat("`", 1+longestRun(code))
	if len(code) > 0 && (code[0] == '`' || code[len(code)-1] == '`' || code[0] == ' ' && code[len(code)-1] == ' ') {
		code = append(append([]byte(" "), code...), ' ')
	}
	return append(append(append(dst, mark...), code...), mark...)
}

func (f *flattener) link(dst []byte, n *ast.Link) []byte {
	outer := f.label
	f.label = true
	label := oneLine(f.inline(nil, n))
	f.label = outer
	return f.pair(dst, label, n.Destination, n.Reference != nil)
}

// image appends an image as a link; within a link only its text is shown.
func (f *flattener) image(dst []byte, n *ast.Image) []byte {
	alt := oneLine(f.inline(nil, n))
	if bytes.HasPrefix(n.Destination, []byte("data:")) {
		return append(dst, firstOf(alt, "image")...)
	}
	if f.label {
		return append(dst, alt...)
	}
	return f.pair(dst, alt, n.Destination, n.Reference != nil)
}

// pair appends a label and where it leads.
func (f *flattener) pair(dst []byte, label string, dest []byte, ref bool) []byte {
	url := string(unescape(nil, dest, ""))
	if ref {
		f.refs -= len(url)
	}
	switch {
	case url == "" || ref && f.refs < 0:
		return append(dst, label...)
	case label == "" || label == url || label == bare(url):
		return append(dst, url...)
	case f.basic:
		return append(dst, "["+label+"]("+escapeURL(url)+")"...)
	}
	return append(dst, label+" ("+url+")"...)
}

// bare is a URL as people write it.
func bare(url string) string {
	for _, scheme := range []string{"https://", "http://", "mailto:"} {
		if rest, ok := strings.CutPrefix(url, scheme); ok {
			return strings.TrimSuffix(rest, "/")
		}
	}
	return url
}

// escapeURL leaves nothing in a URL that would end a link.
func escapeURL(url string) string {
	return strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "\n", "%0A").Replace(url)
}

// oneLine is the text with each run of white space as one space.
func oneLine(text []byte) string { return strings.Join(strings.Fields(string(text)), " ") }

// text appends Markdown text as this level shows it.
func (f *flattener) text(dst, text []byte) []byte {
	if f.basic {
		return unescape(dst, text, special)
	}
	return unescape(dst, text, "")
}

// unescape appends text without escapes and entities; characters in keep are escaped still.
func unescape(dst, text []byte, keep string) []byte {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && util.IsPunct(text[i+1]):
			if strings.IndexByte(keep, text[i+1]) >= 0 {
				dst = append(dst, c)
			}
			dst = append(dst, text[i+1])
			i += 2
			continue
		case c == '&':
			if chars, n := entity(text[i:]); n > 0 {
				if len(chars) == 1 && strings.Contains(keep, chars) {
					dst = append(dst, '\\')
				}
				dst = append(dst, chars...)
				i += n
				continue
			}
		}
		dst = append(dst, text[i])
		i++
	}
	return dst
}

// entity is what the entity that the text begins with stands for, and its
// length; 0 = there is none.
func entity(text []byte) (chars string, n int) {
	const longest = len("&CounterClockwiseContourIntegral;")
	end := bytes.IndexByte(text[:min(len(text), longest)], ';')
	if end < 2 {
		return "", 0
	}
	name := string(text[1:end])
	if name[0] != '#' {
		e, ok := util.LookUpHTML5EntityByName(name)
		if !ok {
			return "", 0
		}
		return string(e.Characters), end + 1
	}
	digits, base := name[1:], 10
	if digits != "" && digits[0]|' ' == 'x' {
		digits, base = digits[1:], 16
	}
	code, err := strconv.ParseUint(digits, base, 32)
	switch {
	case err != nil || len(digits) > 7:
		return "", 0
	case code == 0 || code > utf8.MaxRune || !utf8.ValidRune(rune(code)):
		code = utf8.RuneError
	}
	return string(rune(code)), end + 1
}

// dropTags is HTML without its tags and comments.
func dropTags(html []byte) []byte {
	var out []byte
	last := bytes.LastIndexByte(html, '>') // behind it no tag ends
	open := false                          // a comment that does not end was seen
	for i := 0; i < len(html); {
		if html[i] != '<' || i+1 >= last {
			out = append(out, html[i])
			i++
			continue
		}
		n := 0
		if !open && bytes.HasPrefix(html[i:], []byte("<!--")) {
			n = bytes.Index(html[i:], []byte("-->")) + 3
			open = n == 2
		}
		if n < 4 {
			n = bytes.IndexByte(html[i:], '>') + 1
		}
		out = append(out, tagGap(html[i:i+n])...)
		i += n
	}
	return out
}

// tagGap is the white space that a tag stands for.
func tagGap(tag []byte) string {
	name := bytes.TrimLeft(tag, "</")
	if i := bytes.IndexAny(name, " \t\r\n/>"); i >= 0 {
		name = name[:i]
	}
	switch strings.ToLower(string(name)) {
	case "br", "p", "div", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "h5", "h6":
		return "\n"
	case "td", "th":
		return " "
	}
	return ""
}
