package render

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// What a profile's markdown may be. An empty one is not known.
const (
	none  = "none"
	basic = "basic"
	full  = "full"
)

// maxShown is how many levels of nesting are shown: a deep one would make each
// short line a long one.
const maxShown = 8

// markdown is safe for use by several goroutines at once.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// flatten rewrites Markdown for a far end that shows less of it: none is plain
// text, basic is bold, italic, strike, code, links and lists. For any other
// level md comes back as it is. Text without markup stays as it is, except that
// several blank lines are one and that white space around a line is lost.
func flatten(md, level string) string {
	if level != none && level != basic {
		return md
	}
	f := flattener{basic: level == basic, refs: len(md) + 1024}
	for _, p := range pieces(md) {
		if begin, _, _ := strings.Cut(p.text, "\n"); strings.Trim(begin, white) == "" {
			f.blank()
		}
		if p.wild {
			f.paragraph([]byte(p.text))
		} else {
			f.markdown([]byte(p.text))
		}
		if end := p.text[len(strings.TrimRight(p.text, white)):]; strings.Count(end, "\n") > 1 {
			f.blank()
		}
	}
	return strings.TrimSuffix(string(f.out), "\n")
}

// flattener writes the plainer text line by line.
type flattener struct {
	basic bool
	bold  bool // within a heading that is shown as bold
	label bool // within the text of a link
	refs  int  // bytes that links by reference may still take: each repeats its URL

	src   []byte
	used  map[string]bool // the definitions that a link refers to
	boxes []box           // what the line is nested in, outermost first
	gap   int             // if not 0, a blank line in the boxes before this one comes first
	out   []byte
}

// box is a block that starts its lines with something.
type box struct {
	first string // a list item's marker, until a line has it
	rest  string
	list  bool
}

// markdown writes a document.
func (f *flattener) markdown(src []byte) {
	ctx := parser.NewContext()
	doc := markdown.Parse(text.NewReader(src), parser.WithContext(ctx))
	f.src, f.used = src, map[string]bool{}
	if len(ctx.References()) > 0 {
		f.findUsed(doc)
	}
	f.blocks(doc)
}

func (f *flattener) findUsed(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		var ref *ast.ReferenceLink
		switch n := n.(type) {
		case *ast.Link:
			ref = n.Reference
		case *ast.Image:
			ref = n.Reference
		}
		if ref != nil {
			f.used[util.ToLinkReference(ref.Value)] = true
		}
		f.findUsed(n)
	}
}

// line writes one line. One that is copied is not indented by lists.
func (f *flattener) line(text []byte, copied bool) {
	if f.gap > 0 {
		f.start(f.gap-1, false, nil)
		f.gap = 0
	}
	f.start(len(f.boxes), copied, text)
}

func (f *flattener) start(depth int, copied bool, text []byte) {
	start := len(f.out)
	for i := range f.boxes[:depth] {
		b := &f.boxes[i]
		switch {
		case b.first != "":
			f.out = append(f.out, b.first...)
			b.first = ""
		case i < maxShown && (!copied || !b.list):
			f.out = append(f.out, b.rest...)
		}
	}
	if len(text) == 0 {
		f.out = append(f.out[:start], bytes.TrimRight(f.out[start:], " ")...)
	}
	f.out = append(append(f.out, text...), '\n')
}

// blank makes a blank line come before the next one, if there is one.
func (f *flattener) blank() {
	if len(f.out) > 0 && f.gap == 0 && !f.marker() {
		f.gap = len(f.boxes) + 1
	}
}

// marker reports whether a list item's marker is still to be written.
func (f *flattener) marker() bool {
	return len(f.boxes) > 0 && f.boxes[len(f.boxes)-1].first != ""
}

// paragraph writes the lines of a text.
func (f *flattener) paragraph(text []byte) {
	for line := range bytes.Lines(bytes.Trim(text, white)) {
		if line = bytes.Trim(line, white); len(line) > 0 {
			f.line(line, false)
		} else {
			f.blank()
		}
	}
}

func (f *flattener) within(b box, n ast.Node) {
	f.boxes = append(f.boxes, b)
	f.blocks(n)
	if f.marker() {
		f.line(nil, false)
	}
	f.boxes = f.boxes[:len(f.boxes)-1]
	f.gap = min(f.gap, len(f.boxes)+1)
}

func (f *flattener) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil && (f.afterBlank(n) || n.Kind() == extast.KindTable) {
			f.blank()
		}
		f.block(n)
	}
}

// afterBlank reports whether a blank line is in front of the block. The parser
// says so of any block behind fenced code.
func (f *flattener) afterBlank(n ast.Node) bool {
	before := bytes.LastIndexByte(f.src[:max(0, n.Pos())], '\n')
	if before < 0 {
		return false
	}
	start := bytes.LastIndexByte(f.src[:before], '\n') + 1
	return len(bytes.Trim(f.src[start:before], " \t\r>")) == 0
}

func (f *flattener) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		f.heading(n)
	case *ast.ThematicBreak:
		f.line([]byte(rule), false)
	case *ast.Blockquote:
		f.within(box{rest: "> "}, n)
	case *ast.List:
		f.list(n)
	case *ast.CodeBlock:
		f.code(n, nil)
	case *ast.FencedCodeBlock:
		f.code(n, n.Info)
	case *ast.HTMLBlock:
		html := n.Lines().Value(f.src)
		if n.HasClosure() {
			html = append(html, n.ClosureLine.Value(f.src)...)
		}
		f.paragraph(f.text(nil, dropTags(html)))
	case *ast.LinkReferenceDefinition:
		if !f.used[util.ToLinkReference(n.Label)] { // else the link shows it
			f.paragraph(n.Lines().Value(f.src))
		}
	case *extast.Table:
		f.table(n)
	default:
		f.paragraph(f.inline(nil, n))
	}
}

func (f *flattener) heading(n *ast.Heading) {
	f.bold = f.basic
	title := oneLine(f.inline(nil, n))
	f.bold = false
	if f.basic && title != "" {
		title = "**" + title + "**"
	}
	f.paragraph([]byte(title))
}

func (f *flattener) list(l *ast.List) {
	number := l.Start
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		if item.PreviousSibling() != nil && f.afterBlank(item) {
			f.blank()
		}
		b := box{first: "• ", rest: "  ", list: true}
		switch {
		case l.IsOrdered():
			b.first = strconv.Itoa(number) + string(l.Marker) + " "
			number++
		case f.basic:
			b.first = "- "
		default:
			b.first = takeTask(item, b.first)
		}
		if f.basic {
			b.rest = strings.Repeat(" ", len(b.first))
		}
		f.within(b, item)
	}
}

// takeTask is the marker of a list item: its task's box, which it removes, if
// it has one.
func takeTask(item ast.Node, marker string) string {
	if item.FirstChild() == nil {
		return marker
	}
	task, ok := item.FirstChild().FirstChild().(*extast.TaskCheckBox)
	if !ok {
		return marker
	}
	task.Parent().RemoveChild(task.Parent(), task)
	return taskBox(task)
}

func taskBox(n *extast.TaskCheckBox) string {
	if n.IsChecked {
		return "[x] "
	}
	return "[ ] "
}

// code writes a code block. In basic it keeps its fences, with as many
// backticks as its content needs; without them it is as it will be copied.
func (f *flattener) code(n ast.Node, info *ast.Text) {
	var fence []byte
	switch {
	case f.basic:
		fence = bytes.Repeat([]byte("`"), max(3, 1+longestRun(n.Lines().Value(f.src))))
		first := fence
		if info != nil {
			name, _, _ := bytes.Cut(info.Value(f.src), []byte("`"))
			first = append(bytes.Clone(fence), name...)
		}
		f.line(first, false)
	case f.marker():
		f.line(nil, false)
	}
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		f.line(bytes.TrimRight(line.Value(f.src), "\r\n"), !f.basic)
	}
	if f.basic {
		f.line(fence, false)
	}
}

// longestRun is the length of the longest run of backticks.
func longestRun(text []byte) int {
	longest, n := 0, 0
	for _, c := range text {
		if n++; c != '`' {
			n = 0
		}
		longest = max(longest, n)
	}
	return longest
}
