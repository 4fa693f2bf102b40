package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
)

// PluginLine is one line of a plugin's output.
type PluginLine struct {
	Seq    int64  `json:"seq" doc:"Ascending per plugin, since the host started"`
	At     Time   `json:"at"`
	Stream string `json:"stream" enum:"stdout,stderr,host" doc:"host = what the host noted"`
	Text   string `json:"text"`
}

type pluginLines struct {
	Lines      []PluginLine `json:"lines"`
	NextCursor string       `json:"next_cursor,omitempty" doc:"For the lines that come later"`
}

// logQuery is what a reader of logs asks for.
type logQuery struct {
	PluginRef
	Limit int `query:"limit" default:"200" minimum:"1" maximum:"1000" doc:"Most lines to return: the newest"`
	Follow
}

// pluginLogs answers what is kept, or a stream that goes on.
func (s *server) pluginLogs(ctx context.Context, in *logQuery) (*huma.StreamResponse, error) {
	after, err := in.behind()
	if err != nil {
		return nil, err
	}
	if err := s.findPlugin(ctx, in.Name); err != nil {
		return nil, err
	}
	lines, _, err := s.Plugins.Logs(in.Name, after, in.Limit)
	if err != nil {
		return nil, s.pluginFault(err, in.Name)
	}
	if !in.follows() {
		out := pluginLines{Lines: showLines(lines)}
		if len(lines) > 0 {
			out.NextCursor = ledger.Cursor(lines[len(lines)-1].Seq)
		}
		return whole(out), nil
	}
	most := in.Limit
	return s.followed(after, "plugin "+in.Name, func(seq int64) ([]line, <-chan struct{}, error) {
		found, more, err := s.Plugins.Logs(in.Name, seq, most)
		most = maxFollowed
		var out []line
		for _, l := range showLines(found) {
			out = append(out, line{l.Seq, l})
		}
		return out, more, err
	}), nil
}

// maxFollowed is as much as is kept of a plugin.
const maxFollowed = 1000

func showLines(lines []plugin.Line) []PluginLine {
	out := make([]PluginLine, len(lines))
	for i, l := range lines {
		out[i] = PluginLine{l.Seq, timeOf(l.At), l.Stream, l.Text}
	}
	return out
}
