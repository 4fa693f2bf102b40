// Package bridle converts messages of Bridle, a relay between browsers and
// agents, to the host's and back. There and back is the identity: what the host
// has no field for is kept in the part or in the metadata, under "bridle".
package bridle

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/pontoon-bridge/pontoon/sdk/message/internal/object"
)

// Side says who sent a message. It is not on the wire: the socket tells.
type Side string

// The sides; "" counts as Browser.
const (
	Browser Side = "browser"
	Agent   Side = "agent"
)

// Message is what a message, stream or stream_end carries. Text and AgentID are
// nil if they are absent, which is not the same as empty.
type Message struct {
	Side    Side    `json:"-"`
	Text    *string `json:"text,omitempty"`
	Parts   []Part  `json:"parts,omitempty"`
	Images  []Part  `json:"images,omitempty"` // the older form of images, without a type
	AgentID *string `json:"agentId,omitempty"`

	// Rest is what else came: unknown fields, and known ones that are null or an
	// empty array.
	Rest map[string]json.RawMessage `json:"-"`
}

// Part is one part as it came, field by field.
type Part map[string]json.RawMessage

// The types of parts that Bridle has.
const (
	TypeText     = "text"      // text
	TypeImage    = "image"     // base64, mediaType
	TypeFile     = "file"      // url, name, mimeType?
	TypeUI       = "ui"        // uiId, components, submit?
	TypeUISubmit = "ui_submit" // uiId, values
)

// Fields of parts and messages.
const (
	fieldType      = "type"
	fieldText      = "text"
	fieldParts     = "parts"
	fieldImages    = "images"
	fieldAgentID   = "agentId"
	fieldBase64    = "base64"
	fieldMediaType = "mediaType"
	fieldURL       = "url"
	fieldName      = "name"
	fieldMimeType  = "mimeType"
)

// Text is a part of plain text.
func Text(text string) Part {
	return Part{fieldType: quote(TypeText), fieldText: quote(text)}
}

// Image is an image; data is base64 without a data: prefix.
func Image(data, mediaType string) Part {
	return Part{fieldType: quote(TypeImage), fieldBase64: quote(data), fieldMediaType: quote(mediaType)}
}

// File is a document by address; mimeType may be empty.
func File(url, name, mimeType string) Part {
	p := Part{fieldType: quote(TypeFile), fieldURL: quote(url), fieldName: quote(name)}
	if mimeType != "" {
		p[fieldMimeType] = quote(mimeType)
	}
	return p
}

// Type is the part's type; "" if it has none.
func (p Part) Type() string { return p.String(fieldType) }

// String is the value of a field that is a string; "" if it is absent or of
// another type.
func (p Part) String(name string) string {
	s, _ := p.lookup(name)
	return s
}

func (p Part) lookup(name string) (string, bool) {
	raw := p[name]
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// without is a copy of the part that lacks the fields.
func (p Part) without(names ...string) Part {
	out := maps.Clone(p)
	for _, name := range names {
		delete(out, name)
	}
	return out
}

// with is a copy of the part that has the fields of another too.
func (p Part) with(more Part) Part {
	out := maps.Clone(p)
	maps.Copy(out, more)
	return out
}

// Parse reads a message, or a frame that has the fields of one. It refuses what
// is not an object, and known fields of another type.
func Parse(b []byte) (Message, error) {
	var m Message
	if err := m.UnmarshalJSON(b); err != nil {
		return Message{}, fmt.Errorf("parse bridle message: %w", err)
	}
	return m, nil
}

// UnmarshalJSON implements json.Unmarshaler; Side stays as it is.
func (m *Message) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if all == nil {
		return fmt.Errorf("found null, expected an object")
	}
	read := Message{Side: m.Side}
	if err := read.read(all); err != nil {
		return err
	}
	*m = read
	return nil
}

// read takes the fields of a message out of all that came; the others are the
// rest.
func (m *Message) read(all map[string]json.RawMessage) error {
	for name, to := range map[string]any{fieldText: &m.Text, fieldAgentID: &m.AgentID, fieldParts: &m.Parts, fieldImages: &m.Images} {
		if err := object.Take(all, name, to); err != nil {
			return err
		}
	}
	for i, p := range m.Parts {
		if p.Type() == "" {
			return fmt.Errorf("%s[%d]: found no type, expected an object with the name of a part type", fieldParts, i)
		}
	}
	for i, p := range m.Images {
		if p == nil {
			return fmt.Errorf("%s[%d]: found null, expected an object", fieldImages, i)
		}
	}
	if m.Rest = all; len(all) == 0 {
		m.Rest = nil
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) {
	all := make(map[string]any, len(m.Rest)+4)
	for name, raw := range m.Rest {
		all[name] = raw
	}
	if m.Text != nil {
		all[fieldText] = *m.Text
	}
	if len(m.Parts) > 0 {
		all[fieldParts] = m.Parts
	}
	if len(m.Images) > 0 {
		all[fieldImages] = m.Images
	}
	if m.AgentID != nil {
		all[fieldAgentID] = *m.AgentID
	}
	return json.Marshal(all)
}
