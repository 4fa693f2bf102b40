package agui

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// writeTimeout is how long a client may take nothing of a run's events.
const writeTimeout = 10 * time.Second

// The bounds of a page of history, as those of every list of the API.
const (
	defaultPage = 50
	maxPage     = 500
	maxCursor   = 64
)

// Routes implements front.End: three operations, which keys of scope agent:run open.
func (f *Front) Routes(d front.Door) {
	op := func(method, path, id, summary, takes, gives string) front.Operation {
		return front.Operation{
			Method: method, Path: path, ID: id, Summary: summary, Scope: auth.ScopeAgentRun, Takes: takes, Gives: gives,
			Errors: []int{400, 409, 413, 415, 422, 503},
		}
	}
	d.Operation(op("POST", "/agent/run", "agent-run", "Run the agent on the newest message of a RunAgentInput; answers with AG-UI events (scope agent:run)",
		"application/json", "text/event-stream"), f.run)
	upload := op("POST", "/agent/attachments", "agent-upload", "Keep a file, the form's field file, for messages of this key (scope agent:run)", "multipart/form-data", "application/json")
	upload.Answer = attach.Uploaded{}
	d.Operation(upload, f.upload)
	d.Operation(front.Operation{
		Method: "GET", Path: "/agent/history", ID: "agent-history", Scope: auth.ScopeAgentRun, Gives: "application/json", Answer: page{}, Errors: []int{404, 422, 503},
		Summary: "Messages of a thread of this key as AG-UI has them: the newest, oldest first (scope agent:run)",
		Query: []*huma.Param{
			{Name: "threadId", Required: true, Schema: &huma.Schema{Type: huma.TypeString, MinLength: to(1), MaxLength: to(maxThread)}},
			{Name: "limit", Description: "Most messages to return", Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: to(1.0), Maximum: to(float64(maxPage)), Default: defaultPage}},
			{Name: "cursor", Description: "next_cursor of the page before", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: to(maxCursor)}},
		},
	}, f.history)
}

func to[T any](v T) *T { return &v }

// holderOf is whose key opened the route.
func holderOf(r *http.Request) auth.Holder {
	h, _ := auth.HolderOf(r.Context())
	return h
}

// run answers a RunAgentInput with the events of its run. What is wrong with the
// request is a problem, and nothing is stored; what goes wrong later is an event.
func (f *Front) run(w http.ResponseWriter, r *http.Request) error {
	body, err := front.ReadBody(f.Bodies, r, intake.Limits{Bytes: MaxBody})
	if err != nil {
		return err
	}
	run, err := f.begin(r.Context(), holderOf(r), body)
	if err != nil {
		return runRefusal(err)
	}
	defer run.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	c := http.NewResponseController(w)
	defer func() { _ = c.SetWriteDeadline(time.Time{}) }() // the connection may serve others
	err = run.Stream(r.Context(), func(b []byte) error {
		_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := w.Write(b); err != nil {
			return err
		}
		return c.Flush()
	})
	if err != nil {
		f.Log.Debug("run not read to its end", "remote", r.RemoteAddr, "error", err)
	}
	return nil
}

// runRefusal tells why a run did not begin.
func runRefusal(err error) error {
	var bad *Bad
	var refused *wire.Error
	var failed *Failure
	switch err := front.NoBody(err); {
	case errors.As(err, new(*front.Refusal)):
		return err
	case errors.As(err, &bad):
		return &front.Refusal{Status: http.StatusUnprocessableEntity, At: bad.At, Message: bad.Message}
	case errors.Is(err, ErrDisabled):
		return &front.Refusal{Status: http.StatusConflict, Message: err.Error()}
	case errors.Is(err, ErrBusy):
		return &front.Refusal{Status: http.StatusTooManyRequests, Message: err.Error(), Retry: time.Second}
	case errors.As(err, &failed):
		return &front.Refusal{Status: http.StatusServiceUnavailable, Code: failed.Code, Message: failed.Message}
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
		return &front.Refusal{Status: status, Code: string(refused.Code), Message: refused.Message}
	}
	return fmt.Errorf("begin run: %w", err)
}

// upload keeps a file for messages of the key.
func (f *Front) upload(w http.ResponseWriter, r *http.Request) error {
	by := holderOf(r).Ref()
	made, err := front.KeepFile(w, r, f.Attachments, by, by)
	if err != nil {
		return err
	}
	return front.Answer(w, made)
}

// page is a page of a thread's history.
type page struct {
	Messages   []Said `json:"messages"`
	NextCursor string `json:"next_cursor,omitempty" doc:"Of older messages"`
}

func (f *Front) history(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	bad := func(at, message string) error {
		return &front.Refusal{Status: http.StatusUnprocessableEntity, At: "query." + at, Message: message}
	}
	thread, n := q.Get("threadId"), defaultPage
	if thread == "" || len(thread) > maxThread {
		return bad("threadId", fmt.Sprintf("found %d bytes, expected 1 to %d", len(thread), maxThread))
	}
	if text := q.Get("limit"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > maxPage {
			return bad("limit", fmt.Sprintf("found %.20q, expected 1 to %d", text, maxPage))
		}
	}
	var before ledger.MessageID
	if text := q.Get("cursor"); text != "" {
		at, ok := ledger.ParseCursor(text)
		if !ok {
			return bad("cursor", fmt.Sprintf("found %.80q, expected a next_cursor of an earlier answer", text))
		}
		before = ledger.MessageID(at)
	}
	found, err := f.History(r.Context(), holderOf(r), thread, before, n)
	switch {
	case errors.Is(err, ledger.ErrNotFound) && before != 0:
		return bad("cursor", "expected a next_cursor of the same thread")
	case errors.Is(err, ledger.ErrNotFound):
		return &front.Refusal{Status: http.StatusNotFound, Message: fmt.Sprintf("thread %.80s: not found", thread)}
	case err != nil:
		return fmt.Errorf("read history: %w", err)
	}
	var tail struct {
		NextCursor string `json:"next_cursor,omitempty"`
	}
	if found.Next != 0 {
		tail.NextCursor = ledger.Cursor(int64(found.Next))
	}
	front.Stream(w, r, found, f.Log, `{"messages":[`, func(e *ledger.Entry) (out []any) {
		if !front.Shown(*e) {
			return nil
		}
		for _, s := range f.said(*e) {
			out = append(out, s)
		}
		return out
	}, tail)
	return nil
}
