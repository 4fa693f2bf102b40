package framelog

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

const (
	// MaxText is how long a string of a shown frame may be, in bytes; longer ones
	// are cut.
	MaxText  = 512
	maxDepth = 64
)

// secret are the fields whose values are never shown, whatever they are; input
// and arguments are what tools are called with.
var secret = map[string]bool{
	"token": true, "access_token": true, "refresh_token": true, "authorization": true, "password": true, "passwd": true, "secret": true,
	"client_secret": true, "api_key": true, "apikey": true, "private_key": true, "credentials": true, "cookie": true,
	"input": true, "arguments": true, "rawinput": true,
}

// bulk are the fields that carry bytes as text.
var bulk = map[string]bool{"data": true, "base64": true, "bytes": true}

// bulky is from which length on a string of theirs is taken for bytes.
const bulky = 64

// reducer copies JSON and leaves out what is not to be seen. What it gets need not
// be whole: then what is left of it is closed where it breaks off.
type reducer struct {
	in    []byte
	at    int
	out   []byte
	limit int
	cut   bool

	depth int
}

// Reduce appends a frame to dst as it may be shown: without tokens, secrets, what
// tools are called with, and bytes, in whose places their type and size stand; long
// texts cut; in all about limit bytes, closed properly. cut: something is missing at
// the end. ok is false if it is not JSON: then nothing was appended.
func Reduce(dst, frame []byte, limit int) (out []byte, cut, ok bool) {
	r := reducer{in: frame, out: dst, limit: len(dst) + limit}
	r.space()
	if !r.value("") {
		return dst, false, false
	}
	if r.space(); !r.cut && r.at < len(r.in) {
		return dst, false, false // something is behind it
	}
	return r.out, r.cut, true
}

func (r *reducer) space() {
	for r.at < len(r.in) && (r.in[r.at] == ' ' || r.in[r.at] == '\t' || r.in[r.at] == '\n' || r.in[r.at] == '\r') {
		r.at++
	}
}

func (r *reducer) peek() byte {
	if r.at < len(r.in) {
		return r.in[r.at]
	}
	return 0
}

// value copies the value of the field key; false if it is none.
func (r *reducer) value(key string) bool {
	if secret[strings.ToLower(key)] {
		return r.hide(key)
	}
	switch c := r.peek(); c {
	case '"':
		from := r.at
		if !r.skipString() {
			return false
		}
		r.text(key, r.in[from+1:r.at-1])
		return true
	case '{', '[':
		return r.container(key, c)
	default:
		from := r.at
		if !r.skipScalar() {
			return false
		}
		scalar := r.in[from:r.at]
		if c != 't' && c != 'f' && c != 'n' && !message.PlainNumber(scalar) { // which readers of the log would choke on
			r.note("number", len(scalar))
			return true
		}
		r.out = append(r.out, scalar...)
		return true
	}
}

// container copies an object or an array, each element that still has room.
func (r *reducer) container(key string, open byte) bool {
	if r.depth == maxDepth {
		return false
	}
	closing := open + 2 // ] and } are two behind [ and {
	r.depth++
	r.at++
	r.out = append(r.out, open)
	for n := 0; ; n++ {
		if r.space(); r.peek() == closing && n == 0 {
			break
		}
		if !r.element(key, open, n) {
			return false
		}
		r.space()
		c := r.peek()
		r.at++
		if c == closing {
			r.at--
			break
		}
		if c != ',' {
			return false
		}
	}
	r.at++
	r.depth--
	r.out = append(r.out, closing)
	return true
}

// element copies one element, or passes it if there is no room.
func (r *reducer) element(key string, open byte, n int) bool {
	mark := len(r.out)
	full := r.cut
	if n > 0 && mark > 0 && r.out[mark-1] != open {
		r.out = append(r.out, ',')
	}
	if open == '{' {
		from := r.at
		if r.peek() != '"' || !r.skipString() {
			return false
		}
		name := r.in[from:r.at]
		key = unescaped(name)
		if len(name) > MaxText {
			full = true
		}
		r.out = append(r.out, name[:min(len(name), MaxText)]...)
		if r.space(); r.peek() != ':' {
			return false
		}
		r.at++
		r.space()
		r.out = append(r.out, ':')
	}
	if full || len(r.out) >= r.limit {
		r.out, r.cut = r.out[:mark], true
		return r.skip()
	}
	if !r.value(key) {
		return false
	}
	if len(r.out) > r.limit+MaxText { // one that is large by itself is cut within
		r.cut = true
	}
	return true
}

// text copies a string, or says in its place what it was.
func (r *reducer) text(key string, s []byte) {
	switch {
	case bulk[key] && len(s) >= bulky, bytes.HasPrefix(s, []byte("data:")) && len(s) >= bulky:
		r.note("base64", len(s))
		return
	}
	if len(s) <= MaxText {
		r.out = append(append(append(r.out, '"'), withoutToken(s)...), '"')
		return
	}
	end := MaxText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	// Not within an escape: \u12ab is the longest.
	if i := bytes.LastIndexByte(s[max(0, end-6):end], '\\'); i >= 0 {
		at := max(0, end-6) + i
		for at > 0 && s[at-1] == '\\' {
			at--
		}
		end = at
	}
	r.out = append(append(r.out, '"'), withoutToken(s[:end])...)
	r.out = append(r.out, "… ("...)
	r.out = strconv.AppendInt(r.out, int64(len(s)), 10)
	r.out = append(r.out, ` bytes)"`...)
}

// tokens are how what opens something is told apart within a text: a url's, our
// own, and that of a header.
var tokens = regexp.MustCompile(`(token=|pnt_|[Bb]earer )[A-Za-z0-9._~+/=%-]+`)

// withoutToken takes tokens out of a text.
func withoutToken(s []byte) []byte {
	if !bytes.Contains(s, []byte("oken=")) && !bytes.Contains(s, []byte("pnt_")) && !bytes.Contains(s, []byte("earer ")) {
		return s
	}
	return tokens.ReplaceAll(s, []byte("${1}…"))
}

// unescaped is what a name in quotes means.
func unescaped(name []byte) string {
	var s string
	if bytes.IndexByte(name, '\\') >= 0 && json.Unmarshal(name, &s) == nil {
		return s
	}
	return string(name[1 : len(name)-1])
}

// hide puts a note in the place of a value.
func (r *reducer) hide(key string) bool {
	kind := map[byte]string{'"': "string", '{': "object", '[': "array"}[r.peek()]
	from := r.at
	if !r.skip() {
		return false
	}
	size := r.at - from
	switch kind {
	case "":
		kind = "value"
	case "string":
		size -= 2
	}
	r.note(kind, size)
	return true
}

func (r *reducer) note(kind string, size int) {
	r.out = append(append(append(r.out, `"‹`...), kind...), ", "...)
	r.out = strconv.AppendInt(r.out, int64(size), 10)
	r.out = append(r.out, " bytes, not shown›\""...)
}

// skip passes a value.
func (r *reducer) skip() bool {
	depth := 0
	for {
		r.space()
		switch c := r.peek(); c {
		case '"':
			if !r.skipString() {
				return false
			}
		case '{', '[':
			depth++
			r.at++
			if depth+r.depth > maxDepth {
				return false
			}
			continue
		case '}', ']':
			depth--
			r.at++
		case ',', ':':
			r.at++
			if depth == 0 {
				return false
			}
			continue
		default:
			if !r.skipScalar() {
				return false
			}
		}
		if depth <= 0 {
			return depth == 0
		}
	}
}

// skipString passes a string with its quotes.
func (r *reducer) skipString() bool {
	for i := r.at + 1; ; {
		n := bytes.IndexByte(r.in[i:], '"')
		if n < 0 {
			return false
		}
		i += n
		slashes := 0
		for r.in[i-1-slashes] == '\\' {
			slashes++
		}
		if i++; slashes%2 == 0 {
			r.at = i
			return true
		}
	}
}

func (r *reducer) skipScalar() bool {
	from := r.at
	for r.at < len(r.in) && strings.IndexByte("+-.0123456789aeflnrstuE", r.in[r.at]) >= 0 {
		r.at++
	}
	return r.at > from
}
