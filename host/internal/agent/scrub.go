package agent

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// leastSecret is the length from which a header's value is taken out of what an agent says:
// shorter ones are words that mean something else too.
const leastSecret = 6

// scrubber takes what the host sends in secret out of what an agent says of its failure:
// some answer with the whole request. The nil one takes nothing out.
type scrubber struct {
	replace *strings.Replacer
	longest int // in bytes
}

// newScrubber makes the scrubber of headers that are sent with each call.
func newScrubber(headers map[string]string) *scrubber {
	var forms []string
	for _, value := range headers {
		for _, secret := range append(strings.Fields(value), value) { // also without the scheme
			if len(secret) < leastSecret {
				continue
			}
			quoted, _ := json.Marshal(secret) // a string: it can't fail
			forms = append(forms, secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(string(quoted), `"`))
		}
	}
	if len(forms) == 0 {
		return nil
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) }) // whole before its parts
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f, Hidden)
	}
	return &scrubber{strings.NewReplacer(pairs...), len(forms[0])}
}

func (s *scrubber) text(said string) string {
	if s == nil {
		return said
	}
	return s.replace.Replace(said)
}

// begun is text for what may have been cut off in the middle of a secret.
func (s *scrubber) begun(said string) string {
	if s == nil {
		return said
	}
	clean := s.replace.Replace(said)
	return clean[:max(0, len(clean)-s.longest)]
}

// of is err with clean words.
func (s *scrubber) of(err error) error {
	if s == nil || err == nil {
		return err
	}
	if clean := s.text(err.Error()); clean != err.Error() {
		return &scrubbed{err, clean}
	}
	return err
}

// scrubbed is an error in other words.
type scrubbed struct {
	error
	words string
}

func (e *scrubbed) Error() string { return e.words }
func (e *scrubbed) Unwrap() error { return e.error }
