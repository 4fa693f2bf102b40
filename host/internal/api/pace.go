package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
)

// atOnce is how many messages of a page are made or written before those who
// deliver may use the processor: a reader of history must not hold them up.
const atOnce = 4

// pace follows the message i of a page.
func (s *server) pace(i int) {
	if i%atOnce == atOnce-1 {
		s.Store.GiveWay()
	}
}

// gives describes an operation that answers with JSON as shown writes it: like is a
// value of the same shape.
func (s *server) gives(op huma.Operation, like any) huma.Operation {
	t := reflect.TypeOf(like)
	schema := s.api.OpenAPI().Components.Schemas.Schema(t, true, t.Name())
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}}
	op.Errors = append(op.Errors, http.StatusServiceUnavailable)
	return op
}

// shown answers with a page of messages, newest first, while it is read. open is the
// JSON before the first one. show makes what is shown of a message; nil = nothing. tail
// makes the struct of what follows: next is where to go on if the page ended early,
// since there was no room to read on; 0 = it did not.
func (s *server) shown(page *paging.Page, open string, show func(context.Context, *ledger.Entry) (any, error), tail func(next ledger.MessageID) any) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer page.Close()
		w, ok := ctx.BodyWriter().(http.ResponseWriter)
		if !ok {
			return
		}
		ctx.SetHeader("Content-Type", "application/json")
		begin, done := paging.Pacer(w)
		defer done()
		list := paging.NewList(w, open)
		n, last := 0, ledger.MessageID(0)
		err := page.Each(ctx.Context(), begin, func(e *ledger.Entry) error {
			last = e.ID
			v, err := show(ctx.Context(), e)
			if err != nil || v == nil {
				return err
			}
			s.pace(n)
			n++
			return list.Add(v)
		})
		next := ledger.MessageID(0)
		if errors.Is(err, paging.ErrFull) {
			next, err = last, nil
		}
		if err == nil {
			err = list.End(tail(next))
		}
		if err != nil {
			s.Log.Debug("page not written to its end", "path", ctx.Operation().Path, "error", err)
			panic(http.ErrAbortHandler) // so that a part is not taken for the whole
		}
	}}
}

// nextPage is what follows a list.
type nextPage struct {
	NextCursor string `json:"next_cursor,omitempty"`
}

// cursorOf is the cursor behind a message; "" for none.
func cursorOf(id ledger.MessageID) string {
	if id == 0 {
		return ""
	}
	return ledger.Cursor(int64(id))
}
