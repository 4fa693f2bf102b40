package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Content is what a message says: text, parts, or the shorter forms that stand
// for parts.
type Content struct {
	Text     *string           `json:"text,omitempty" maxLength:"1000000"`
	Parts    []message.Part    `json:"parts,omitempty" maxItems:"100"`
	Images   []message.Picture `json:"images,omitempty" maxItems:"100" doc:"The older form of text with images"`
	Card     *wire.Card        `json:"card,omitempty"`
	Buttons  [][]wire.Button   `json:"buttons,omitempty"`
	Image    *wire.Image       `json:"image,omitempty"`
	File     *wire.File        `json:"file,omitempty"`
	Metadata message.Meta      `json:"metadata,omitempty"`
}

func (c Content) empty() bool {
	return (c.Text == nil || *c.Text == "") && len(c.Parts) == 0 && len(c.Images) == 0 && len(c.Buttons) == 0 && c.Card == nil && c.Image == nil && c.File == nil
}

// message makes the message of an agent; an error is a problem for the client.
func (c Content) message() (message.Message, error) {
	if c.empty() {
		return message.Message{}, field(422, "body", "found no content, expected text, parts, card, buttons, image or file", "")
	}
	short, err := c.short()
	if err != nil {
		return message.Message{}, err
	}
	content := message.Content{Text: c.Text, Parts: append(c.Parts, short...), Images: c.Images}
	switch {
	case len(c.Buttons) > 0:
		content.Text = nil // it is the text of the buttons
	case len(short) > 0 && len(c.Parts) == 0 && c.Text != nil && *c.Text != "":
		content.Parts = append([]message.Part{message.NewText(*c.Text)}, short...)
	}
	m, err := content.Message(message.RoleAgent)
	if err != nil {
		return message.Message{}, field(422, "body", err.Error(), "")
	}
	if found := message.Validate(m.Parts, message.HostLimits()); len(found) > 0 {
		return message.Message{}, malformed(found)
	}
	m.Parts = message.Number(m.Parts)
	if m.Text == "" && len(m.Parts) > 0 {
		m.Text = render.Text(&m)
	}
	for name, value := range c.Metadata {
		if m.Meta == nil {
			m.Meta = message.Meta{}
		}
		m.Meta[name] = value
	}
	return m, nil
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

// short are the parts that the shorter forms stand for.
func (c Content) short() ([]message.Part, error) {
	var parts []message.Part
	if len(c.Buttons) > 0 {
		if err := wire.ValidateRows(c.Buttons); err != nil {
			return nil, field(422, "body.buttons", err.Message, "")
		}
		text := ""
		if c.Text != nil {
			text = *c.Text
		}
		parts = append(parts, message.NewButtons(text, c.Buttons))
	}
	if c.Card != nil {
		if err := c.Card.Validate(); err != nil {
			return nil, field(422, "body.card", err.Error(), "")
		}
		parts = append(parts, message.NewCard(c.Card))
	}
	if c.Image != nil {
		if err := checkMedia("body.image", c.Image.URL, c.Image.Path); err != nil {
			return nil, err
		}
		parts = append(parts, message.NewImage(*c.Image))
	}
	if c.File != nil {
		if err := checkMedia("body.file", c.File.URL, c.File.Path); err != nil {
			return nil, err
		}
		parts = append(parts, message.NewFile(*c.File))
	}
	return parts, nil
}

// checkMedia refuses what no adapter could fetch.
func checkMedia(location, url, path string) error {
	if url == "" && path != "" {
		return nil
	}
	if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
		return field(422, location+".url", "expected an http or https url", clip(url))
	}
	return nil
}

// RenderRequest asks what a far end would get.
type RenderRequest struct {
	Content
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
	m, err := r.message()
	if err != nil {
		return Rendered{}, err
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
