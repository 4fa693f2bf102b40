package console

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// tagField is the form's field that says which version it was opened with.
const tagField = "etag"

// meanwhile is what others changed while a form was open.
type meanwhile struct {
	Actor string
	At    api.Time
	Facts []auditFact
}

// stale reports whether the API refused since the form was opened before another change.
func stale(err error, p **Problem) bool {
	return errors.As(err, p) && (*p).Status == http.StatusPreconditionFailed
}

// meanwhile says what others changed, newest first; nil = the form is not stale.
func (p *Problem) meanwhile() []meanwhile {
	if p == nil || p.Status != http.StatusPreconditionFailed {
		return nil
	}
	out := make([]meanwhile, len(p.Changes))
	for i, c := range p.Changes {
		out[i] = meanwhile{c.Actor, c.At, factsOf(api.AuditEntry{Before: c.Before, After: c.After})}
	}
	return out
}

// ifMatch makes a request one for the version that a form was opened with; a form that
// does not say has none.
func ifMatch(form url.Values) http.Header {
	if tag := form.Get(tagField); tag != "" {
		return http.Header{"If-Match": {tag}}
	}
	return nil
}

// opened is what was there when a stale form was opened: now is what is there, of which
// the changes are taken back, the newest first.
func opened[T any](now T, changes []api.Changed) (T, error) {
	raw, err := json.Marshal(now)
	if err != nil {
		return now, err
	}
	var then map[string]json.RawMessage
	if err := json.Unmarshal(raw, &then); err != nil {
		return now, err
	}
	for _, c := range changes {
		var before map[string]json.RawMessage
		if err := json.Unmarshal(c.Before, &before); err != nil {
			return now, err
		}
		for name, v := range before {
			then[name] = v
		}
	}
	if raw, err = json.Marshal(then); err != nil {
		return now, err
	}
	var was T
	err = json.Unmarshal(raw, &was)
	return was, err
}

// merge brings a stale form up to date: what was typed stays, and a field that is as it
// was when the form was opened gets what is there now. Where somebody else changed what
// was typed over too, the problem says so at the field.
func (p *Problem) merge(typed, then, now url.Values) {
	p.Errors = nil
	names := slices.Sorted(maps.Keys(then))
	for name := range now {
		if !then.Has(name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		was, is, mine := clean(then[name]), clean(now[name]), clean(typed[name])
		switch {
		case name == tagField || slices.Equal(was, mine):
			typed[name] = now[name]
		case !slices.Equal(was, is) && !slices.Equal(is, mine):
			p.Errors = append(p.Errors, Fault{"body." + name, "is " + or(strings.Join(is, ", "), "empty") + " by now: saving puts yours in its place"})
		}
		if typed[name] == nil {
			delete(typed, name) // a box that is not ticked is not sent
		}
	}
}

// clean is a field whether a browser sent it or the host has it: an empty one is none.
func clean(values []string) []string {
	var out []string
	for _, v := range values {
		if v = strings.TrimSpace(strings.ReplaceAll(v, "\r\n", "\n")); v != "" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}
