package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
)

// AuditEntry is one change that somebody made.
type AuditEntry struct {
	ID     int64           `json:"id" doc:"Ascending, none left out"`
	At     Time            `json:"at"`
	Actor  string          `json:"actor" doc:"Name of the operator or of a key; admin = the key of the data directory, nobody = who had no credential"`
	Via    string          `json:"via" doc:"The credential: key:ID, session:ID, admin.key or link; empty = none"`
	Remote string          `json:"remote" doc:"Address of the actor; empty = the host itself"`
	Action string          `json:"action"`
	Target string          `json:"target"`
	Detail json.RawMessage `json:"detail"`
	Before json.RawMessage `json:"before" doc:"The fields that changed, as they were; null = it says nothing"`
	After  json.RawMessage `json:"after" doc:"The fields that changed, as they are"`
}

type auditList struct {
	Audit      []AuditEntry `json:"audit"`
	NextCursor string       `json:"next_cursor,omitempty"`
}

// auditQuery is which lines are wanted.
type auditQuery struct {
	Page
	Actor  string    `query:"actor" maxLength:"64" doc:"Only what this one did"`
	Action string    `query:"action" maxLength:"64" doc:"Only this, such as channel.delete, or all that begins so, such as channel"`
	Target string    `query:"target" maxLength:"256" doc:"Only what was done to this"`
	Since  time.Time `query:"since" doc:"Not what is older, such as 2026-01-31T00:00:00Z"`
	Until  time.Time `query:"until" doc:"Only what is older"`
	Format string    `query:"format" enum:"json,ndjson" doc:"ndjson = all lines, oldest first, one object a line; limit and cursor don't count"`
	Accept string    `header:"Accept" doc:"application/x-ndjson is the same as format=ndjson"`
}

const ndjson = "application/x-ndjson"

func (s *server) audit() {
	op := opens(auth.ScopeAdmin, wholeHost, operation("GET", "/audit", "list-audit", "Who changed what, newest first, or all of it as a file", 200, 422))
	list := s.api.OpenAPI().Components.Schemas.Schema(typeOf[auditList](), true, "auditList")
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{"application/json": {Schema: list}, ndjson: {}}}}
	huma.Register(s.api, op, s.listAudit)
}

func (s *server) listAudit(ctx context.Context, in *auditQuery) (*huma.StreamResponse, error) {
	before, err := in.after()
	if err != nil {
		return nil, err
	}
	want := ledger.AuditQuery{Actor: in.Actor, Action: in.Action, Target: in.Target, Since: in.Since, Until: in.Until}
	if in.Format == "ndjson" || in.Format == "" && strings.Contains(in.Accept, ndjson) {
		return &huma.StreamResponse{Body: func(ctx huma.Context) { s.exportAudit(ctx, want) }}, nil
	}
	share, err := s.Pages.Hold(ctx, ledger.PageBytes)
	if err != nil {
		return nil, s.fault(err, "audit log")
	}
	changes, err := s.Store.Audit(ctx, want, before, in.Limit)
	if err != nil {
		share.Release()
		return nil, s.fault(err, "audit log")
	}
	out := auditList{Audit: make([]AuditEntry, len(changes))}
	for i, c := range changes {
		out.Audit[i] = showChange(c)
	}
	size := 0
	for i := range changes {
		size += changes[i].Size()
	}
	share.Keep(paging.Memory(size))
	if ledger.PageFull(changes, in.Limit) {
		out.NextCursor = ledger.Cursor(changes[len(changes)-1].ID)
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer share.Release()
		if w, ok := ctx.BodyWriter().(http.ResponseWriter); ok {
			begin, done := paging.Pacer(w)
			defer done()
			begin(int64(size))
		}
		whole(out).Body(ctx)
	}}, nil
}

func showChange(c ledger.Change) AuditEntry {
	return AuditEntry{c.ID, timeOf(c.At), c.Actor, c.Via, c.Remote, c.Action, c.Target, c.Detail, c.Before, c.After}
}

// exportPage is how much of the log is in memory at a time.
const exportPage = 500

// exportAudit writes the wanted lines, oldest first. Where it breaks off the
// connection does, so that a part is not taken for the whole.
func (s *server) exportAudit(ctx huma.Context, want ledger.AuditQuery) {
	w, ok := ctx.BodyWriter().(http.ResponseWriter)
	if !ok {
		return
	}
	leased, end := s.lease(ctx.Context())
	defer end()
	out := newSSE(w)
	defer func() { _ = out.c.SetWriteDeadline(time.Time{}) }() // the connection may serve others
	ctx.SetHeader("Content-Type", ndjson)
	ctx.SetHeader("Content-Disposition", `attachment; filename="pontoon-audit.ndjson"`)
	for after := int64(0); ; {
		changes, err := s.exportLines(leased, out, want, after)
		if errors.Is(err, paging.ErrFull) {
			continue // what has begun waits
		}
		if err != nil {
			s.Log.Warn("audit log not exported to its end", "error", err)
			panic(http.ErrAbortHandler)
		}
		if !ledger.PageFull(changes, exportPage) {
			return
		}
		after = changes[len(changes)-1].ID
	}
}

// exportLines writes the wanted lines from behind one, as many as a page has.
func (s *server) exportLines(ctx context.Context, out *sse, want ledger.AuditQuery, after int64) ([]ledger.Change, error) {
	share, err := s.Pages.Hold(ctx, ledger.PageBytes)
	if err != nil {
		return nil, err
	}
	defer share.Release()
	changes, err := s.Store.AuditAfter(ctx, want, after, exportPage)
	if err != nil {
		return nil, err
	}
	out.hold(ledger.PageBytes)
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := out.gather(string(mustJSON(showChange(c))) + "\n"); err != nil {
			return nil, err
		}
	}
	return changes, out.flush()
}
