package supervisor

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
)

// hidden is shown in place of a secret.
const hidden = "***"

// minPart is the length from which on a line of a secret of several lines is
// hidden by itself, since a plugin's output is taken line by line.
const minPart = 8

// newHider makes what takes secrets out of text: as they are, and in the forms in
// which programs print what they were given. nil = there are none.
func newHider(secrets []string) *strings.Replacer {
	var words []string
	for _, s := range secrets {
		forms := []string{s, hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s))), url.QueryEscape(s), url.PathEscape(s)}
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			forms = append(forms, e.EncodeToString([]byte(s)))
		}
		if text, err := json.Marshal(s); err == nil {
			forms = append(forms, strings.Trim(string(text), `"`))
		}
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); len(line) >= minPart {
				forms = append(forms, line)
			}
		}
		for _, f := range forms {
			if f != "" {
				words = append(words, f, hidden)
			}
		}
	}
	if words == nil {
		return nil
	}
	return strings.NewReplacer(words...)
}
