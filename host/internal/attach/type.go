package attach

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
)

const (
	octetStream = "application/octet-stream"
	plainText   = "text/plain"
)

// sniffBytes is what http.DetectContentType looks at.
const sniffBytes = 512

// DefaultTypes is what is accepted unless Options say otherwise.
func DefaultTypes() []string {
	return []string{
		"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf", plainText,
		"audio/*", "video/*", "application/zip", octetStream,
	}
}

// allowed is types that are accepted: TYPE/SUBTYPE or TYPE/*.
type allowed []string

// newAllowed checks a list; nil = the default.
func newAllowed(types []string) (allowed, error) {
	if types == nil {
		types = DefaultTypes()
	}
	list := make(allowed, len(types))
	for i, t := range types {
		major, minor, _ := strings.Cut(t, "/")
		if list[i] = essence(t); list[i] == "" || major == "*" || minor != "*" && strings.Contains(minor, "*") {
			return nil, fmt.Errorf("attachment types: found %q, expected TYPE/SUBTYPE or TYPE/*", t)
		}
	}
	return list, nil
}

// has reports whether a type is accepted. TYPE/* does not stand for what a
// browser would run: that must be named.
func (a allowed) has(t string) bool {
	major, _, _ := strings.Cut(t, "/")
	return slices.Contains(a, t) || !active(t) && slices.Contains(a, major+"/*")
}

// settle tells the type of a file from its bytes. What the sender declares can
// say more of it, never something else; what a browser would run is declared
// as nothing, unless it is accepted by name.
func (a allowed) settle(sniffed, declared string) (string, error) {
	t := sniffed
	if refines(sniffed, declared) && (a.has(declared) || active(declared)) {
		t = declared
	}
	if !a.has(t) && active(t) {
		t = octetStream
	}
	return t, a.check(t)
}

// promise is the type under which a file that is not here yet may be announced.
func (a allowed) promise(declared string) (string, error) {
	t := declared
	switch {
	case t == "" || active(t) && !a.has(t):
		t = octetStream
	case !a.has(t) && refines(plainText, t):
		t = plainText
	}
	return t, a.check(t)
}

func (a allowed) check(t string) error {
	if !a.has(t) {
		return fmt.Errorf("%w: found %s, expected one of %s", ErrType, t, strings.Join(a, ", "))
	}
	return nil
}

// refines reports whether a file whose bytes look like sniffed can be declared.
func refines(sniffed, declared string) bool {
	major, minor, _ := strings.Cut(declared, "/")
	media := major == "audio" || major == "video"
	switch {
	case declared == "":
		return false
	case sniffed == plainText:
		return major == "text" || declared == "application/json" || active(declared)
	case sniffed == octetStream:
		return media || active(declared)
	case active(sniffed):
		return active(declared)
	case sniffed == "application/zip": // documents are archives
		return major == "application" && !active(declared)
	}
	return media && (sniffed == "audio/"+minor || sniffed == "video/"+minor)
}

// active reports whether a browser might run what is in such a file.
func active(t string) bool {
	for _, word := range []string{"html", "javascript", "ecmascript", "jscript", "livescript", "vbscript", "svg", "xsl", "flash"} {
		if strings.Contains(t, word) {
			return true
		}
	}
	return strings.HasSuffix(t, "xml") || strings.HasPrefix(t, "multipart/") || strings.HasPrefix(t, "message/")
}

// essence is a type without its parameters, in lower case; "" if it is none.
func essence(t string) string {
	t, _, err := mime.ParseMediaType(t)
	if err != nil || !strings.Contains(t, "/") || len(t) > 127 { // RFC 6838: 127 characters
		return ""
	}
	return t
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

// sniff tells a type from the first sniffBytes of a file.
func sniff(head []byte) string {
	if t := magic(head); t != "" {
		return t
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n\f")
	switch start := bytes.ToLower(text[:min(len(text), 16)]); {
	case bytes.HasPrefix(start, []byte("<svg")):
		return "image/svg+xml"
	case bytes.HasPrefix(start, []byte("<!doctype html")):
		return "text/html"
	case bytes.HasPrefix(start, []byte("<!doctype")), bytes.HasPrefix(start, []byte("<?xml")):
		return "text/xml"
	}
	t := essence(http.DetectContentType(head))
	if t == plainText {
		t = essence(http.DetectContentType(text)) // a byte order mark hides what follows
	}
	switch t {
	case "audio/wave":
		return "audio/wav"
	case "application/x-gzip":
		return "application/gzip"
	case "":
		return octetStream
	}
	return t
}

// extensions are those of files in the store, by type; others are "bin".
var extensions = map[string]string{
	"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp", "image/svg+xml": "svg",
	"application/pdf": "pdf", "application/zip": "zip", "application/gzip": "gz", "application/json": "json",
	plainText: "txt", "text/csv": "csv", "text/markdown": "md", "text/html": "html", "text/xml": "xml",
	"audio/mpeg": "mp3", "audio/ogg": "ogg", "audio/wav": "wav", "audio/mp4": "m4a", "audio/aac": "aac", "audio/flac": "flac", "audio/webm": "weba", "audio/amr": "amr", "audio/aiff": "aiff", "audio/midi": "mid",
	"video/mp4": "mp4", "video/webm": "webm", "video/ogg": "ogv", "video/quicktime": "mov", "video/avi": "avi", "video/3gpp": "3gp",
}

func extension(t string) string {
	if ext, ok := extensions[t]; ok {
		return ext
	}
	return "bin"
}
