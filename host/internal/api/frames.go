package api

import (
	"context"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/framelog"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Frame is one that an adapter sent or was sent.
type Frame struct {
	Seq       int64           `json:"seq" doc:"Ascending per channel, since the host started"`
	At        Time            `json:"at"`
	Direction string          `json:"direction" enum:"in,out" doc:"in = from the adapter"`
	Type      string          `json:"type" doc:"Empty = not known; close = why the connection ended"`
	Size      int             `json:"size" doc:"Bytes of the whole frame"`
	Verdict   string          `json:"verdict" enum:"accepted,lenient,repeated,ignored,refused,written,broken,closed"`
	Code      string          `json:"code,omitempty" doc:"Of a refusal: the protocol's error code; of a lenient frame: its field that is not as the protocol has it"`
	Frame     json.RawMessage `json:"frame" doc:"As JSON, without tokens, secrets, inputs of tools and bytes, in whose places type and size stand; null = it was not JSON"`
	Text      string          `json:"text,omitempty" doc:"Of a frame that was not JSON: its beginning"`
	Cut       bool            `json:"cut" doc:"The end is missing"`
}

type frameList struct {
	Frames     []Frame `json:"frames" doc:"The newest, oldest first"`
	Recording  bool    `json:"recording" doc:"false = the host runs with --no-frames"`
	NextCursor string  `json:"next_cursor,omitempty" doc:"For the frames that come later"`
}

type frameQuery struct {
	ChannelRef
	FramePage
}

type agentFrameQuery struct {
	AgentRef
	FramePage
}

// FramePage is which frames of a ring are wanted.
type FramePage struct {
	Limit int `query:"limit" default:"64" minimum:"1" maximum:"100" doc:"Most frames to return: the newest"`
	Follow
}

func (s *server) frames() {
	op := opens(auth.ScopeRead, byChannel, operation("GET", "/channels/{id}/frames", "list-frames", "The last frames of the channel's adapter as they crossed the wire, without secrets; kept in memory only", 200, 404, 422))
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"application/json": {Schema: s.api.OpenAPI().Components.Schemas.Schema(typeOf[frameList](), true, "frameList")}, "text/event-stream": {},
	}}}
	huma.Register(s.api, op, s.listFrames)
	of := opens(auth.ScopeRead, wholeHost, operation("GET", "/agents/{id}/frames", "list-agent-frames", "The last frames of an agent that dials in, likewise", 200, 404, 422))
	of.Responses = op.Responses
	huma.Register(s.api, of, s.listAgentFrames)
}

func (s *server) listFrames(ctx context.Context, in *frameQuery) (*huma.StreamResponse, error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.framesIn(s.Slots.FramesOf(row.Key), row.Name, in.FramePage)
}

func (s *server) listAgentFrames(ctx context.Context, in *agentFrameQuery) (*huma.StreamResponse, error) {
	row, err := s.findAgent(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if row.Kind != agent.SocketKind {
		return nil, huma.Error404NotFound("agent " + row.Name + " is of kind " + row.Kind + ": frames are kept of those of kind " + agent.SocketKind)
	}
	return s.framesIn(s.AgentSockets.FramesOf(row.Key), row.Name, in.FramePage)
}

// framesIn answers with what a ring has, and goes on if that is asked for.
func (s *server) framesIn(ring *framelog.Ring, name string, in FramePage) (*huma.StreamResponse, error) {
	after, err := in.behind()
	if err != nil {
		return nil, err
	}
	if !in.follows() {
		found, _ := ring.After(after, in.Limit)
		out := frameList{Frames: make([]Frame, len(found)), Recording: ring != nil}
		for i, f := range found {
			out.Frames[i] = showFrame(f)
		}
		if n := len(found); n > 0 {
			out.NextCursor = ledger.Cursor(found[n-1].Seq)
		}
		return whole(out), nil
	}
	return s.followed(after, "frames of "+name, func(seq int64) ([]line, <-chan struct{}, error) {
		found, more := ring.After(seq, in.Limit)
		var out []line
		for _, f := range found {
			out = append(out, line{f.Seq, showFrame(f)})
		}
		return out, more, nil
	}), nil
}

func showFrame(f framelog.Frame) Frame {
	out := Frame{
		Seq: f.Seq, At: timeOf(f.At), Direction: "in", Type: f.Type, Size: f.Size, Verdict: f.Verdict.String(), Code: f.Code, Frame: f.JSON, Text: f.Text, Cut: f.Cut,
	}
	if f.Direction == framelog.Out {
		out.Direction = "out"
	}
	if out.Frame == nil {
		out.Frame = json.RawMessage("null")
	}
	return out
}
