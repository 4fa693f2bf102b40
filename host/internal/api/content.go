package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/compose"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// refusal is the problem of content that can't be taken.
func refusal(err error) error {
	var found message.Problems
	if errors.As(err, &found) {
		return malformed(found)
	}
	var f *compose.Fault
	if !errors.As(err, &f) {
		return err
	}
	at := "body"
	if f.At != "" {
		at += "." + f.At
	}
	return field(http.StatusUnprocessableEntity, at, f.Message, f.Value)
}

// malformed is a problem that tells where each thing is that is wrong.
func malformed(found message.Problems) error {
	out := &huma.ErrorModel{Title: http.StatusText(http.StatusUnprocessableEntity), Status: http.StatusUnprocessableEntity, Detail: found.Error()}
	for _, p := range found {
		at := "body.parts"
		if p.Part >= 0 {
			at = fmt.Sprintf("body.parts[%d]", p.Part)
		}
		if p.Field != "" {
			at += "." + p.Field
		}
		out.Errors = append(out.Errors, &huma.ErrorDetail{Location: at, Message: "found " + p.Found + ", expected " + p.Allowed, Value: p.Type})
	}
	return out
}

// RenderRequest asks what a far end would get.
type RenderRequest struct {
	compose.Content
	Capabilities []string     `json:"capabilities,omitempty" maxItems:"100" doc:"Of the far end; text is always there"`
	Profile      wire.Profile `json:"profile,omitempty"`
	Protocol     string       `json:"protocol,omitempty" enum:"1.0,1.1" doc:"Of the far end; unless said, the oldest that has the capabilities"`
	Local        bool         `json:"local,omitempty" doc:"The far end is on this machine"`
}

// Rendered is what a far end gets.
type Rendered struct {
	Text     string        `json:"text" doc:"The message in text alone"`
	Frames   []anyFrame    `json:"frames" doc:"As an adapter gets them; the routing is empty"`
	Degraded []render.Note `json:"degraded"`
}

// anyFrame is a frame's JSON.
type anyFrame []byte

// MarshalJSON implements json.Marshaler.
func (f anyFrame) MarshalJSON() ([]byte, error) { return f, nil }

// Schema implements huma.SchemaProvider.
func (anyFrame) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// Render shows what a far end would get, without sending it. An error is an RFC
// 9457 problem.
func Render(r RenderRequest) (Rendered, error) {
	newest := wire.V11.String()
	caps, unknown := wire.ParseCapsFor(newest, r.Capabilities)
	if len(unknown) > 0 {
		return Rendered{}, field(422, "body.capabilities", fmt.Sprintf("found %.64q, expected some of %s", unknown[0], strings.Join(wire.CapNamesFor(newest), ", ")), "")
	}
	view := wire.View{Caps: caps | wire.CapText, Profile: r.Profile, Local: r.Local}
	switch {
	case r.Protocol == "" && caps&^wire.CapsV10 != 0, r.Protocol == newest:
		view.Protocol = wire.V11
	case caps&^wire.CapsV10 != 0:
		return Rendered{}, field(422, "body.protocol", "found "+r.Protocol+", which does not have all of the capabilities", "")
	}
	m, err := r.Message()
	if err != nil {
		return Rendered{}, refusal(err)
	}
	planned := render.Plan(render.Input{
		Message: &m, View: view, Room: wire.MaxFrame - (wire.Routing{}).Overhead(),
	})
	if planned.TooLarge {
		return Rendered{}, errors.New("render: no room in a frame")
	}
	out := Rendered{Text: render.Text(&m), Frames: []anyFrame{}, Degraded: orEmpty(planned.Notes)}
	for _, f := range planned.Frames {
		out.Frames = append(out.Frames, f.Append(nil, wire.Routing{}))
	}
	return out, nil
}
