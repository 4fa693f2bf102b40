// Package api is the host's HTTP surface: the operator's REST API with its
// OpenAPI description, the event stream, and the upgrade of adapters.
package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Options are what the API works on; all but Pages, Bodies, Gate, Account, Fronts, Handlers, Plugins, AgentSockets, Metrics, Minutes, Origins and RefuseQueryToken are needed.
type Options struct {
	Store       Ledger
	Pages       *paging.Pages  // nil = one that only the API reads through
	Bodies      *intake.Bodies // nil = one that only the API reads through
	Attachments *attach.Store
	Hub         *hub.Hub
	Slots       *bridge.Slots
	Agents      *agent.Roster
	Plugins     Plugins            // nil = the host runs none
	Keys        *auth.Keys         // the operator's
	Failures    *netguard.Failures // counts wrong keys; nil = nobody does
	Gate        *auth.Gate         // of keys that operators gave away; nil = there are none
	Account     *auth.Account      // the operator's; nil = nobody can log in
	Fronts      []front.End        // each of a kind of its own

	Handlers map[string]http.Handler // what else is served, by pattern

	Assets  fs.FS
	Log     *slog.Logger
	Version string
	Now     func() time.Time
	Ready   func() error // nil error = the host can take messages
	Ending  func() bool  // the host ends, and takes no more; costs nothing. nil = not known

	AgentSockets *agent.Sockets // nil = no agent may dial in

	Metrics Metrics // nil = none are shown, and requests are not counted

	// Minutes reads the minutes of a channel, see Ledger.Minutes, with what is not
	// written down yet; nil = the store's alone.
	Minutes func(ctx context.Context, channel int64, first, past time.Time) ([]tally.Minute, error)

	Origins          []string // that a browser may call from; none = same origin only
	RefuseQueryToken bool     // adapters may not bring their token in the url
}

// Metrics shows what the host counts, and counts the requests that next answers.
type Metrics interface {
	http.Handler
	Count(next http.Handler) http.Handler
}

type server struct {
	Options
	api  huma.API
	stop context.Context // ends the event streams

	issuer    *auth.Issuer
	readiness readiness
	once      once // messages that are sent more than once
	readers   readers

	agentChange sync.Mutex // one at a time, from the row to the roster
}

// The bounds of a problem: what is wrong with a body may be more than the body.
const (
	maxErrors = 20
	maxDetail = 1000 // bytes of a text
)

// quiet makes problems that echo no whole bodies and no secrets.
func quiet(status int, message string, errs ...error) huma.StatusError {
	p := &huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: cutAt(message, maxDetail)}
	for i, err := range errs {
		if i == maxErrors {
			p.Errors = append(p.Errors, &huma.ErrorDetail{Message: fmt.Sprintf("and %d more", len(errs)-i)})
			break
		}
		var d *huma.ErrorDetail
		if !errors.As(err, &d) {
			d = &huma.ErrorDetail{Message: err.Error()}
		}
		shown := *d
		shown.Message, shown.Location = cutAt(d.Message, maxDetail), cutAt(d.Location, maxDetail)
		switch v := shown.Value.(type) {
		case bool, int, int64, float64, nil:
		case string:
			shown.Value = clip(v)
		default:
			shown.Value = nil
		}
		if secretField(d.Location) {
			shown.Value = nil
		}
		p.Errors = append(p.Errors, &shown)
	}
	return p
}

// cutAt is the text, or its beginning of at most so many bytes.
func cutAt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// secretField reports whether what is at a place of a request may be a secret.
func secretField(location string) bool {
	_, name, _ := strings.Cut(location, "body.")
	switch name {
	case "token", "key", "password", "present", "code", "value":
		return true
	}
	return location == "body" || strings.HasPrefix(name, "config") || strings.HasSuffix(location, ".token") || strings.HasSuffix(location, ".key") || strings.HasSuffix(location, ".value")
}

var quietly sync.Once

// New makes the handler. ctx ends its long-lived answers.
func New(ctx context.Context, o Options) http.Handler {
	quietly.Do(func() { huma.NewError = quiet }) // the library has no other place for it
	mux := http.NewServeMux()
	cfg := huma.DefaultConfig("Pontoon", o.Version)
	cfg.OpenAPIPath = "/api/v1/openapi"
	cfg.DocsPath = ""    // its page loads from other hosts
	cfg.SchemasPath = "" // messages have schemas of their own
	cfg.CreateHooks = nil
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key": {Type: "http", Scheme: "bearer", Description: "The operator's key, in admin.key, or one of /api/v1/keys with the scope that an operation names (admin has all). In a browser that is logged in its cookie counts as the operator's key"},
	}
	if o.Pages == nil {
		o.Pages = paging.New(o.Store)
	}
	if o.Minutes == nil {
		o.Minutes = o.Store.Minutes
	}
	if o.Bodies == nil {
		o.Bodies = intake.New(o.Log)
	}
	s := &server{Options: o, stop: ctx}
	s.issuer = s.newIssuer()
	s.api = humago.New(mux, cfg)
	s.api.UseMiddleware(s.authenticate, s.take)
	s.channels()
	s.tokens()
	s.apiKeys()
	s.operator()
	s.messages()
	s.frames()
	s.agents()
	s.agentKeys()
	s.adapters()
	s.plugins()
	s.secrets()
	s.audit()
	s.connections()
	s.statistics()
	s.uploads(mux)
	s.describeEvents()
	mux.HandleFunc("GET /api/v1/events", s.events)
	if o.Metrics != nil {
		mux.HandleFunc("GET /metrics", s.metrics)
	}
	mux.HandleFunc("GET "+wire.Path, s.upgrade)
	if o.AgentSockets != nil {
		mux.HandleFunc("GET "+agentwire.Path, s.upgradeAgent)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", noListing(http.FileServerFS(o.Assets))))
	mux.HandleFunc("GET "+schemaPath, s.schema)
	mux.Handle(attach.SignPath, o.Attachments)
	for pattern, h := range o.Handlers {
		mux.Handle(pattern, h)
	}
	for _, e := range o.Fronts {
		e.Routes(door{s, mux})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { notFound(mux, w, r) })
	return s.recoverer(s.cors(plainJSON(s.counted(mux))))
}

// plainJSON takes the body of a client that named no type, or the one that
// curl and others send by default, for what it can only be.
func plainJSON(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t := r.Header.Get("Content-Type"); t == "" || t == "application/x-www-form-urlencoded" {
			r.Header.Set("Content-Type", "application/json")
		}
		next.ServeHTTP(w, r)
	})
}

// operation describes one operation; every one needs a key, and says by opens
// which.
func operation(method, path, id, summary string, status int, errs ...int) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: "/api/v1" + path, Summary: summary, DefaultStatus: status,
		Errors: append(errs, http.StatusUnauthorized, http.StatusTooManyRequests), Security: []map[string][]string{{"key": {}}},
	}
}

// bearer reads an Authorization header; the scheme's case does not count.
func bearer(header string) (string, bool) {
	scheme, rest, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	token := strings.TrimSpace(rest)
	return token, token != ""
}

// readyFor is how long an answer of /readyz holds: it costs a commit, and
// anybody may ask.
const readyFor = time.Second

// readiness is the latest answer of /readyz.
type readiness struct {
	mu  sync.Mutex // guards what follows
	at  time.Time
	err error
}

func (r *readiness) check(ready func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) >= readyFor {
		r.err, r.at = ready(), time.Now()
	}
	return r.err
}

func (s *server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.Ending != nil && s.Ending() { // whatever it said less than readyFor ago
		plain(w, http.StatusServiceUnavailable, "the host is stopping\n")
		return
	}
	if err := s.readiness.check(s.Ready); err != nil {
		s.Log.Warn("not ready", "error", err)
		plain(w, http.StatusServiceUnavailable, "store is not writable\n")
		return
	}
	if err := s.pluginsSettled(); err != nil {
		plain(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	plain(w, http.StatusOK, "ready\n")
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

func noListing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "" || strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// notFound answers what no other handler of mux takes: there is no such path, or
// it has other methods. That of "/" takes all methods, which is why mux itself
// does not say so.
func notFound(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut} {
		asked := *r
		asked.Method = method
		if _, pattern := mux.Handler(&asked); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		noSuchPath(w, r)
		return
	}
	list := strings.Join(allowed, ", ")
	w.Header().Set("Allow", list)
	problem(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s takes %s, not %.32s", r.URL.Path, list, r.Method))
}

func noSuchPath(w http.ResponseWriter, r *http.Request) {
	problem(w, http.StatusNotFound, "no such path: "+r.URL.Path)
}

// problem writes an RFC 9457 problem outside of huma's operations.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(mustJSON(&huma.ErrorModel{Title: http.StatusText(status), Status: status, Detail: detail}), '\n'))
}

// refuse answers with the problem that the error is, as huma's operations do.
func (s *server) refuse(w http.ResponseWriter, err error) {
	var p *huma.ErrorModel
	if !errors.As(err, &p) {
		s.Log.Error("request failed", "error", err)
		problem(w, http.StatusInternalServerError, "internal error")
		return
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	maps.Copy(w.Header(), headersOf(err))
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(mustJSON(p), '\n')) // the client is told or gone
}

// fault turns an error into a problem; what is not known is "internal" and logged.
func (s *server) fault(err error, where string) error {
	var used *ledger.InUseError
	var known huma.StatusError
	switch {
	case errors.As(err, &known): // it is a problem already
		return err
	case errors.Is(err, ledger.ErrNotFound):
		return huma.Error404NotFound(where + ": not found")
	case errors.Is(err, ledger.ErrRemoved):
		return huma.Error404NotFound(where + ": deleted")
	case errors.Is(err, ledger.ErrNameTaken):
		return field(http.StatusConflict, "body.name", "is taken: choose another name", "")
	case errors.Is(err, ledger.ErrTokenTaken):
		return field(http.StatusConflict, "body.token", "is in use or was used before: choose another token", "")
	case errors.Is(err, ledger.ErrTooMany):
		return huma.Error409Conflict(where + ": " + err.Error() + ": delete some")
	case errors.As(err, &used):
		return huma.Error409Conflict(where + " is in use by channel " + shortList(used.Channels) + ": route them to another agent first")
	case errors.Is(err, paging.ErrFull):
		return retryAfter(huma.Error503ServiceUnavailable(err.Error()), paging.RetryAfter)
	case ledger.Failing(err):
		s.Log.Error("storage unavailable", "where", where, "error", err)
		return huma.Error503ServiceUnavailable("storage is unavailable: try again later")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return huma.Error503ServiceUnavailable("gave up before it was done")
	}
	s.Log.Error("request failed", "where", where, "error", err)
	return huma.Error500InternalServerError("internal error")
}

// field is a problem that names one field. value is left out where it may be a
// secret.
func field(status int, location, message, value string) error {
	d := &huma.ErrorDetail{Location: location, Message: message}
	if value != "" {
		d.Value = value
	}
	return quiet(status, location+": "+message, d)
}

// cors answers browsers of the origins that the operator named.
func (s *server) cors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		for _, o := range s.Origins {
			if o != origin || origin == "" {
				continue
			}
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", origin)
			h.Add("Vary", "Origin")
			h.Set("Access-Control-Expose-Headers", "ETag")
			if r.Method == http.MethodOptions {
				h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match, Last-Event-ID, Range")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// recoverer makes a defect cost one request.
func (s *server) recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler: // an answer that broke off: its reader is to see that
				panic(p)
			default:
				s.Log.Error("request panicked", "method", r.Method, "path", r.URL.Path, "error", p)
				problem(w, http.StatusInternalServerError, "internal error")
			}
		}()
		next.ServeHTTP(w, r)
	})
}
