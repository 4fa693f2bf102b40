package message

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Envelope is a message as JSON. CreatedAt is ISO 8601 in UTC with
// milliseconds; SessionID names the conversation; TurnIndex counts its turns
// from 0.
type Envelope struct {
	ID          string          `json:"id"`
	Role        Role            `json:"role"`
	Status      Status          `json:"status"`
	CreatedAt   string          `json:"createdAt"`
	SessionID   string          `json:"sessionId"`
	TurnIndex   int64           `json:"turnIndex"`
	ResponseID  string          `json:"responseId,omitempty"`
	Parts       []Part          `json:"parts"`
	Metadata    Meta            `json:"metadata,omitempty"`
	RawResponse json.RawMessage `json:"rawResponse,omitempty"` // {events: […]}
}

// TimeFormat is that of CreatedAt, for times in UTC.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// ErrNoContent is the error of a message with neither text nor parts.
var ErrNoContent = errors.New("message: found neither text nor parts, expected one of them")

// Picture is an image of the older form {text, images}.
type Picture struct {
	Base64    string `json:"base64"`
	MediaType string `json:"mediaType,omitempty"` // "" = found in the bytes
}

// BuildParts makes parts of the older form {text, images}: the text, unless it
// is empty and there are images, and then the images. An image that is no
// base64 is an error.
func BuildParts(text string, images []Picture) ([]Part, error) {
	var parts []Part
	if text != "" || len(images) == 0 {
		parts = append(parts, NewText(text))
	}
	for i, img := range images {
		mime := img.MediaType
		if mime == "" {
			b, err := base64.StdEncoding.DecodeString(img.Base64)
			if err != nil {
				return nil, fmt.Errorf("images[%d].base64: %w", i, err)
			}
			mime = http.DetectContentType(b)
		}
		parts = append(parts, NewVision(VisionPart{Kind: VisionInput, MimeType: mime, Data: img.Base64}))
	}
	return parts, nil
}

// Content is what carries a message in most models: text, parts, images, or
// several of them. A nil Text was absent, which is not the same as empty.
type Content struct {
	Text   *string   `json:"text,omitempty"`
	Parts  []Part    `json:"parts,omitempty"`
	Images []Picture `json:"images,omitempty"`
}

// Message makes a message of the content: parts without text get their roll-up,
// and parts win over a text that differs, which is kept in the metadata (MetaText)
// so that the way back can restore it. Neither is ErrNoContent.
func (c Content) Message(role Role) (Message, error) {
	m := Message{Role: role, Status: StatusCompleted, Parts: c.Parts}
	if len(c.Images) > 0 && len(c.Parts) == 0 {
		given := ""
		if c.Text != nil {
			given = *c.Text
		}
		parts, err := BuildParts(given, c.Images)
		if err != nil {
			return Message{}, err
		}
		m.Parts = parts
	}
	if len(m.Parts) == 0 {
		if c.Text == nil {
			return Message{}, ErrNoContent
		}
		m.Text = *c.Text
		return m, nil
	}
	m.Text = RollUp(m.Parts)
	if c.Text != nil && *c.Text != m.Text {
		m.Meta = m.Meta.With(MetaText, *c.Text)
	}
	return m, nil
}

// Given is the text that came with a message: that of MetaText, else its own.
func (m *Message) Given() string {
	if _, ok := m.Meta[MetaText]; ok {
		return m.Meta.String(MetaText)
	}
	return m.Text
}

// All are the message's parts, with the one text part that a plain text stands
// for, numbered.
func (m *Message) All() []Part {
	if len(m.Parts) > 0 {
		return m.Parts
	}
	return Alone(m.Text)
}
