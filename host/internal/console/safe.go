package console

import (
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
)

// What platforms, agents and adapters say is shown, never obeyed: an address is a
// link only if it leads to the web or to a mail program, and nothing is loaded but
// what this host serves.

// maxAddress bounds an address that becomes a link.
const maxAddress = 4096 // bytes

// safeLink is the address as it may stand in a link; "" = it may not. What is
// meant for here is refused too: links in messages lead elsewhere.
func safeLink(address string) string {
	if len(address) > maxAddress || strings.ContainsFunc(address, func(c rune) bool { return c <= ' ' || c == '\\' || c == 0x7f }) {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Host == "" {
			return ""
		}
	case "mailto":
		if u.Opaque == "" {
			return ""
		}
	default:
		return ""
	}
	return u.String()
}

// ownPath is the address of a stored attachment: its path may hold nothing that a
// browser reads otherwise than we do.
var ownPath = regexp.MustCompile(`^` + regexp.QuoteMeta(attach.SignPath) + `[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)+$`)

// ownFile is the signed url of one of the host's own attachments as a path of this
// origin; "" = it is none. (The host signs for its public url, the browser may have
// come by another.)
func ownFile(address string) string {
	u, err := url.Parse(address)
	if err != nil || len(address) > maxAddress || !ownPath.MatchString(u.EscapedPath()) || !u.Query().Has("token") {
		return ""
	}
	return u.EscapedPath() + "?token=" + url.QueryEscape(u.Query().Get("token"))
}

// pictures are the types that a browser shows as a picture and that run nothing.
var pictures = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// maxInline bounds a picture that is part of the message itself.
const maxInline = 256 << 10 // bytes of base64: no frame holds more

// inlinePicture is base64 as an address that shows it; "" = it is no picture.
func inlinePicture(data string) string {
	if data == "" || len(data) > maxInline {
		return ""
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return ""
	}
	kind := http.DetectContentType(b)
	if !pictures[kind] {
		return ""
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(b)
}

// bidi are the characters that turn the direction of what follows, until they are
// ended: by them a file a\u202Egnp.exe passes for aexe.png, and the rest of its line is
// mirrored. (Marks, such as U+200F, turn nothing; names have them rightly.)
const bidi = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

var seen, asIs = func() (*strings.Replacer, *strings.Replacer) {
	var visible, reference []string
	for _, r := range bidi {
		visible = append(visible, string(r), fmt.Sprintf("⟨U+%04X⟩", r))
		reference = append(reference, string(r), fmt.Sprintf("&#x%x;", r))
	}
	return strings.NewReplacer(visible...), strings.NewReplacer(reference...)
}()

// overt shows what it wraps with all of bidi visible. Everything that the console
// sends goes through it; but for texts, see whole.
func overt(c templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		var b strings.Builder
		if err := c.Render(ctx, &b); err != nil {
			return err
		}
		_, err := seen.WriteString(w, b.String())
		return err
	})
}

// whole writes a text so that overt leaves it as it is: what was said may need to turn
// directions. Only for elements that are isolated from what is around them (dir).
func whole(text string) templ.Component { return templ.Raw(asIs.Replace(html.EscapeString(text))) }

// clip cuts text that is only to be recognized.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
