package bridle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	model "github.com/pontoon-bridge/pontoon/sdk/message/bridle"
)

// codeOff is that of everything here while there is no secret for tokens.
const codeOff = "BRIDLE_OFF"

const off = "Bridle's browser side is off: the host was started without PONTOON_BRIDLE_JWT_SECRET"

// Problem answers a request with what is wrong, as the rest of the API does.
type Problem func(w http.ResponseWriter, status int, detail string)

// Routes serves the HTTP side below /api/agent/.
func (f *Front) Routes(mux *http.ServeMux, problem Problem) {
	h := routes{f, problem}
	mux.HandleFunc("GET /api/agent/health", h.on(h.health))
	mux.HandleFunc("GET /api/agent/{agent}/health", h.on(h.health))
	mux.HandleFunc("GET /api/agent/agents", h.on(h.asUser(h.list)))
	mux.HandleFunc("GET /api/agent/list", h.on(h.asUser(h.list)))
	mux.HandleFunc("POST /api/agent/{agent}/message", h.on(h.asUser(h.message)))
	mux.HandleFunc("POST /api/agent/{agent}/message/sync", h.on(h.asUser(h.sync)))
	mux.HandleFunc("GET /api/agent/{agent}/transcript", h.on(h.asUser(h.transcript)))
	mux.HandleFunc("DELETE /api/agent/{agent}/transcript", h.on(h.asUser(h.clear)))
}

// routes are the HTTP side.
type routes struct {
	f       *Front
	problem Problem
}

// on answers for what is off.
func (h routes) on(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h.f.Secret == "" {
			h.problem(w, http.StatusServiceUnavailable, off)
			return
		}
		if !isAgentID(r.PathValue("agent")) {
			h.problem(w, http.StatusNotFound, "agentId: found no name of an agent")
			return
		}
		next(w, r)
	}
}

// asUser lets in whoever has a valid token.
func (h routes) asUser(next func(http.ResponseWriter, *http.Request, *user)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		u, wait, err := user{}, time.Duration(0), errToken
		if strings.EqualFold(scheme, "Bearer") {
			u, wait, err = h.f.checkFrom(r.RemoteAddr, strings.TrimSpace(token))
		}
		if wait > 0 {
			w.Header().Set("Retry-After", netguard.Seconds(wait))
			h.problem(w, http.StatusTooManyRequests, netguard.TooManyFailures)
			return
		}
		if err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			h.problem(w, http.StatusUnauthorized, err.Error()+": expected Authorization: Bearer JWT")
			return
		}
		if name := r.PathValue("agent"); name != "" && !h.f.mayAsk(name) {
			h.problem(w, http.StatusForbidden, "the channel does not let its users speak to this agent")
			return
		}
		next(w, r, &u)
	}
}

func answer(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("bridle: marshal answer: " + err.Error()) // our own structs of strings and valid JSON
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n')) // the client is told or gone
}

type okay struct {
	OK bool `json:"ok"`
}

type health struct {
	OK             bool   `json:"ok"`
	AgentConnected bool   `json:"agentConnected"`
	BrowserClients int    `json:"browserClients"`
	AgentID        string `json:"agentId,omitempty"`
}

// health tells whether the agent is there, or any of those that come to the host.
func (h routes) health(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("agent")
	all := h.f.clients()
	out := health{OK: true, AgentID: name, BrowserClients: all[name]}
	if name != "" {
		_, out.AgentConnected = h.f.present(name)
		answer(w, out)
		return
	}
	for _, n := range all {
		out.BrowserClients += n
	}
	for _, name := range h.f.Hub.Agents.Names() {
		a, _ := h.f.Hub.Agents.Agent(name)
		if p, ok := a.(hub.Presence); ok {
			_, away := p.Away()
			out.AgentConnected = out.AgentConnected || !away
		}
	}
	answer(w, out)
}

// clients counts the users that are connected, by their agent.
func (f *Front) clients() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := map[string]int{}
	for key := range f.browsers {
		agent, _, _ := strings.Cut(key, "/")
		n[agent]++
	}
	return n
}

type listed struct {
	AgentID string `json:"agentId"`
	Clients int    `json:"clients"`
}

// list names the agents that a browser may speak to and that are there.
func (h routes) list(w http.ResponseWriter, _ *http.Request, _ *user) {
	n := h.f.clients()
	out := []listed{}
	for _, name := range h.f.Hub.Agents.Names() {
		if _, connected := h.f.present(name); connected && h.f.mayAsk(name) {
			out = append(out, listed{name, n[name]})
		}
	}
	answer(w, out)
}

// read reads a message's body; what is wrong is answered.
func (h routes) read(w http.ResponseWriter, r *http.Request, u *user) (in model.Message, ok bool) {
	if !h.f.posts.allow(u.client) {
		w.Header().Set("Retry-After", "1")
		h.problem(w, http.StatusTooManyRequests, fmt.Sprintf("more than %d messages a second: send it again later", postRate))
		return in, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		h.problem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", MaxBody))
		return in, false
	}
	if err == nil {
		in, err = model.Parse(body)
	}
	if err != nil {
		h.problem(w, http.StatusBadRequest, err.Error())
	}
	return in, err == nil
}

// deny answers for a message that was not taken.
func (h routes) deny(w http.ResponseWriter, err error) {
	var r refusal
	switch {
	case errors.Is(err, errNoAgent):
		h.problem(w, http.StatusNotFound, err.Error())
	case !errors.As(err, &r):
		h.f.Log.Error("message not taken", "error", err)
		h.problem(w, http.StatusInternalServerError, "internal error")
	default:
		status := http.StatusBadRequest
		switch r.code {
		case codeTooLarge:
			status = http.StatusRequestEntityTooLarge
		case codeRate:
			status = http.StatusTooManyRequests
		case codeForbidden:
			status = http.StatusForbidden
		case codeStorage, codeDisabled, codeStopping:
			status = http.StatusServiceUnavailable
		case codeInternal:
			status = http.StatusInternalServerError
		}
		h.problem(w, status, r.why)
	}
}

// message takes a message, and answers once it is on disk.
func (h routes) message(w http.ResponseWriter, r *http.Request, u *user) {
	in, ok := h.read(w, r, u)
	if !ok {
		return
	}
	q := &question{stored: make(chan error, 1)}
	err := h.f.ask(u, r.PathValue("agent"), beside{}, in, q)
	if err == nil {
		select {
		case err = <-q.stored:
		case <-r.Context().Done():
			return
		}
	}
	if err != nil {
		h.deny(w, err)
		return
	}
	answer(w, okay{true})
}

// sync takes a message and answers with the first answer to it.
func (h routes) sync(w http.ResponseWriter, r *http.Request, u *user) {
	in, ok := h.read(w, r, u)
	if !ok {
		return
	}
	agent := r.PathValue("agent")
	key := conversation(agent, u.client)
	if !h.f.startSync(key) {
		w.Header().Set("Retry-After", "1")
		h.problem(w, http.StatusServiceUnavailable, fmt.Sprintf("too many calls wait: at most %d of one user", maxSyncsOfClient))
		return
	}
	defer h.f.endSync(key)
	q := &question{stored: make(chan error, 1), answer: make(chan reply, 1)}
	err := h.f.ask(u, agent, beside{}, in, q)
	if errors.Is(err, errNoAgent) {
		s := absentAgent()
		s.Type = ""
		answer(w, s)
		return
	}
	defer h.f.forget(q)
	if err == nil {
		var s *said
		if s, err = h.f.wait(r.Context(), q); err == nil {
			answer(w, s)
			return
		}
	}
	if r.Context().Err() == nil {
		h.deny(w, err)
	}
}

// wait waits for the first answer, or for as long as a call may.
func (f *Front) wait(ctx context.Context, q *question) (*said, error) {
	late, stop := f.After(f.SyncTime)
	defer stop()
	for {
		select {
		case err := <-q.stored:
			if err != nil {
				return nil, err
			}
		case r := <-q.answer:
			if r.said == nil && r.err == nil {
				return timeout(), nil
			}
			if r.err != nil {
				return nil, r.err
			}
			own := *r.said
			own.Type = ""
			return &own, nil
		case <-late:
			return timeout(), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// timeout is the answer to a call that none came for.
func timeout() *said {
	return &said{Text: "Timeout: no response from agent", TS: time.Now().UnixMilli()}
}

// startSync counts a call that waits; false if there are too many.
func (f *Front) startSync(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting >= f.MaxSyncs || f.syncs[key] >= maxSyncsOfClient {
		return false
	}
	f.waiting++
	f.syncs[key]++
	return true
}

func (f *Front) endSync(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting--
	if f.syncs[key]--; f.syncs[key] == 0 {
		delete(f.syncs, key)
	}
}

// transcript answers with what was said, oldest first.
func (h routes) transcript(w http.ResponseWriter, r *http.Request, u *user) {
	which, client, ok := h.which(w, r, u)
	if !ok {
		return
	}
	messages, err := h.f.transcript(r.Context(), conversation(r.PathValue("agent"), client))
	if err != nil {
		h.fault(w, err)
		return
	}
	answer(w, transcript{which, messages})
}

// clear hides what was said until now, and tells the agent.
func (h routes) clear(w http.ResponseWriter, r *http.Request, u *user) {
	_, client, ok := h.which(w, r, u)
	if !ok {
		return
	}
	agent := r.PathValue("agent")
	if err := h.f.hide(r.Context(), conversation(agent, client)); err != nil {
		h.fault(w, err)
		return
	}
	h.f.Agents.Clear(agent, client)
	answer(w, okay{true})
}

// Which of a user's transcripts: the own one, or that of all admins.
const (
	channelWeb   = "web"
	channelAdmin = "admin"
)

// which is the transcript that a request is for, and whose it is.
func (h routes) which(w http.ResponseWriter, r *http.Request, u *user) (which, client string, ok bool) {
	which = r.URL.Query().Get("channel")
	if which == "" {
		which = channelWeb
		if u.admin() {
			which = channelAdmin
		}
	}
	switch {
	case which == channelAdmin && !u.admin():
		h.problem(w, http.StatusForbidden, "channel: found admin, which needs the role "+roleAdmin)
		return "", "", false
	case which == channelAdmin:
		return which, clientAdmin, true
	case which != channelWeb:
		h.problem(w, http.StatusBadRequest, fmt.Sprintf("channel: found %.40q, expected web or admin", which))
		return "", "", false
	case u.admin() && checkClient(u.sub) != nil: // who has no id has said nothing as a user
		return which, "", true
	}
	return which, u.sub, true
}

func (h routes) fault(w http.ResponseWriter, err error) {
	if sqlite.Failing(err) {
		h.problem(w, http.StatusServiceUnavailable, "storage is unavailable: try again later")
		return
	}
	h.f.Log.Error("request failed", "error", err)
	h.problem(w, http.StatusInternalServerError, "internal error")
}
