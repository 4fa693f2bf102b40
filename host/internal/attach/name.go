package attach

import (
	"mime"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds a file's name for people, in bytes: what file systems take,
// less what a browser may add.
const maxName = 200

// cleanName makes a name that the client gave fit to be shown and saved under:
// no directories, nothing that does not print or turns text around. It names
// nothing on our disk.
func cleanName(name, ext string) string {
	name = strings.ToValidUTF8(name, "")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, name)
	name = strings.TrimSpace(name)
	if strings.Trim(name, ". ") == "" {
		return "attachment." + ext
	}
	end := path.Ext(name)
	if len(name) <= maxName {
		return name
	}
	if len(end) > 16 {
		end = ""
	}
	stem := name[:maxName-len(end)]
	for !utf8.ValidString(stem) {
		stem = stem[:len(stem)-1]
	}
	return stem + end
}

// disposition says how a browser is to take a file: shown in place if it can't
// run anything, else saved.
func disposition(o Object) string {
	how := "attachment"
	switch o.MimeType {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		how = "inline"
	default:
		if (strings.HasPrefix(o.MimeType, "audio/") || strings.HasPrefix(o.MimeType, "video/")) && !active(o.MimeType) {
			how = "inline"
		}
	}
	if full := mime.FormatMediaType(how, map[string]string{"filename": o.Name}); full != "" {
		return full
	}
	return how
}
