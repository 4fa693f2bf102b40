package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Follow is what a reader of lines that go on asks for.
type Follow struct {
	Cursor string `query:"cursor" maxLength:"64" doc:"next_cursor of an earlier answer: only what came later"`
	Follow bool   `query:"follow" doc:"Answer an event stream that goes on; the id of an event is its seq"`
	Accept string `header:"Accept" doc:"text/event-stream is the same as follow"`
	Last   string `header:"Last-Event-ID" doc:"With follow: go on behind this seq"`
}

// behind is the seq behind which the answer begins; 0 = at the oldest.
func (f Follow) behind() (int64, error) {
	after, err := Page{Cursor: f.Cursor}.after()
	if err != nil || f.Last == "" {
		return after, err
	}
	if after, err = strconv.ParseInt(f.Last, 10, 64); err != nil || after < 0 {
		return 0, field(http.StatusUnprocessableEntity, "header.Last-Event-ID", "expected the id of an event", clip(f.Last))
	}
	return after, nil
}

// follows reports that a stream is asked for.
func (f Follow) follows() bool { return f.Follow || strings.Contains(f.Accept, "text/event-stream") }

// line is one line of what is followed.
type line struct {
	seq  int64
	show any // its JSON
}

// later reads the lines behind seq; more is closed when there are others.
type later func(seq int64) (lines []line, more <-chan struct{}, err error)

// whole answers with a JSON value.
func whole(v any) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "application/json")
		_, _ = ctx.BodyWriter().Write(append(mustJSON(v), '\n')) // the reader has gone if it fails
	}}
}

// followed answers with a stream that goes on: the lines that are there and those
// that later gives.
func (s *server) followed(after int64, what string, read later) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		w, ok := ctx.BodyWriter().(http.ResponseWriter)
		if !ok {
			return
		}
		ctx.SetHeader("Content-Type", "text/event-stream")
		leased, end := s.lease(ctx.Context())
		defer end()
		e := newSSE(w)
		defer e.endWith(leased)()
		if err := s.goOn(leased, e, after, read); err != nil {
			s.Log.Debug("stream ended", "of", what, "error", err)
		}
	}}
}

func (s *server) goOn(ctx context.Context, e *sse, after int64, read later) error {
	if err := e.write(": pontoon\n\n"); err != nil {
		return err
	}
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		lines, more, err := read(after)
		if err != nil {
			return err // what is followed has gone
		}
		for _, l := range lines {
			if err := e.gather(fmt.Sprintf("id: %d\ndata: %s\n\n", l.seq, mustJSON(l.show))); err != nil {
				return err
			}
			after = l.seq
		}
		if len(lines) > 0 {
			if err := e.flush(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stop.Done():
			return nil
		case <-tick.C:
			if err := e.write(": alive\n\n"); err != nil {
				return err
			}
		case <-more:
		}
	}
}
