package message

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Part types with a struct of their own.
const (
	TypeText     = "text"
	TypeMarkdown = "markdown"
	TypeCustom   = "custom"
	TypeVision   = "vision"
	TypeFile     = "file"
	TypeUI       = "ui"
)

// Payload types of custom parts that the bridge knows.
const (
	PayloadCard    = "bridge.card"    // data is a wire.Card
	PayloadButtons = "bridge.buttons" // data is Offer
)

// TextPart is final plain text.
type TextPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// MarkdownPart is text in markdown.
type MarkdownPart struct {
	Type     string `json:"type"`
	Markdown string `json:"markdown"`
}

// CustomPart is a payload that PayloadType names.
type CustomPart struct {
	Type        string          `json:"type"`
	PayloadType string          `json:"payloadType"`
	Data        json.RawMessage `json:"data"`
}

// Offer is the data of a bridge.buttons part: a text with rows of buttons.
type Offer struct {
	Text    string          `json:"text"`
	Buttons [][]wire.Button `json:"buttons"`
}

// VisionPart is an image. Path is a file of the host's machine.
type VisionPart struct {
	Type     string `json:"type"`
	Kind     string `json:"kind"`
	MimeType string `json:"mimeType"`
	URL      string `json:"url,omitempty"`
	Path     string `json:"path,omitempty"`
	AltText  string `json:"altText,omitempty"`
	Caption  string `json:"caption,omitempty"`
}

// FilePart is a document by address, never its bytes.
type FilePart struct {
	Type     string `json:"type"`
	FileName string `json:"fileName"`
	MimeType string `json:"mimeType"`
	URL      string `json:"url,omitempty"`
	Path     string `json:"path,omitempty"`
	Caption  string `json:"caption,omitempty"`
}

// UIPart is an interactive form.
type UIPart struct {
	Type       string        `json:"type"`
	UIID       string        `json:"uiId"`
	Components []UIComponent `json:"components"`
	Submit     *UISubmit     `json:"submit,omitempty"`
}

// UISubmit labels the button that sends a form.
type UISubmit struct {
	Label string `json:"label"`
}

// UIComponent is one row of a form; which fields count follows from Type.
type UIComponent struct {
	Type        string          `json:"type"`
	Text        string          `json:"text,omitempty"`
	Name        string          `json:"name,omitempty"`
	Label       string          `json:"label,omitempty"`
	Placeholder string          `json:"placeholder,omitempty"`
	Required    bool            `json:"required,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Options     []UIOption      `json:"options,omitempty"`
}

// UIOption is one choice of a radio, select or checkbox group.
type UIOption struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// NewText is a text part.
func NewText(text string) Part { return build(TypeText, TextPart{TypeText, text}) }

// NewCard is a structured card.
func NewCard(c *wire.Card) Part { return custom(PayloadCard, c) }

// NewButtons is a text with rows of buttons.
func NewButtons(text string, rows [][]wire.Button) Part {
	return custom(PayloadButtons, Offer{text, rows})
}

func custom(payload string, data any) Part {
	raw := build(payload, data).raw
	return build(TypeCustom, CustomPart{TypeCustom, payload, raw})
}

// NewImage is a picture that an agent sends.
func NewImage(i wire.Image) Part {
	return build(TypeVision, VisionPart{Type: TypeVision, Kind: "output", URL: i.URL, Path: i.Path, Caption: i.Caption})
}

// NewFile is a document that an agent sends.
func NewFile(f wire.File) Part {
	return build(TypeFile, FilePart{Type: TypeFile, FileName: f.Filename, URL: f.URL, Path: f.Path, Caption: f.Caption})
}

// NewForm is an interactive form.
func NewForm(f UIPart) Part {
	f.Type = TypeUI
	return build(TypeUI, f)
}
