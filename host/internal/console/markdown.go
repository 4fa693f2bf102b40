package console

import (
	"bytes"
	"context"
	"html"
	"io"
	"strings"

	"github.com/a-h/templ"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	goldhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// maxMarkdown bounds what is parsed; what is longer is shown as the text it is.
const maxMarkdown = 32 << 10 // bytes

// maxShownAddress bounds an address that is no link.
const maxShownAddress = 200 // bytes

// dialect is how markdown of messages becomes HTML: without HTML of its own, whose
// text is shown, without pictures, and with links to the web and mail only.
var dialect = goldmark.New(
	goldmark.WithExtensions(extension.Strikethrough, extension.Linkify, extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
	goldmark.WithRendererOptions(goldhtml.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(plainNodes{}, 1))),
)

// markdown shows text in markdown.
func markdown(text string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var out bytes.Buffer
		if len(text) > maxMarkdown || dialect.Convert([]byte(text), &out) != nil {
			out.Reset()
			out.WriteString(`<p class="said">` + html.EscapeString(text) + "</p>")
		}
		_, err := asIs.WriteString(w, out.String())
		return err
	})
}

// plainNodes renders what the library would render with more trust, or with a
// rank that a message does not have on the page.
type plainNodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (p plainNodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, rawInline)
	r.Register(ast.KindHTMLBlock, rawBlock)
	r.Register(ast.KindLink, markdownLink)
	r.Register(ast.KindAutoLink, autoLink)
	r.Register(ast.KindImage, markdownImage)
	r.Register(ast.KindHeading, markdownHeading)
	r.Register(ast.KindFencedCodeBlock, codeBlock)
}

// rel is what every link out of a message carries.
const rel = ` rel="noopener noreferrer nofollow" target="_blank"`

func rawInline(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		s := n.(*ast.RawHTML).Segments
		for i := range s.Len() {
			at := s.At(i)
			_, _ = w.WriteString(html.EscapeString(string(at.Value(source))))
		}
	}
	return ast.WalkSkipChildren, nil
}

func rawBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	b := n.(*ast.HTMLBlock)
	if entering {
		_, _ = w.WriteString(`<p class="said">`)
		writeLines(w, source, n)
		return ast.WalkContinue, nil
	}
	if b.HasClosure() {
		_, _ = w.WriteString(html.EscapeString(string(b.ClosureLine.Value(source))))
	}
	_, _ = w.WriteString("</p>\n")
	return ast.WalkContinue, nil
}

func writeLines(w util.BufWriter, source []byte, n ast.Node) {
	lines := n.Lines()
	for i := range lines.Len() {
		at := lines.At(i)
		_, _ = w.WriteString(html.EscapeString(string(at.Value(source))))
	}
}

func markdownLink(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	l := n.(*ast.Link)
	to := safeLink(string(l.Destination))
	switch {
	case to == "" && !entering: // words, and where they would have led
		_, _ = w.WriteString(" <code>" + html.EscapeString(seen.Replace(clip(string(l.Destination), maxShownAddress))) + "</code>")
	case to == "":
	case entering:
		_, _ = w.WriteString(`<a href="` + html.EscapeString(to) + `"` + rel + `>`)
	default:
		_, _ = w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

func autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	l := n.(*ast.AutoLink)
	label, to := seen.Replace(string(l.Label(source))), string(l.URL(source)) // an address turns nothing
	if l.AutoLinkType == ast.AutoLinkEmail {
		to = "mailto:" + label
	}
	if to = safeLink(to); to == "" || linked(n) {
		_, _ = w.WriteString(html.EscapeString(label))
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<a href="` + html.EscapeString(to) + `"` + rel + `>` + html.EscapeString(label) + "</a>")
	return ast.WalkContinue, nil
}

// markdownImage shows what the picture is called and where it is: it is not loaded.
func markdownImage(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	address, alt := string(n.(*ast.Image).Destination), html.EscapeString("Picture: "+words(n, source))
	if to := safeLink(address); to != "" && !linked(n) {
		_, _ = w.WriteString(`<a href="` + html.EscapeString(to) + `"` + rel + `>` + alt + "</a>")
	} else {
		_, _ = w.WriteString(alt + " <code>" + html.EscapeString(seen.Replace(clip(address, maxShownAddress))) + "</code>")
	}
	return ast.WalkSkipChildren, nil
}

// linked reports whether the node is within a link, which holds no other.
func linked(n ast.Node) bool {
	for n = n.Parent(); n != nil; n = n.Parent() {
		if n.Kind() == ast.KindLink {
			return true
		}
	}
	return false
}

// words is the text below a node.
func words(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Text:
				out.Write(n.Value(source))
			case *ast.String:
				out.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

// markdownHeading stays below those of the page.
func markdownHeading(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<p><strong>`)
	} else {
		_, _ = w.WriteString("</strong></p>\n")
	}
	return ast.WalkContinue, nil
}

func codeBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString("<pre><code>")
		writeLines(w, source, n)
	} else {
		_, _ = w.WriteString("</code></pre>\n")
	}
	return ast.WalkContinue, nil
}
