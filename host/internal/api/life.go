package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/framelog"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// LifeEvent is something that happened to a message.
type LifeEvent struct {
	At     Time   `json:"at"`
	What   string `json:"what"`
	Detail string `json:"detail,omitempty"`
}

// Life is a message's whole life.
type Life struct {
	DeadLetter
	Life     []LifeEvent `json:"life" doc:"What happened to it, in order; sent, with type and id of the frame, each time that one was written whose record is still kept"`
	Frames   []Frame     `json:"frames" doc:"Those that carried it, and the adapter's answers to them, as far as they are still kept: of each channel the newest, in memory"`
	NoFrames string      `json:"no_frames,omitempty" doc:"Why frames is empty"`
}

func (s *server) getMessage(ctx context.Context, in *AnyMessageRef) (*huma.StreamResponse, error) {
	id, row, err := s.anyMessage(ctx, in.Message)
	if err != nil {
		return nil, err
	}
	found, err := s.Store.Life(ctx, id.ID)
	if err != nil {
		return nil, s.fault(err, "message "+in.Message)
	}
	page, err := s.Pages.OpenList(ctx, []ledger.Heading{id})
	if err != nil {
		return nil, s.fault(err, "message "+in.Message)
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer page.Close()
		w, ok := ctx.BodyWriter().(http.ResponseWriter)
		if !ok {
			return
		}
		ctx.SetHeader("Content-Type", "application/json")
		begin, done := paging.Pacer(w)
		defer done()
		err := page.Each(ctx.Context(), begin, func(e *ledger.Entry) error {
			return json.NewEncoder(w).Encode(s.lifeOfMessage(e, row, found))
		})
		if err != nil {
			s.Log.Debug("message not written to its end", "message", in.Message, "error", err)
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

func (s *server) lifeOfMessage(e *ledger.Entry, row ledger.Channel, found []ledger.Life) Life {
	out := Life{DeadLetter: s.showLetter(row, e), Frames: []Frame{}}
	var sent []LifeEvent
	for _, f := range s.carriers(row.Key, e.ID.String()) {
		out.Frames = append(out.Frames, f.Frame)
		if f.writes() {
			sent = append(sent, LifeEvent{f.At, ledger.Sent.String(), f.Type + " " + f.id})
		}
	}
	out.Life = lifeOf(*e, found, sent)
	if len(out.Frames) == 0 {
		out.NoFrames = s.whyNoFrames(*e, len(found) > 0)
	}
	return out
}

// carrier is a frame that carried a message, or an answer to one.
type carrier struct {
	Frame
	id string // the message's, or ID/2 of its second frame
}

// carriers are the frames with the message's id that the channel still remembers,
// in order.
func (s *server) carriers(channel int64, id string) []carrier {
	var out []carrier
	kept, _ := s.Slots.Frames.Known(channel).After(0, framelog.Most)
	// A frame is recorded once it is written, by when its answer may have been read.
	slices.SortStableFunc(kept, func(a, b framelog.Frame) int { return a.At.Compare(b.At) })
	for _, f := range kept {
		var head struct {
			MessageID string `json:"message_id"`
		}
		if json.Unmarshal(f.JSON, &head) == nil && (head.MessageID == id || strings.HasPrefix(head.MessageID, id+"/")) {
			out = append(out, carrier{showFrame(f), head.MessageID})
		}
	}
	return out
}

// writes reports whether the frame brought the message to the adapter, or a part of
// it: one that takes an earlier message back or reacts to it has that one's id, and a
// beginning that is streamed is not the message yet.
func (f carrier) writes() bool {
	switch wire.Type(f.Type) {
	case wire.TypeDeleteMessage, wire.TypeSendReaction, wire.TypeStream:
		return false
	}
	return f.Direction == "out" && f.Verdict == framelog.Written.String()
}

// whyNoFrames says in words why none of a message's frames is shown. tried: something
// was written down of it since it was committed.
func (s *server) whyNoFrames(e ledger.Entry, tried bool) string {
	switch {
	case s.Slots.Frames == nil:
		return "none is kept: the host runs with --no-frames"
	case e.Direction == ledger.Out && e.State == ledger.Queued && !tried:
		return "none is there: it was not written yet"
	case e.Direction == ledger.In:
		return "none can be told apart: what adapters send carries no id of the host; the channel's frames show the newest"
	}
	return fmt.Sprintf("none is kept: the host keeps the newest %d frames of a channel, in memory, and frames for adapters of protocol 1.0 have no id by which to find them", framelog.Most)
}

// lifeOf tells a message's life: what was written down of it and when frames of it
// were sent, between its beginning and its present state, which are known anyway.
func lifeOf(e ledger.Entry, found []ledger.Life, sent []LifeEvent) []LifeEvent {
	between := make([]LifeEvent, 0, len(found)+len(sent))
	for _, l := range found {
		between = append(between, LifeEvent{timeOf(l.At), l.What, l.Detail})
	}
	between = append(between, sent...)
	slices.SortStableFunc(between, func(a, b LifeEvent) int {
		return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(turnOf(a.What), turnOf(b.What)))
	})
	out := append([]LifeEvent{{At: timeOf(e.ID.Time()), What: "committed"}}, between...)
	if out[len(out)-1].What == e.State.String() {
		return out
	}
	return append(out, LifeEvent{timeOf(e.Settled()), e.State.String(), string(e.Reason)})
}

// turnOf orders what happened within one millisecond: why something was sent, that
// it was, what came of it.
func turnOf(what string) int {
	switch what {
	case "replayed", "sent once more":
		return 0
	case ledger.Sent.String():
		return 1
	}
	return 2
}
