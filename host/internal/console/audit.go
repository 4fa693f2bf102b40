package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

func (c *console) audit(mux *routes) {
	mux.HandleFunc("GET "+Path+"audit", c.page(c.showAudit))
}

// auditForm is which lines are wanted.
type auditForm struct {
	Actor, Action, Target string
	From, To              string // days, such as 2026-01-31, both included
}

// query is what the API takes; what is no day is left out.
func (f auditForm) query() url.Values {
	q := url.Values{}
	for name, v := range map[string]string{"actor": f.Actor, "action": f.Action, "target": f.Target} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if day, err := time.Parse(time.DateOnly, f.From); err == nil {
		q.Set("since", day.Format(time.RFC3339))
	}
	if day, err := time.Parse(time.DateOnly, f.To); err == nil {
		q.Set("until", day.AddDate(0, 0, 1).Format(time.RFC3339))
	}
	return q
}

// auditView is what the Audit page shows.
type auditView struct {
	Form   auditForm
	Lines  []api.AuditEntry
	Older  string // where older ones are; "" = there are none
	Export string // where all that is wanted is
	Some   bool   // not all lines are wanted
}

func (c *console) showAudit(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	f := auditForm{in.Get("actor"), in.Get("action"), in.Get("target"), in.Get("from"), in.Get("to")}
	q := f.query()
	v := auditView{Form: f, Some: len(q) > 0}
	q.Set("format", "ndjson")
	v.Export = "/api/v1/audit?" + q.Encode()
	q.Del("format")
	q.Set("limit", "100")
	q.Set("cursor", in.Get("cursor"))
	list, err := get[struct {
		Audit []api.AuditEntry `json:"audit"`
		Next  string           `json:"next_cursor"`
	}](c, r, "audit?"+q.Encode())
	if err != nil {
		return err
	}
	if v.Lines = list.Audit; list.Next != "" {
		in.Set("cursor", list.Next)
		v.Older = Path + "audit?" + in.Encode()
	}
	c.show(w, r, http.StatusOK, view{Title: "Audit", Nav: navAudit}, auditPage(v))
	return nil
}

// auditFact is one field of a line's detail, or one that changed.
type auditFact struct{ Name, Was, Is string }

// factsOf are what a line says beside who did what.
func factsOf(e api.AuditEntry) []auditFact {
	var detail, before, after map[string]json.RawMessage
	for _, f := range []struct {
		from json.RawMessage
		to   *map[string]json.RawMessage
	}{{e.Detail, &detail}, {e.Before, &before}, {e.After, &after}} {
		_ = json.Unmarshal(f.from, f.to) // the API sends objects or null
	}
	var out []auditFact
	for name, v := range detail {
		if !usual(e, name, v) {
			out = append(out, auditFact{Name: name, Is: plainJSON(v)})
		}
	}
	for name, v := range after {
		out = append(out, auditFact{name, plainJSON(before[name]), plainJSON(v)})
	}
	for name, v := range before {
		if _, still := after[name]; !still {
			out = append(out, auditFact{name, plainJSON(v), "nothing"})
		}
	}
	slices.SortFunc(out, func(a, b auditFact) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// defaults are fields that something new has unless it is told otherwise, beside what is
// empty or no.
var defaults = map[string]string{
	"channel.create enabled": "true", "channel.create agent": `"echo"`, "channel.create kind": `"bridge"`, "agent.create enabled": "true",
}

// usual reports a field of something new that is as nobody asked for it to be, or that
// says its name once more.
func usual(e api.AuditEntry, name string, v json.RawMessage) bool {
	if !strings.HasSuffix(e.Action, ".create") {
		return false
	}
	if d, ok := defaults[e.Action+" "+name]; ok {
		return string(v) == d
	}
	return plainJSON(v) == "none" || string(v) == "false" || string(v) == "0" || name == "name" && plainJSON(v) == e.Target
}

// plainJSON is a value as people write it: lists and objects by their members, without
// those that are null.
func plainJSON(v json.RawMessage) string {
	var s string
	var list []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case json.Unmarshal(v, &s) == nil:
	case json.Unmarshal(v, &list) == nil:
		said := make([]string, len(list))
		for i, one := range list {
			said[i] = plainJSON(one)
		}
		s = strings.Join(said, ", ")
	case json.Unmarshal(v, &object) == nil:
		var said []string
		for _, name := range sortedKeys(object) {
			if string(object[name]) != "null" {
				said = append(said, name+" "+plainJSON(object[name]))
			}
		}
		s = strings.Join(said, ", ")
	default:
		s = string(v)
	}
	return or(s, "none")
}

// actions are what can be done, by what it is done to. docs/access.md has the same.
var actions = []struct {
	Of   string
	Does []string
}{
	{"operator", []string{"setup", "setup.refused", "link", "rename", "password", "password.refused"}},
	{"session", []string{"open", "refused", "close", "close.all"}},
	{"key", []string{"create", "delete"}},
	{"channel", []string{"create", "update", "delete"}},
	{"token", []string{"rotate", "revoke"}},
	{"dead", []string{"replay"}},
	{"message", []string{"send", "test"}},
	{"agent", []string{"create", "update", "delete", "key.rotate", "key.revoke"}},
	{"plugin", []string{"enable", "disable", "restart"}},
	{"plugins", []string{"reload"}},
	{"secret", []string{"set", "delete"}},
}

// listed reports whether the form offers an action.
func listed(action string) bool {
	of, does, one := strings.Cut(action, ".")
	for _, a := range actions {
		if a.Of == of && (!one || slices.Contains(a.Does, does)) {
			return true
		}
	}
	return action == ""
}
