// Package compose reads what somebody wants to be sent, in the one form that
// the REST API and agents use: text, parts, or the shorter forms that stand for
// parts.
package compose

import (
	"fmt"
	"net/url"

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

// Empty reports that nothing is said. A text that is there counts, whatever is in
// it: platforms have messages without any.
func (c Content) Empty() bool {
	return c.Text == nil && len(c.Parts) == 0 && len(c.Images) == 0 && len(c.Buttons) == 0 && c.Card == nil && c.Image == nil && c.File == nil
}

// Message makes the message of an agent. The error is a Fault or
// message.Problems.
func (c Content) Message() (message.Message, error) {
	if c.Empty() {
		return message.Message{}, fault("", "found no content, expected text, parts, card, buttons, image or file", "")
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
		return message.Message{}, fault("", err.Error(), "")
	}
	if found := message.Validate(m.Parts, message.HostLimits()); len(found) > 0 {
		return message.Message{}, found
	}
	m.Parts = message.Number(m.Parts)
	if m.Text == "" && len(m.Parts) > 0 {
		m.Text = render.Text(&m)
	}
	if err := c.Metadata.CheckGiven(); err != nil {
		return message.Message{}, fault("", err.Message, "")
	}
	for name, value := range c.Metadata {
		if m.Meta == nil {
			m.Meta = message.Meta{}
		}
		m.Meta[name] = value
	}
	return m, nil
}

// short are the parts that the shorter forms stand for.
func (c Content) short() ([]message.Part, error) {
	var parts []message.Part
	if len(c.Buttons) > 0 {
		if err := wire.ValidateRows(c.Buttons); err != nil {
			return nil, fault("buttons", err.Message, "")
		}
		text := ""
		if c.Text != nil {
			text = *c.Text
		}
		parts = append(parts, message.NewButtons(text, c.Buttons))
	}
	if c.Card != nil {
		if err := c.Card.Validate(); err != nil {
			return nil, fault("card", err.Error(), "")
		}
		parts = append(parts, message.NewCard(c.Card))
	}
	if c.Image != nil {
		if err := checkMedia("image", c.Image.URL, c.Image.Path); err != nil {
			return nil, err
		}
		parts = append(parts, message.NewImage(*c.Image))
	}
	if c.File != nil {
		if err := checkMedia("file", c.File.URL, c.File.Path); err != nil {
			return nil, err
		}
		parts = append(parts, message.NewFile(*c.File))
	}
	return parts, nil
}

// checkMedia refuses what no adapter could fetch.
func checkMedia(at, address, path string) error {
	if address == "" && path != "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fault(at+".url", "expected an http or https url, such as https://example.org/a.png", address)
	}
	return nil
}

// Fault is content that can't be taken.
type Fault struct {
	At      string // such as "card.elements"; "" = the whole
	Message string
	Value   string // that was found, if it helps; clipped
}

// Error implements error.
func (f *Fault) Error() string {
	if f.At == "" {
		return f.Message
	}
	return f.At + ": " + f.Message
}

func fault(at, text, value string) error {
	return &Fault{at, text, fmt.Sprintf("%.80s", value)}
}
