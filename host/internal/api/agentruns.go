package api

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/front/agui"
	"github.com/pontoon-bridge/pontoon/host/internal/store"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// agentRuns are the routes of the AG-UI front end, which keys of scope agent:run
// open.
func (s *server) agentRuns(mux *http.ServeMux) {
	if s.AGUI == nil {
		return
	}
	op := opens(auth.ScopeAgentRun, wholeHost, operation("GET", "/agent/history", "agent-history", "Messages of a thread of this key as AG-UI has them: the newest, oldest first (scope agent:run)", 200, 403, 404, 422))
	huma.Register(s.api, op, s.agentHistory)
	s.describe(opens(auth.ScopeAgentRun, wholeHost, operation("POST", "/agent/run", "agent-run",
		"Run the agent on the newest message of a RunAgentInput; answers with AG-UI events (scope agent:run)", http.StatusOK)), "application/json", "text/event-stream")
	s.describe(opens(auth.ScopeAgentRun, wholeHost, operation("POST", "/agent/attachments", "agent-upload",
		"Keep a file, the form's field file, for messages of this key (scope agent:run)", http.StatusOK)), "multipart/form-data", "application/json")
	mux.HandleFunc("POST /api/v1/agent/run", s.agentRun)
	mux.HandleFunc("POST /api/v1/agent/attachments", s.agentUpload)
}

// responses describes the answers of what is none of huma's operations.
func responses(gives string, problems ...int) map[string]*huma.Response {
	out := map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{gives: {}}}}
	for _, status := range problems {
		out[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: map[string]*huma.MediaType{"application/problem+json": {}}}
	}
	return out
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

// agentRun answers a RunAgentInput with the events of its run. What is wrong with
// the request is a problem, and nothing is stored; what goes wrong later is an
// event.
func (s *server) agentRun(w http.ResponseWriter, r *http.Request) {
	r, h, ok := s.enter(w, r, auth.ScopeAgentRun, wholeHost)
	if !ok {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, agui.MaxBody))
	if err != nil {
		s.refuse(w, bodyFault(err))
		return
	}
	run, err := s.AGUI.Begin(r.Context(), h, body)
	if err != nil {
		if errors.Is(err, agui.ErrBusy) {
			w.Header().Set("Retry-After", "1")
		}
		s.refuse(w, s.runFault(err))
		return
	}
	defer run.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := newSSE(w)
	defer func() { _ = out.c.SetWriteDeadline(time.Time{}) }() // the connection may serve others
	if err := run.Stream(r.Context(), func(b []byte) error { return out.write(string(b)) }); err != nil {
		s.Log.Debug("run not read to its end", "remote", r.RemoteAddr, "error", err)
	}
}

func bodyFault(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return quiet(http.StatusRequestEntityTooLarge, "body: found too much, expected at most "+strconv.FormatInt(large.Limit, 10)+" bytes")
	}
	return quiet(http.StatusBadRequest, "body: broke off before its end")
}

// runFault is the problem of a run that did not begin.
func (s *server) runFault(err error) error {
	var bad *agui.Bad
	var refused *wire.Error
	var failed *agui.Failure
	switch {
	case errors.As(err, &bad):
		return field(http.StatusUnprocessableEntity, bad.At, bad.Message, "")
	case errors.Is(err, agui.ErrDisabled):
		return huma.Error409Conflict(err.Error())
	case errors.Is(err, agui.ErrBusy):
		return huma.Error429TooManyRequests(err.Error())
	case errors.As(err, &failed):
		return coded(http.StatusServiceUnavailable, failed.Code, failed.Message)
	case errors.As(err, &refused):
		status := http.StatusUnprocessableEntity
		switch refused.Code {
		case wire.CodeRateLimited:
			status = http.StatusTooManyRequests
		case wire.CodeStorageUnavailable:
			status = http.StatusServiceUnavailable
		case wire.CodeTooLarge:
			status = http.StatusRequestEntityTooLarge
		case wire.CodeInternal:
			status = http.StatusInternalServerError
		}
		return coded(status, string(refused.Code), refused.Message)
	}
	return s.fault(err, "run")
}

type agentHistoryBody struct {
	Messages   []agui.Said `json:"messages"`
	NextCursor string      `json:"next_cursor,omitempty" doc:"Of older messages"`
}

func (s *server) agentHistory(ctx context.Context, in *struct {
	Page
	Thread string `query:"threadId" required:"true" minLength:"1" maxLength:"512"`
}) (*body[agentHistoryBody], error) {
	before, err := in.after()
	if err != nil {
		return nil, err
	}
	said, next, err := s.AGUI.History(ctx, holderOf(ctx), in.Thread, store.MessageID(before), in.Limit)
	if errors.Is(err, store.ErrNotFound) && before != 0 {
		return nil, field(422, "query.cursor", "expected a next_cursor of the same thread", in.Cursor)
	}
	if err != nil {
		return nil, s.fault(err, "thread "+clip(in.Thread))
	}
	out := agentHistoryBody{Messages: orEmpty(said)}
	if next != 0 {
		out.NextCursor = store.Cursor(int64(next))
	}
	return &body[agentHistoryBody]{out}, nil
}
