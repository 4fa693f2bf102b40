package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

func (c *console) agentPages(mux *routes) {
	at := Path + "agents"
	mux.HandleFunc("GET "+at, c.page(c.listAgents))
	mux.HandleFunc("GET "+at+"/new", c.page(c.newAgent))
	mux.HandleFunc("POST "+at+"/new", c.page(c.createAgent))
	mux.HandleFunc("GET "+at+"/{id}", c.page(c.showAgent))
	mux.HandleFunc("GET "+at+"/{id}/edit", c.page(c.editAgent))
	mux.HandleFunc("POST "+at+"/{id}/edit", c.page(c.updateAgent))
	mux.HandleFunc("POST "+at+"/{id}/rotate", c.page(c.rotateKey))
	mux.HandleFunc("GET "+at+"/{id}/keys/{key}/revoke", c.page(c.askRevokeKey))
	mux.HandleFunc("POST "+at+"/{id}/keys/{key}/revoke", c.page(c.revokeAgentKey))
	mux.HandleFunc("POST "+at+"/{id}/delete", c.page(c.deleteAgent))
}

type kindList struct {
	Kinds []api.AgentKind `json:"kinds"`
}

func agentCondition(a api.Agent) condition {
	switch {
	case !a.Enabled:
		return condition{idle, "disabled", "Nobody can ask it."}
	case a.Away && a.AwaySince == nil:
		return condition{waiting, "away", "It has not come yet. " + waitingTurns(a.Waiting)}
	case a.Away:
		return condition{warning, "away", "It can't be asked. " + waitingTurns(a.Waiting)}
	case a.Turns.Failing:
		return condition{fault, "failing", fmt.Sprintf("It failed its last %d turns.", a.Turns.FailedInRow)}
	case a.Turns.FailedInRow > 0:
		return condition{warning, "failed", "It failed its last turn."}
	case a.BuiltIn:
		return condition{good, "built in", "It is part of the host."}
	case a.Kind == "webhook" || a.Kind == "agui":
		return condition{about, "on call", "The host calls it when somebody asks."}
	}
	return condition{good, "there", "It is connected."}
}

func (c *console) listAgents(w http.ResponseWriter, r *http.Request) error {
	list, err := get[agentList](c, r, "agents"+page(r))
	if err != nil {
		return err
	}
	c.show(w, r, http.StatusOK, view{
		Title: "Agents", Nav: navAgents, Lead: "Who answers. A channel is routed to one; a conversation may choose another.",
		Actions: button(Path+"agents/new", "plus", "New agent", ""),
	}, agentsPage(list.Agents, r.URL, list.Next))
	return nil
}

// agentView is the page of one agent.
type agentView struct {
	api.Agent
	Kind    api.AgentKind
	Keys    []api.Token
	Host    place
	Form    string // the one that was refused
	Typed   map[string]string
	Problem *Problem
}

func (v agentView) at(form, field string) string {
	if v.Form != form {
		return ""
	}
	return v.Problem.At(field)
}

func (v agentView) wrong(form string) string {
	if v.Form != form || v.Problem == nil || len(v.Problem.Errors) > 0 {
		return ""
	}
	return v.Problem.Detail
}

func (c *console) kindOf(r *http.Request, name string) (api.AgentKind, error) {
	kinds, err := get[kindList](c, r, "agents", "_kinds")
	if err != nil {
		return api.AgentKind{}, err
	}
	i := slices.IndexFunc(kinds.Kinds, func(k api.AgentKind) bool { return k.Kind == name })
	if i < 0 { // of a host that knew more
		return api.AgentKind{Kind: name}, nil
	}
	return kinds.Kinds[i], nil
}

func (c *console) loadAgent(r *http.Request) (agentView, error) {
	id := r.PathValue("id")
	a, err := get[api.Agent](c, r, "agents", id)
	if err != nil {
		return agentView{}, err
	}
	v := agentView{Agent: a, Host: c.place()}
	if v.Kind, err = c.kindOf(r, a.Kind); err != nil {
		return v, err
	}
	if v.Kind.Key {
		keys, err := get[tokenList](c, r, "agents", id, "keys"+most)
		if err != nil {
			return v, err
		}
		v.Keys = keys.Keys
	}
	return v, nil
}

func (c *console) showAgent(w http.ResponseWriter, r *http.Request) error {
	v, err := c.loadAgent(r)
	if err != nil {
		return err
	}
	c.agentPage(w, r, http.StatusOK, v)
	return nil
}

func (c *console) agentPage(w http.ResponseWriter, r *http.Request, status int, v agentView) {
	o := view{Title: v.Name, Nav: navAgents, Above: [2]string{"Agents", Path + "agents"}, Lead: v.Kind.About}
	if !v.BuiltIn {
		o.Actions = button(where("agents", v.Name, "edit"), "", "Edit", "plain")
	}
	c.show(w, r, status, o, agentPage(v))
}

func (c *console) refusedAgent(w http.ResponseWriter, r *http.Request, form string, typed map[string]string, why error) error {
	var p *Problem
	if !refusedInput(why, &p) {
		return why
	}
	v, err := c.loadAgent(r)
	if err != nil {
		return err
	}
	v.Form, v.Typed, v.Problem = form, typed, p
	c.agentPage(w, r, p.Status, v)
	return nil
}

func (c *console) rotateKey(w http.ResponseWriter, r *http.Request) error {
	sent, err := form(w, r)
	if err != nil {
		return err
	}
	in := map[string]string{"overlap": sent.Get("overlap"), "expires": sent.Get("expires")}
	var made struct {
		Secret string `json:"key"`
	}
	id := r.PathValue("id")
	if err := c.call(r, http.MethodPost, join([]string{"agents", id, "keys"}), in, &made); err != nil {
		return c.refusedAgent(w, r, "rotate", in, err)
	}
	return c.agentSecrets(w, r, "New key of "+id, id, made.Secret, "")
}

// agentSecrets shows what is shown once.
func (c *console) agentSecrets(w http.ResponseWriter, r *http.Request, title, id, key, secret string) error {
	a, err := get[api.Agent](c, r, "agents", id)
	if err != nil {
		return err
	}
	w.Header().Set("HX-Push-Url", where("agents", a.Name))
	c.show(w, r, http.StatusOK, view{Title: title, Nav: navAgents, Above: [2]string{a.Name, where("agents", a.Name)}}, agentSecretsPage(a, key, secret, c.place()))
	return nil
}

func (c *console) revokeAgentKey(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	before, err := get[api.Agent](c, r, "agents", id)
	if err != nil {
		return err
	}
	if err := c.call(r, http.MethodDelete, join([]string{"agents", id, "keys", r.PathValue("key")}), nil, nil); err != nil {
		return c.refusedAgent(w, r, "keys", nil, err)
	}
	done := "The key is revoked. The agent was not connected."
	if !before.Away {
		done = "The key is revoked. If the agent had come with it, it has been cut off."
	}
	return back(w, r, where("agents", id), done)
}

func (c *console) deleteAgent(w http.ResponseWriter, r *http.Request) error {
	sent, err := form(w, r)
	if err != nil {
		return err
	}
	a, err := get[api.Agent](c, r, "agents", r.PathValue("id"))
	if err != nil {
		return err
	}
	if typed := sent.Get("confirm"); typed != a.Name {
		return c.refusedAgent(w, r, "delete", map[string]string{"confirm": typed}, notConfirmed(a.Name))
	}
	if err := c.call(r, http.MethodDelete, join([]string{"agents", a.ID}), nil, nil); err != nil {
		return c.refusedAgent(w, r, "delete", map[string]string{"confirm": a.Name}, err)
	}
	return back(w, r, Path+"agents", "Agent "+a.Name+" is deleted, with its keys.")
}

// agentForm is what the forms of an agent hold, as it was typed.
type agentForm struct {
	url.Values
	Kind    api.AgentKind
	Problem *Problem
	Made    bool // it is there already: a secret that is left empty stays
}

// without is how a secret that was typed before a refusal is given up.
func (f agentForm) without() string {
	if f.Made {
		return "Leave it as it is"
	}
	return "Make the agent without it"
}

// secrets are the names of the form's fields that hold secrets.
func (f agentForm) secrets() []string {
	names := make([]string, len(f.Kind.Secrets))
	for i, name := range f.Kind.Secrets {
		names[i] = "config." + name
	}
	return names
}

func (f agentForm) at(field string) string { return f.Problem.At("body." + field) }

// config makes the config of what was typed. What is wrong with it, the API says.
func (f agentForm) config() (map[string]any, *Problem) {
	if faults := missed(f.Values, f.secrets()...); faults != nil {
		return nil, &Problem{Status: http.StatusUnprocessableEntity, Errors: faults}
	}
	out := map[string]any{}
	for _, field := range f.Kind.Fields {
		v, err := fieldValue(field, f.Get("config."+field.Name))
		if err != nil {
			return nil, &Problem{Status: http.StatusUnprocessableEntity, Errors: []Fault{{"body.config", field.Name + ": " + err.Error()}}}
		}
		switch {
		case v != nil:
			out[field.Name] = v
		case f.Made && !slices.Contains(f.Kind.Secrets, field.Name):
			out[field.Name] = nil // gone
		}
	}
	return out, nil
}

// fieldFault is what is wrong with the field of the config: the API names it at
// the beginning of what it says.
func (f agentForm) fieldFault(name string) string {
	if said := f.at("config." + name); said != "" {
		return said
	}
	said := f.at("config")
	if rest, ok := strings.CutPrefix(said, name+":"); ok {
		return strings.TrimSpace(rest)
	}
	if strings.HasPrefix(said, name+".") || strings.HasPrefix(said, name+"[") {
		return said
	}
	return ""
}

// rest is what is wrong that no field shows.
func (f agentForm) rest() string {
	if f.Problem == nil || f.Problem.Status == http.StatusPreconditionFailed {
		return ""
	}
	if len(f.Problem.Errors) == 0 {
		return f.Problem.Error()
	}
	if f.at("name") != "" || f.at("kind") != "" {
		return ""
	}
	for _, field := range f.Kind.Fields {
		if f.fieldFault(field.Name) != "" {
			return ""
		}
	}
	return f.Problem.Error()
}

func (c *console) newAgent(w http.ResponseWriter, r *http.Request) error {
	return c.newAgentPage(w, r, http.StatusOK, agentForm{Values: url.Values{"enabled": {"on"}}})
}

func (c *console) newAgentPage(w http.ResponseWriter, r *http.Request, status int, f agentForm) error {
	kinds, err := get[kindList](c, r, "agents", "_kinds")
	if err != nil {
		return err
	}
	kinds.Kinds = slices.DeleteFunc(kinds.Kinds, func(k api.AgentKind) bool { return k.Kind == "echo" })
	chosen := r.URL.Query().Get("kind")
	if f.Kind.Kind != "" {
		chosen = f.Kind.Kind
	}
	for _, k := range kinds.Kinds {
		if k.Kind == chosen {
			f.Kind = k
		}
	}
	o := view{Title: "New agent", Nav: navAgents, Above: [2]string{"Agents", Path + "agents"}, Lead: "How does it answer?"}
	if f.Kind.Kind != "" {
		o.Above, o.Lead = [2]string{"Kinds of agents", Path + "agents/new"}, f.Kind.About
	}
	c.show(w, r, status, o, newAgentPage(kinds.Kinds, f))
	return nil
}

func (c *console) createAgent(w http.ResponseWriter, r *http.Request) error {
	sent, err := form(w, r)
	if err != nil {
		return err
	}
	f := agentForm{Values: sent}
	if f.Kind, err = c.kindOf(r, sent.Get("kind")); err != nil {
		return err
	}
	config, p := f.config()
	var made struct {
		api.Agent
		Key    string `json:"key"`
		Secret string `json:"secret"`
	}
	if p == nil {
		in := map[string]any{"name": strings.TrimSpace(sent.Get("name")), "kind": sent.Get("kind"), "config": config, "enabled": sent.Has("enabled")}
		if err := c.call(r, http.MethodPost, "/agents", in, &made); err != nil && !refusedInput(err, &p) {
			return err
		}
	}
	if p != nil {
		f.Problem = p
		return c.newAgentPage(w, r, p.Status, f)
	}
	if made.Key == "" && made.Secret == "" {
		return back(w, r, where("agents", made.Name), "Agent "+made.Name+" is made.")
	}
	return c.agentSecrets(w, r, made.Name+" is made", made.Name, made.Key, made.Secret)
}

func (c *console) editAgent(w http.ResponseWriter, r *http.Request) error {
	v, err := c.loadAgent(r)
	if err != nil {
		return err
	}
	filled, err := agentFormOf(v.Agent, v.Kind)
	if err != nil {
		return err
	}
	c.editAgentPage(w, r, http.StatusOK, v.Agent, agentForm{Values: filled, Kind: v.Kind, Made: true})
	return nil
}

// agentFormOf fills the form with what an agent has; secrets are never shown.
func agentFormOf(a api.Agent, kind api.AgentKind) (url.Values, error) {
	f := url.Values{tagField: {a.ETag}, "name": {a.Name}}
	if a.Enabled {
		f.Set("enabled", "on")
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(a.Config, &config); err != nil {
		return nil, err
	}
	for _, field := range kind.Fields {
		if !slices.Contains(kind.Secrets, field.Name) {
			f.Set("config."+field.Name, fieldText(field, config[field.Name]))
		}
	}
	return f, nil
}

// mergeAgent brings a stale form of an agent up to date.
func (p *Problem) mergeAgent(typed url.Values, a api.Agent, kind api.AgentKind) error {
	was, err := opened(a, p.Changes)
	if err != nil {
		return err
	}
	then, err := agentFormOf(was, kind)
	if err != nil {
		return err
	}
	now, err := agentFormOf(a, kind)
	if err == nil {
		p.merge(typed, then, now)
	}
	return err
}

func (c *console) editAgentPage(w http.ResponseWriter, r *http.Request, status int, a api.Agent, f agentForm) {
	c.show(w, r, status, view{Title: "Edit " + a.Name, Nav: navAgents, Above: [2]string{a.Name, where("agents", a.Name)}, Lead: f.Kind.About}, editAgentPage(a, f))
}

func (c *console) updateAgent(w http.ResponseWriter, r *http.Request) error {
	sent, err := form(w, r)
	if err != nil {
		return err
	}
	v, err := c.loadAgent(r)
	if gone(err) {
		return c.goneAgentPage(w, r, sent)
	}
	if err != nil {
		return err
	}
	f := agentForm{Values: sent, Kind: v.Kind, Made: true}
	config, p := f.config()
	a := v.Agent
	if p == nil {
		in := map[string]any{"name": strings.TrimSpace(sent.Get("name")), "config": config, "enabled": sent.Has("enabled")}
		err := c.callWith(r, http.MethodPatch, join([]string{"agents", a.ID}), ifMatch(sent), in, &a)
		switch {
		case stale(err, &p):
			if err := p.mergeAgent(f.Values, a, v.Kind); err != nil {
				return err
			}
		case gone(err):
			return c.goneAgentPage(w, r, sent)
		case err != nil && !refusedInput(err, &p):
			return err
		}
	}
	if p != nil {
		f.Problem = p
		c.editAgentPage(w, r, p.Status, a, f)
		return nil
	}
	return back(w, r, where("agents", a.Name), "Saved. Agent "+a.Name+" is as it says here from now on.")
}

// goneAgentPage is the form of an agent that was deleted while it was open, with what was
// typed.
func (c *console) goneAgentPage(w http.ResponseWriter, r *http.Request, sent url.Values) error {
	kind, err := c.kindOf(r, sent.Get("kind"))
	if err != nil {
		return err
	}
	f := agentForm{Values: sent, Kind: kind, Made: true, Problem: deletedMeanwhile("agent")}
	c.show(w, r, http.StatusNotFound, view{Title: "The agent is gone", Nav: navAgents, Above: [2]string{"Agents", Path + "agents"}, Lead: kind.About},
		editAgentPage(api.Agent{ID: r.PathValue("id")}, f))
	return nil
}
