package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of the file, far over what a machine could run.
const (
	maxFile  = 1 << 20
	maxDepth = 64
	// maxTokens bounds the time of goccy's parser, which grows with the square
	// of a mapping's keys: 2 s at worst.
	maxTokens = 50_000
)

type kind string

// The kinds of value, in the words of messages.
const (
	null    kind = "nothing"
	text    kind = "text"
	number  kind = "a number"
	boolean kind = "true or false"
	list    kind = "a list"
	mapping kind = "a mapping"
	// strange numbers mean one thing to one YAML parser and another to the
	// next: 0x1F, 010, 1_000, +1, .5, .inf.
	strange kind = "a number that is not written as JSON's are"
	// refused values were reported, and are not again.
	refused kind = ""
)

// value is a part of the file.
type value struct {
	kind  kind
	text  string // of a scalar, as written, without its quotes
	items []value
	pairs []pair
	position
}

type pair struct {
	key string
	position
	value value
}

// position counts from 1; the column in characters.
type position struct{ line, column int }

// problem is something wrong at a place in the file.
type problem struct {
	position
	what string
}

// reader turns YAML into values. It refuses what the file does not need and
// what people misread: anchors, aliases, tags, a second document.
type reader struct{ report func(position, string) }

// read returns an empty file as null. It reports what is wrong; not ok means that
// there is nothing to go on with.
func (r reader) read(src []byte) (v value, ok bool) {
	v.kind, v.position = null, position{1, 1}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if line := bytes.Count(src[:validUTF8(src)], []byte("\n")); validUTF8(src) < len(src) {
		r.report(position{line + 1, 1}, "found bytes that are not UTF-8, expected UTF-8 text")
		return v, false
	}
	tokens := lexer.Tokenize(string(src))
	if p := refuseTokens(tokens); p != nil {
		r.report(p.position, p.what)
		return v, false
	}
	file, p := parse(tokens)
	if p != nil {
		r.report(p.position, p.what)
		return v, false
	}
	if len(file.Docs) > 1 {
		at := position{1, 1}
		if start := file.Docs[1].Start; start != nil {
			at = place(start)
		}
		r.report(at, "found a second document, expected one")
		return v, false
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return v, true
	}
	return r.value(file.Docs[0].Body, 1), true
}

// validUTF8 is how many bytes at the start of src are UTF-8.
func validUTF8(src []byte) int {
	n := 0
	for n < len(src) {
		r, size := utf8.DecodeRune(src[n:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		n += size
	}
	return n
}

// refuseTokens keeps away from the parser what is not wanted, and what makes it
// slow.
func refuseTokens(tokens token.Tokens) *problem {
	if len(tokens) > maxTokens {
		return &problem{position{1, 1}, fmt.Sprintf("found %d words and signs, at most %d are allowed", len(tokens), maxTokens)}
	}
	flow, dashes := 0, 0
	for _, t := range tokens {
		unwanted := ""
		dashes++
		switch t.Type {
		case token.AnchorType, token.AliasType:
			unwanted = "an anchor or alias (& or *), which is not supported: write the value out, or quote it"
		case token.MergeKeyType:
			unwanted = "a merge key (<<), which is not supported: write the keys out"
		case token.TagType:
			unwanted = "a tag (!), which is not supported: quote the value if it is text"
		case token.DirectiveType:
			unwanted = "a directive (%), which is not supported"
		case token.MappingKeyType:
			unwanted = "a complex key (?), which is not supported: write KEY: VALUE"
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		}
		if t.Type != token.SequenceEntryType {
			dashes = 0
		}
		if flow > maxDepth || dashes > maxDepth {
			unwanted = tooDeep
		}
		if unwanted != "" {
			return &problem{place(t), "found " + unwanted}
		}
	}
	return nil
}

var tooDeep = fmt.Sprintf("more than %d levels, one in the other", maxDepth)

// parse runs goccy's parser, which is made for the YAML of friends: it may
// panic.
func parse(tokens token.Tokens) (file *ast.File, p *problem) {
	defer func() {
		if recover() != nil {
			file, p = nil, &problem{position{1, 1}, "found something that the YAML parser can't read, expected YAML"}
		}
	}()
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // mapping refuses them, with both places
	if err == nil {
		return file, nil
	}
	p = &problem{position{1, 1}, "found text that is not YAML"}
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) { // its Error shows the lines around, which may hold secrets
		p.what += ": " + strings.ReplaceAll(syntax.Message, "\n", " ")
		if syntax.Token != nil {
			p.position = place(syntax.Token)
		}
	}
	return nil, p
}

func place(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{1, 1}
	}
	return position{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// refuse leaves out what was wrong.
func (r reader) refuse(at position, what string) value {
	r.report(at, what)
	return value{kind: refused, position: at}
}

func (r reader) value(n ast.Node, depth int) value {
	at := place(n.GetToken())
	if depth > maxDepth {
		return r.refuse(at, "found "+tooDeep)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.mapping(n, at, depth)
	case *ast.SequenceNode:
		v := value{kind: list, position: at}
		for _, item := range n.Values {
			v.items = append(v.items, r.value(item, depth+1))
		}
		return v
	case *ast.LiteralNode:
		return value{kind: text, text: n.Value.Value, position: at}
	case *ast.NullNode:
		return value{kind: null, position: at}
	case ast.ScalarNode:
		return r.scalar(n, at)
	}
	return r.refuse(at, "found something unexpected, expected text, a number, true, false, a list or a mapping")
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (r reader) scalar(n ast.ScalarNode, at position) value {
	t := n.GetToken()
	v := value{kind: text, text: t.Value, position: at}
	switch {
	case t.Type == token.SingleQuoteType, t.Type == token.DoubleQuoteType:
	case n.Type() == ast.BoolType:
		v.kind = boolean
	case jsonNumber.MatchString(t.Value): // the parser takes long ones and 1e5 for text
		v.kind = number
	case n.Type() != ast.StringType:
		v.kind = strange
	}
	if !utf8.ValidString(v.text) { // by an escape such as "\xff"
		return r.refuse(at, "found text that is not UTF-8 once its escapes are read")
	}
	return v
}

func (r reader) mapping(n *ast.MappingNode, at position, depth int) value {
	v := value{kind: mapping, position: at}
	lines := map[string]int{}
	for i, entry := range n.Values {
		p := pair{position: place(entry.Key.GetToken())}
		if i == 0 && !n.IsFlowStyle {
			v.position = p.position // the parser's is that of the first colon
		}
		key, ok := entry.Key.(ast.Node).(ast.ScalarNode)
		if !ok {
			r.refuse(p.position, "found a key that is not text")
			continue
		}
		k := r.value(key, depth)
		if k.kind != text {
			r.refuse(p.position, fmt.Sprintf("found %s as a key, expected text: quote it", k.kind))
			continue
		}
		p.key = k.text
		if line, twice := lines[p.key]; twice {
			r.refuse(p.position, fmt.Sprintf("found key %s again, first in line %d", quote(p.key), line))
			continue
		}
		lines[p.key] = p.line
		p.value = r.value(entry.Value, depth+1)
		v.pairs = append(v.pairs, p)
	}
	return v
}
