package api

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// What changed is said field by field, also within an agent's config.
func TestBecame(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"aField":        {`{"enabled":true}`, `{"enabled":false}`, []string{"enabled=false"}},
		"aNewField":     {`{}`, `{"rate_limit":7}`, []string{"rate_limit=7"}},
		"ofAConfig":     {`{"config":{"url":"a","timeout":1,"old":2}}`, `{"config":{"url":"b","timeout":1,"new":3}}`, []string{"config.new=3", "config.old=null", `config.url="b"`}},
		"aWholeConfig":  {`{"config":null}`, `{"config":{"url":"b"}}`, []string{`config.url="b"`}},
		"goneFromIt":    {`{"config":{"url":"a"}}`, `{"config":{}}`, []string{"config.url=null"}},
		"noLongerThere": {`{"a":1}`, `{}`, []string{"a=null"}},
		"deeper":        {`{"config":{"tls":{"a":1,"b":2}}}`, `{"config":{"tls":{"a":1,"b":3}}}`, []string{`config.tls={"a":1,"b":3}`}},
		"nothing":       {``, `null`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			all := became(json.RawMessage(c.before), json.RawMessage(c.after), true)
			for _, field := range slices.Sorted(maps.Keys(all)) {
				got = append(got, field+"="+string(all[field]))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
