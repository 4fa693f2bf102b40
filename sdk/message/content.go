package message

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What a conversation is made of: text, citations, choices, things to buy, and
// whatever an application defines for itself.

// Payload types of custom parts that the bridge knows.
const (
	PayloadCard    = "bridge.card"    // data is a wire.Card
	PayloadButtons = "bridge.buttons" // data is Offer
)

// TextPart is final plain text.
type TextPart struct {
	Base
	Text string `json:"text"`
}

// TextDeltaPart is a piece of text that is still being written; Complete makes
// text of all of them.
type TextDeltaPart struct {
	Base
	Delta string `json:"delta"`
}

// MarkdownPart is text in markdown.
type MarkdownPart struct {
	Base
	Markdown string `json:"markdown"`
}

// CitationPart names a source.
type CitationPart struct {
	Base
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet,omitempty"`
}

// ChipsPart offers answers to tap.
type ChipsPart struct {
	Base
	Chips          []Chip          `json:"chips"`
	PayloadVersion json.RawMessage `json:"payloadVersion,omitempty"`
}

// Chip is one answer; what is sent is Value, or Label if there is none.
type Chip struct {
	Label string `json:"label"`
	Value string `json:"value,omitempty"`
}

// CarouselPart shows products, whose shape is the application's.
type CarouselPart struct {
	Base
	Products       []json.RawMessage `json:"products"`
	PayloadVersion json.RawMessage   `json:"payloadVersion,omitempty"`
}

// OrderPart sums up an order. The shape of items is the application's; so is
// whether a sum is a number, text or an object with a currency.
type OrderPart struct {
	Base
	OrderID        string            `json:"orderId"`
	Items          []json.RawMessage `json:"items"`
	Subtotal       json.RawMessage   `json:"subtotal"`
	Total          json.RawMessage   `json:"total"`
	PayloadVersion json.RawMessage   `json:"payloadVersion,omitempty"`
}

// CustomPart is a payload that PayloadType names.
type CustomPart struct {
	Base
	PayloadType    string          `json:"payloadType"`
	Data           json.RawMessage `json:"data"`
	PayloadVersion json.RawMessage `json:"payloadVersion,omitempty"`
}

// Offer is the data of a bridge.buttons part: a text with rows of buttons.
type Offer struct {
	Text    string          `json:"text"`
	Buttons [][]wire.Button `json:"buttons"`
}

func (TextPart) partType() string      { return TypeText }
func (TextDeltaPart) partType() string { return TypeTextDelta }
func (MarkdownPart) partType() string  { return TypeMarkdown }
func (CitationPart) partType() string  { return TypeCitation }
func (ChipsPart) partType() string     { return TypeChips }
func (CarouselPart) partType() string  { return TypeCarousel }
func (OrderPart) partType() string     { return TypeOrder }
func (CustomPart) partType() string    { return TypeCustom }

// NewText is a text part.
func NewText(text string) Part { return Of(TextPart{Text: text}) }

// NewTextDelta is a piece of text.
func NewTextDelta(delta string) Part { return Of(TextDeltaPart{Delta: delta}) }

// NewMarkdown is a text in markdown.
func NewMarkdown(markdown string) Part { return Of(MarkdownPart{Markdown: markdown}) }

// NewCitation names a source; snippet may be empty.
func NewCitation(title, url, snippet string) Part {
	return Of(CitationPart{Title: title, URL: url, Snippet: snippet})
}

// NewChips offers answers to tap.
func NewChips(chips ...Chip) Part { return Of(ChipsPart{Chips: chips}) }

// NewCarousel shows products, each a JSON object.
func NewCarousel(products ...json.RawMessage) Part { return Of(CarouselPart{Products: products}) }

// NewOrder sums up an order.
func NewOrder(o OrderPart) Part { return Of(o) }

// NewCustom is a payload of an application's own; data is any JSON.
func NewCustom(payloadType string, data json.RawMessage) Part {
	return Of(CustomPart{PayloadType: payloadType, Data: data})
}

// NewCard is a structured card.
func NewCard(c *wire.Card) Part { return custom(PayloadCard, c) }

// NewButtons is a text with rows of buttons.
func NewButtons(text string, rows [][]wire.Button) Part {
	return custom(PayloadButtons, Offer{text, rows})
}

func custom(payload string, data any) Part {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("message: marshal " + payload + ": " + err.Error())
	}
	return NewCustom(payload, raw)
}
