package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/supervisor"
)

// PluginLine is one line of a plugin's output.
type PluginLine struct {
	Seq    int64     `json:"seq" doc:"Ascending per plugin, since the host started"`
	At     time.Time `json:"at"`
	Stream string    `json:"stream" enum:"stdout,stderr,host" doc:"host = what the host noted"`
	Text   string    `json:"text"`
}

type pluginLines struct {
	Lines      []PluginLine `json:"lines"`
	NextCursor string       `json:"next_cursor,omitempty" doc:"For the lines that come later"`
}

// logQuery is what a reader of logs asks for.
type logQuery struct {
	PluginRef
	Limit  int    `query:"limit" default:"200" minimum:"1" maximum:"1000" doc:"Most lines to return: the newest"`
	Cursor string `query:"cursor" maxLength:"64" doc:"next_cursor of an earlier answer: only what came later"`
	Follow bool   `query:"follow" doc:"Answer an event stream that goes on; the id of an event is the line's seq"`
	Accept string `header:"Accept" doc:"text/event-stream is the same as follow"`
	Last   string `header:"Last-Event-ID" doc:"With follow: go on behind this line"`
}

// pluginLogs answers what is kept, or a stream that goes on.
func (s *server) pluginLogs(_ context.Context, in *logQuery) (*huma.StreamResponse, error) {
	after, err := Page{Cursor: in.Cursor}.after()
	if err != nil {
		return nil, err
	}
	if in.Last != "" {
		if after, err = strconv.ParseInt(in.Last, 10, 64); err != nil || after < 0 {
			return nil, field(http.StatusUnprocessableEntity, "header.Last-Event-ID", "expected the id of an event", clip(in.Last))
		}
	}
	lines, more, err := s.Plugins.Logs(in.Name, after, in.Limit)
	if err != nil {
		return nil, s.pluginFault(err, in.Name)
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		if !in.Follow && !strings.Contains(in.Accept, "text/event-stream") {
			ctx.SetHeader("Content-Type", "application/json")
			out := pluginLines{Lines: showLines(lines)}
			if len(lines) > 0 {
				out.NextCursor = Page{Limit: 1}.next(1, func() int64 { return lines[len(lines)-1].Seq })
			}
			_, _ = ctx.BodyWriter().Write(append(mustJSON(out), '\n')) // the reader has gone if it fails
			return
		}
		w, ok := ctx.BodyWriter().(http.ResponseWriter)
		if !ok {
			return
		}
		ctx.SetHeader("Content-Type", "text/event-stream")
		f := &logFollower{sse: newSSE(w), server: s, name: in.Name, after: after}
		if err := f.run(ctx.Context(), lines, more); err != nil {
			s.Log.Debug("log stream ended", "plugin", in.Name, "error", err)
		}
	}}, nil
}

// logFollower is one reader of a plugin's lines.
type logFollower struct {
	*sse
	server *server
	name   string
	after  int64
}

func (f *logFollower) run(ctx context.Context, lines []supervisor.Line, more <-chan struct{}) error {
	if err := f.write(": pontoon\n\n"); err != nil {
		return err
	}
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		for _, l := range showLines(lines) {
			if err := f.write(fmt.Sprintf("id: %d\ndata: %s\n\n", l.Seq, mustJSON(l))); err != nil {
				return err
			}
			f.after = l.Seq
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.server.stop.Done():
			return nil
		case <-tick.C:
			if err := f.write(": alive\n\n"); err != nil {
				return err
			}
			lines = nil
			continue
		case <-more:
		}
		var err error
		if lines, more, err = f.server.Plugins.Logs(f.name, f.after, maxFollowed); err != nil {
			return err // its entry has gone
		}
	}
}

// maxFollowed is as much as is kept of a plugin.
const maxFollowed = 1000

func showLines(lines []supervisor.Line) []PluginLine {
	out := make([]PluginLine, len(lines))
	for i, l := range lines {
		out[i] = PluginLine{l.Seq, l.At.UTC(), l.Stream, l.Text}
	}
	return out
}
