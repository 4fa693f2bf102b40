package bridle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	model "github.com/pontoon-bridge/pontoon/sdk/message/bridle"
)

// codeOff is that of everything here while there is no secret for tokens.
const codeOff = "BRIDLE_OFF"

const off = "Bridle's browser side is off: the host was started without PONTOON_BRIDLE_JWT_SECRET"

// Routes implements front.End: the HTTP side below /api/agent/.
func (f *Front) Routes(d front.Door) {
	h := routes{f}
	d.Handle("GET /api/agent/health", h.on(h.health))
	d.Handle("GET /api/agent/{agent}/health", h.on(h.health))
	d.Handle("GET /api/agent/agents", h.on(h.asUser(h.list)))
	d.Handle("GET /api/agent/list", h.on(h.asUser(h.list)))
	d.Handle("POST /api/agent/{agent}/message", h.on(h.asUser(h.message)))
	d.Handle("POST /api/agent/{agent}/message/sync", h.on(h.asUser(h.sync)))
	d.Handle("GET /api/agent/{agent}/transcript", h.on(h.asUser(h.transcript)))
	d.Handle("DELETE /api/agent/{agent}/transcript", h.on(h.asUser(h.clear)))
}

// routes are the HTTP side.
type routes struct{ f *Front }

// refuse is the refusal of a request.
func refuse(status int, why string) error {
	return &front.Refusal{Status: status, Message: why}
}

// on answers for what is off.
func (h routes) on(next front.Handler) front.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if h.f.Secret == "" {
			return refuse(http.StatusServiceUnavailable, off)
		}
		if !isAgentID(r.PathValue("agent")) {
			return refuse(http.StatusNotFound, "agentId: found no name of an agent")
		}
		return next(w, r)
	}
}

// asUser lets in whoever has a valid token.
func (h routes) asUser(next func(http.ResponseWriter, *http.Request, *user) error) front.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		u, wait, err := user{}, time.Duration(0), errToken
		if strings.EqualFold(scheme, "Bearer") {
			u, wait, err = h.f.checkFrom(r.RemoteAddr, strings.TrimSpace(token))
		}
		if wait > 0 {
			return &front.Refusal{Status: http.StatusTooManyRequests, Message: netguard.TooManyFailures, Retry: wait}
		}
		if err != nil {
			return refuse(http.StatusUnauthorized, err.Error()+": expected Authorization: Bearer JWT")
		}
		if name := r.PathValue("agent"); name != "" && !h.f.mayAsk(name) {
			return refuse(http.StatusForbidden, "the channel does not let its users speak to this agent")
		}
		return next(w, r, &u)
	}
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
func (h routes) health(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("agent")
	all := h.f.clients()
	out := health{OK: true, AgentID: name, BrowserClients: all[name]}
	if name != "" {
		_, out.AgentConnected = h.f.present(name)
		return front.Answer(w, out)
	}
	for _, n := range all {
		out.BrowserClients += n
	}
	for _, name := range h.f.Hub.Roster().Names() {
		a, _ := h.f.Hub.Roster().Agent(name)
		if p, ok := a.(hub.Presence); ok {
			_, away := p.Away()
			out.AgentConnected = out.AgentConnected || !away
		}
	}
	return front.Answer(w, out)
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
func (h routes) list(w http.ResponseWriter, _ *http.Request, _ *user) error {
	n := h.f.clients()
	out := []listed{}
	for _, name := range h.f.Hub.Roster().Names() {
		if _, connected := h.f.present(name); connected && h.f.mayAsk(name) {
			out = append(out, listed{name, n[name]})
		}
	}
	return front.Answer(w, out)
}

// read reads a message's body.
func (h routes) read(w http.ResponseWriter, r *http.Request, u *user) (in model.Message, err error) {
	if !h.f.posts.allow(u.client) {
		return in, &front.Refusal{
			Status: http.StatusTooManyRequests, Message: fmt.Sprintf("more than %d messages a second: send it again later", postRate), Retry: time.Second,
		}
	}
	body, err := front.ReadBody(h.f.Bodies, r, intake.Limits{Bytes: MaxBody, Values: intake.MaxValues})
	if err != nil {
		return in, err
	}
	defer body.Close()
	if in, err = model.Parse(body.JSON); err != nil {
		return in, refuse(http.StatusBadRequest, err.Error())
	}
	return in, nil
}

// denied tells why a message was not taken.
func denied(err error) error {
	if errors.Is(err, errNoAgent) {
		return refuse(http.StatusNotFound, err.Error())
	}
	var r refusal
	if !errors.As(err, &r) {
		return fmt.Errorf("take message: %w", err)
	}
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
	return refuse(status, r.why)
}

// message takes a message, and answers once it is on disk.
func (h routes) message(w http.ResponseWriter, r *http.Request, u *user) error {
	in, err := h.read(w, r, u)
	if err != nil {
		return err
	}
	q := &question{stored: make(chan error, 1)}
	err = h.f.ask(u, r.PathValue("agent"), beside{}, in, q)
	if err == nil {
		select {
		case err = <-q.stored:
		case <-r.Context().Done():
			return nil // nobody reads the answer
		}
	}
	if err != nil {
		return denied(err)
	}
	return front.Answer(w, okay{true})
}

// sync takes a message and answers with the first answer to it.
func (h routes) sync(w http.ResponseWriter, r *http.Request, u *user) error {
	in, err := h.read(w, r, u)
	if err != nil {
		return err
	}
	agent := r.PathValue("agent")
	key := conversation(agent, u.client)
	if !h.f.startSync(key) {
		return &front.Refusal{
			Status: http.StatusServiceUnavailable, Message: fmt.Sprintf("too many calls wait: at most %d of one user", maxSyncsOfClient), Retry: time.Second,
		}
	}
	defer h.f.endSync(key)
	q := &question{stored: make(chan error, 1), answer: make(chan reply, 1)}
	err = h.f.ask(u, agent, beside{}, in, q)
	if errors.Is(err, errNoAgent) {
		s := absentAgent()
		s.Type = ""
		return front.Answer(w, s)
	}
	defer h.f.forget(q)
	if err == nil {
		var s *said
		if s, err = h.f.wait(r.Context(), q); err == nil {
			return front.Answer(w, s)
		}
	}
	if r.Context().Err() != nil {
		return nil // nobody reads the answer
	}
	return denied(err)
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
func (h routes) transcript(w http.ResponseWriter, r *http.Request, u *user) error {
	which, client, err := whichTranscript(r, u)
	if err != nil {
		return err
	}
	page, hidden, err := h.f.transcript(r.Context(), conversation(r.PathValue("agent"), client))
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	front.Stream(w, r, page, h.f.Log, fmt.Sprintf(`{"channel":%q,"messages":[`, which), func(e *ledger.Entry) []any {
		if e.ID <= hidden || !front.Shown(*e) {
			return nil
		}
		return []any{line{e.ID.String(), role(e.Direction), e.Text, e.ID.Time().UnixMilli()}}
	}, struct{}{})
	return nil
}

// clear hides what was said until now, and tells the agent.
func (h routes) clear(w http.ResponseWriter, r *http.Request, u *user) error {
	_, client, err := whichTranscript(r, u)
	if err != nil {
		return err
	}
	agent := r.PathValue("agent")
	if err := h.f.clear(r.Context(), conversation(agent, client)); err != nil {
		return fmt.Errorf("clear transcript: %w", err)
	}
	h.f.Agents.Clear(agent, client)
	return front.Answer(w, okay{true})
}

// Which of a user's transcripts: the own one, or that of all admins.
const (
	channelWeb   = "web"
	channelAdmin = "admin"
)

// whichTranscript is the transcript that a request is for, and whose it is.
func whichTranscript(r *http.Request, u *user) (which, client string, err error) {
	which = r.URL.Query().Get("channel")
	if which == "" {
		which = channelWeb
		if u.admin() {
			which = channelAdmin
		}
	}
	switch {
	case which == channelAdmin && !u.admin():
		return "", "", refuse(http.StatusForbidden, "channel: found admin, which needs the role "+roleAdmin)
	case which == channelAdmin:
		return which, clientAdmin, nil
	case which != channelWeb:
		return "", "", refuse(http.StatusBadRequest, fmt.Sprintf("channel: found %.40q, expected web or admin", which))
	case u.admin() && checkClient(u.sub) != nil: // who has no id has said nothing as a user
		return which, "", nil
	}
	return which, u.sub, nil
}
