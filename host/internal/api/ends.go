package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
)

// door serves the routes of front ends.
type door struct {
	s   *server
	mux *http.ServeMux
}

var _ front.Door = door{}

// Operation implements front.Door.
func (d door) Operation(o front.Operation, h front.Handler) {
	op := opens(o.Scope, wholeHost, operation(o.Method, o.Path, o.ID, o.Summary, http.StatusOK))
	op.Parameters = nil
	for _, p := range o.Query {
		p.In = "query"
		op.Parameters = append(op.Parameters, p)
	}
	if o.Takes != "" {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{o.Takes: {Schema: &huma.Schema{Type: huma.TypeObject}}}}
	}
	op.Responses = responses(o.Gives, append(slices.Clone(o.Errors), 401, 403, 429)...)
	if o.Answer != nil {
		t := reflect.TypeOf(o.Answer)
		op.Responses["200"].Content[o.Gives].Schema = d.s.api.OpenAPI().Components.Schemas.Schema(t, true, o.ID+"Answer")
	}
	d.s.api.OpenAPI().AddOperation(&op)
	d.mux.HandleFunc(o.Method+" "+op.Path, func(w http.ResponseWriter, r *http.Request) {
		if r, _, ok := d.s.enter(w, r, o.Scope, wholeHost); ok {
			d.s.handle(w, r, h)
		}
	})
}

// Handle implements front.Door.
func (d door) Handle(pattern string, h front.Handler) {
	d.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { d.s.handle(w, r, h) })
}

// handle answers with what h answers, or with the problem that it returns.
func (s *server) handle(w http.ResponseWriter, r *http.Request, h front.Handler) {
	err := h(w, r)
	if err == nil {
		return
	}
	var refused *front.Refusal
	if !errors.As(err, &refused) {
		err = s.fault(err, r.URL.Path)
		s.refuse(w, err)
		return
	}
	switch {
	case refused.Code != "":
		err = coded(refused.Status, refused.Code, refused.Message)
	case refused.At != "":
		err = field(refused.Status, refused.At, refused.Message, "")
	default:
		err = quiet(refused.Status, refused.Message)
	}
	if refused.Retry > 0 {
		err = retryAfter(err, refused.Retry)
	}
	s.refuse(w, err)
}

// responses describes the answers of what is none of huma's operations.
func responses(gives string, problems ...int) map[string]*huma.Response {
	out := map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{gives: {}}}}
	for _, status := range problems {
		out[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: map[string]*huma.MediaType{"application/problem+json": {}}}
	}
	return out
}

// end is the front end whose channel it is; nil = it is none's.
func (s *server) end(row ledger.Channel) front.End {
	for _, e := range s.Fronts {
		if e.Kind().Name == row.Kind {
			return e
		}
	}
	return nil
}

// policyFields are the fields of a channel that can be changed, as REST calls them.
var policyFields = []string{
	"name", "enabled", "agent", "agents", "queue", "accept_capabilities", "allow_users", "profile", "queue_limits", "retention_days", "rate_limit",
}

// checkFixed refuses a change of what can't be changed of a channel that is a front
// end's or a plugin's. changed has the fields that are to change, as REST calls them.
func (s *server) checkFixed(row ledger.Channel, changed json.RawMessage) error {
	var found map[string]json.RawMessage
	if changed == nil {
		return nil
	}
	if err := json.Unmarshal(changed, &found); err != nil {
		return err
	}
	if _, ok := found["name"]; ok && row.Kind == plugin.Kind {
		return field(http.StatusConflict, "body.name", "is that of a plugin: rename it in plugins.yaml", "")
	}
	e := s.end(row)
	if e == nil {
		return nil
	}
	fixed := e.Kind().Fixed
	for _, name := range fixed {
		if _, ok := found[name]; ok {
			free := slices.DeleteFunc(slices.Clone(policyFields), func(f string) bool { return slices.Contains(fixed, f) })
			last := len(free) - 1
			return field(http.StatusConflict, "body."+name, "the channel is built in: expected "+strings.Join(free[:last], ", ")+" or "+free[last], "")
		}
	}
	return nil
}

// channelChanged makes a changed row take effect where its far end is.
func (s *server) channelChanged(ctx context.Context, row ledger.Channel) error {
	if row.Kind == plugin.Kind && s.Plugins != nil {
		s.Plugins.Changed(row)
	}
	if e := s.end(row); e != nil {
		return e.Changed(ctx, row)
	}
	return nil
}

// allKinds describes the kinds of channels.
func (s *server) allKinds() []Kind {
	all := []Kind{
		{kindBridge, true, true, "An adapter that connects by WebSocket with a token"},
		{plugin.Kind, false, false, "An adapter that the host runs as a process; plugins.yaml makes its channel"},
	}
	for _, e := range s.Fronts {
		k := e.Kind()
		all = append(all, Kind{Kind: k.Name, About: k.About})
	}
	return all
}

// checkKind refuses a channel of a kind that operators don't make.
func (s *server) checkKind(row ledger.Channel) error {
	switch {
	case row.Kind == kindBridge:
		return nil
	case row.Kind == plugin.Kind:
		return field(422, "body.kind", "channels of plugins are made by plugins.yaml: expected "+kindBridge, row.Kind)
	case s.end(row) != nil:
		return field(422, "body.kind", "there is one channel of this kind, which the host makes: expected "+kindBridge, row.Kind)
	}
	return field(422, "body.kind", "expected "+kindBridge, row.Kind)
}
