package console

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// channelForm is what the forms of a channel hold: as it was typed, so that
// nothing is lost when it is refused.
type channelForm struct {
	url.Values
	Problem      *Problem
	Agents       []api.Agent
	Capabilities []capability
	Kind         string // of the channel; "" = it is about to be made
}

// The numbers of a channel's policy: where they are in the API's body, and what
// 0 means is said by the form.
var channelNumbers = []string{
	"retention_days", "rate_limit", "queue_limits.ttl_seconds", "queue_limits.length", "queue_limits.attempts",
	"profile.max_text", "profile.max_buttons", "profile.edit_interval_ms", "profile.parallel", "profile.in_flight",
}

// at is what is wrong with a field, or with an entry of it.
func (f channelForm) at(field string) string {
	if f.Problem == nil {
		return ""
	}
	var found []string
	for _, e := range f.Problem.Errors {
		rest, ok := strings.CutPrefix(e.Location, "body."+field)
		if !ok || rest != "" && rest[0] != '[' {
			continue
		}
		if rest != "" { // people count from one
			if n, err := strconv.Atoi(strings.Trim(rest, "[]")); err == nil {
				found = append(found, "entry "+strconv.Itoa(n+1)+": "+e.Message)
				continue
			}
		}
		found = append(found, e.Message)
	}
	return strings.Join(found, "; ")
}

// rest is what is wrong that no field of the form shows.
func (f channelForm) rest() string {
	if f.Problem == nil || f.Problem.Status == http.StatusPreconditionFailed {
		return ""
	}
	if len(f.Problem.Errors) == 0 {
		return f.Problem.Error()
	}
	var other []string
	shown := append([]string{"name", "token", "agent", "agents", "accept_capabilities", "allow_users", "profile.markdown"}, channelNumbers...)
	for _, e := range f.Problem.Errors {
		field, _, _ := strings.Cut(strings.TrimPrefix(e.Location, "body."), "[")
		if !slices.Contains(shown, field) {
			other = append(other, strings.TrimSpace(e.Location+" "+e.Message))
		}
	}
	return strings.Join(other, "; ")
}

func (f channelForm) has(field, value string) bool { return slices.Contains(f.Values[field], value) }

// policy makes the API's body of what was typed. An error names the field.
func (f channelForm) policy() (map[string]any, *Problem) {
	body := map[string]any{
		"name": strings.TrimSpace(f.Get("name")), "agent": f.Get("agent"), "queue": f.Has("queue"), "enabled": f.Has("enabled"),
		"agents": orNone(f.Values["agents"]), "allow_users": lines(f.Get("allow_users")),
	}
	var faults []Fault
	accept := []string{}
	if f.Get("accept") == "some" {
		if accept = orNone(f.Values["accept_capabilities"]); len(accept) == 0 {
			faults = append(faults, Fault{"body.accept_capabilities", "tick at least one, such as text, or allow all"})
		}
	}
	body["accept_capabilities"] = accept
	for _, name := range channelNumbers {
		if !f.Has(name) {
			continue
		}
		n, err := wholeNumber(f.Get(name))
		if err != nil {
			faults = append(faults, Fault{"body." + name, err.Error()})
		}
		put(body, name, n)
	}
	if m := f.Get("profile.markdown"); m != "" {
		put(body, "profile.markdown", m)
	} else if f.Has("profile.markdown") {
		put(body, "profile.markdown", nil) // as the adapter says
	}
	if len(faults) > 0 {
		return nil, &Problem{Status: http.StatusUnprocessableEntity, Errors: faults}
	}
	return body, nil
}

// put sets a field of an object in the body, named with a point before it.
func put(body map[string]any, name string, v any) {
	object, field, nested := strings.Cut(name, ".")
	if !nested {
		body[name] = v
		return
	}
	inner, ok := body[object].(map[string]any)
	if !ok {
		inner = map[string]any{}
		body[object] = inner
	}
	inner[field] = v
}

var errNumber = errors.New("expected a whole number, or nothing")

// wholeNumber reads a whole number; nothing is 0, which means the default.
func wholeNumber(text string) (int, error) {
	text = strings.ReplaceAll(strings.TrimSpace(text), ",", "")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, errNumber
	}
	return n, nil
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// formOf fills the form with what a channel has.
func formOf(ch api.Channel) url.Values {
	v := url.Values{
		tagField: {ch.ETag},
		"name":   {ch.Name}, "agent": {ch.Agent}, "agents": ch.Agents, "allow_users": {strings.Join(ch.AllowUsers, "\n")},
		"accept": {"all"}, "accept_capabilities": ch.AcceptCapabilities, "profile.markdown": {ch.Profile.Markdown},
	}
	if len(ch.AcceptCapabilities) > 0 {
		v.Set("accept", "some")
	}
	if ch.Queue {
		v.Set("queue", "on")
	}
	if ch.Enabled {
		v.Set("enabled", "on")
	}
	for name, n := range numbersOf(ch.Profile, ch.QueueLimits, ch.RetentionDays, ch.RateLimit) {
		if n != 0 {
			v.Set(name, strconv.Itoa(n))
		}
	}
	return v
}

func numbersOf(p wire.Profile, q ledger.QueueLimits, retention, rate int) map[string]int {
	return map[string]int{
		"retention_days": retention, "rate_limit": rate,
		"queue_limits.ttl_seconds": q.TTLSeconds, "queue_limits.length": q.Length, "queue_limits.attempts": q.Attempts,
		"profile.max_text": p.MaxText, "profile.max_buttons": p.MaxButtons, "profile.edit_interval_ms": p.EditIntervalMS, "profile.parallel": p.Parallel, "profile.in_flight": p.InFlight,
	}
}

// fill asks the API for what the form offers.
func (c *console) fill(r *http.Request, f *channelForm) error {
	agents, err := c.allAgents(r)
	if err != nil {
		return err
	}
	caps, err := get[capabilityList](c, r, "capabilities")
	if err != nil {
		return err
	}
	f.Agents, f.Capabilities = agents, caps.Capabilities
	return nil
}

func (c *console) newChannel(w http.ResponseWriter, r *http.Request) error {
	f := channelForm{Values: url.Values{"agent": {"echo"}, "accept": {"all"}, "enabled": {"on"}}}
	return c.newChannelPage(w, r, http.StatusOK, f)
}

func (c *console) newChannelPage(w http.ResponseWriter, r *http.Request, status int, f channelForm) error {
	if err := c.fill(r, &f); err != nil {
		return err
	}
	c.show(w, r, status, view{
		Title: "New channel", Nav: navChannels, Above: [2]string{"Channels", Path + "channels"},
		Lead: "You get a token, shown once, and a program to paste that attaches with it.",
	}, newChannelPage(f))
	return nil
}

func (c *console) createChannel(w http.ResponseWriter, r *http.Request) error {
	sent, err := form(w, r)
	if err != nil {
		return err
	}
	f := channelForm{Values: sent}
	body, p := f.policy()
	var made struct {
		api.Channel
		Token string `json:"token"`
	}
	if p == nil {
		body["enabled"] = true
		if own := sent.Get("token"); sent.Get("whose") == "own" {
			body["token"] = own
			if own == "" {
				p = &Problem{Status: http.StatusUnprocessableEntity, Errors: []Fault{{"body.token", "absent: type one, or let the host make it"}}}
			}
		}
	}
	if p == nil {
		if err := c.call(r, http.MethodPost, "/channels", body, &made); err != nil && !refusedInput(err, &p) {
			return err
		}
	}
	if p != nil {
		f.Problem = p
		if sent.Get("whose") == "own" && sent.Get("token") != "" {
			p.Errors = append(p.Errors, Fault{"body.token", sayAgain})
		}
		return c.newChannelPage(w, r, p.Status, f)
	}
	w.Header().Set("HX-Push-Url", where("channels", made.Name))
	c.show(w, r, http.StatusOK, view{
		Title: made.Name + " is ready", Nav: navChannels, Above: [2]string{"Channels", Path + "channels"},
		Lead: "Now let an adapter attach to it. This page shows when it does.",
	}, createdPage(made.Channel, made.Token, c.place()))
	return nil
}

// refusedInput reports whether the API refused what was typed, which the form
// then says.
func refusedInput(err error, p **Problem) bool {
	return errors.As(err, p) && ((*p).Status == http.StatusUnprocessableEntity || (*p).Status == http.StatusConflict)
}

func (c *console) editChannel(w http.ResponseWriter, r *http.Request) error {
	ch, err := get[api.Channel](c, r, "channels", r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.editChannelPage(w, r, http.StatusOK, ch, channelForm{Values: formOf(ch)})
}

func (c *console) editChannelPage(w http.ResponseWriter, r *http.Request, status int, ch api.Channel, f channelForm) error {
	if err := c.fill(r, &f); err != nil {
		return err
	}
	f.Kind = ch.Kind
	c.show(w, r, status, view{
		Title: "Policy of " + ch.Name, Nav: navChannels, Above: [2]string{ch.Name, where("channels", ch.Name)}, Lead: "A change counts at once, also for who is attached.",
	}, editChannelPage(ch, f))
	return nil
}

func (c *console) updateChannel(w http.ResponseWriter, r *http.Request) error {
	sent, err := form(w, r)
	if err != nil {
		return err
	}
	f := channelForm{Values: sent}
	ch, err := get[api.Channel](c, r, "channels", r.PathValue("id"))
	if gone(err) {
		return c.goneChannelPage(w, r, f)
	}
	if err != nil {
		return err
	}
	body, p := f.policy()
	if p == nil {
		maps.DeleteFunc(body, func(k string, _ any) bool { return k == "name" && ch.Kind != "bridge" })
		err := c.callWith(r, http.MethodPatch, join([]string{"channels", ch.ID}), ifMatch(sent), body, &ch)
		switch {
		case stale(err, &p):
			then, err := opened(ch, p.Changes)
			if err != nil {
				return err
			}
			p.merge(f.Values, formOf(then), formOf(ch))
		case gone(err):
			return c.goneChannelPage(w, r, f)
		case err != nil && !refusedInput(err, &p):
			return err
		}
	}
	if p != nil {
		f.Problem = p
		return c.editChannelPage(w, r, p.Status, ch, f)
	}
	return back(w, r, where("channels", ch.Name), "Saved. The policy of "+ch.Name+" counts from now on.")
}

// gone reports whether the API does not know what a page is about.
func gone(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Status == http.StatusNotFound
}

// deletedMeanwhile is what a form says of a channel or an agent that was deleted while it
// was open.
func deletedMeanwhile(what string) *Problem {
	return &Problem{
		Status: http.StatusNotFound,
		Detail: "The " + what + " was deleted while this form was open. What you typed is still here, for a new " + what + ", or for this one once it is restored from a backup.",
	}
}

// goneChannelPage is the form of a channel that was deleted while it was open, with what
// was typed.
func (c *console) goneChannelPage(w http.ResponseWriter, r *http.Request, f channelForm) error {
	if err := c.fill(r, &f); err != nil {
		return err
	}
	if f.Has("name") {
		f.Kind = "bridge"
	}
	f.Problem = deletedMeanwhile("channel")
	c.show(w, r, http.StatusNotFound, view{Title: "The channel is gone", Nav: navChannels, Above: [2]string{"Channels", Path + "channels"}},
		editChannelPage(api.Channel{ID: r.PathValue("id")}, f))
	return nil
}
