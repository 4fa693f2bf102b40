package webchat

import (
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What a piece shows.
const (
	kindMarkdown   kind = "markdown"
	kindCard       kind = "card"
	kindButtons    kind = "buttons" // one question with one answer; also chips
	kindForm       kind = "form"
	kindImage      kind = "image"
	kindFile       kind = "file"
	kindAudio      kind = "audio"
	kindTranscript kind = "transcript"
	kindSources    kind = "sources"
	kindProducts   kind = "products"
	kindOrder      kind = "order"
	kindLine       kind = "line"   // something that happened, in a few quiet words
	kindEnd        kind = "end"    // of the session
	kindError      kind = "error"  // for the user
	kindSignal     kind = "signal" // only for screen readers
)

// piece is what one part of a message becomes, as the page gets it: its own
// words and checked addresses, never an agent's JSON. (A form's defaults are any
// JSON; the page takes them for text and booleans only.)
type piece struct {
	Kind    kind            `json:"kind"`
	Text    string          `json:"text,omitempty"`
	URL     string          `json:"url,omitempty"` // where a line leads
	Card    *wire.Card      `json:"card,omitempty"`
	Buttons [][]wire.Button `json:"buttons,omitempty"`
	Chosen  map[int]int     `json:"chosen,omitempty"` // group of buttons → the one that was pressed
	Form    *message.UIPart `json:"form,omitempty"`
	Values  map[string]any  `json:"values,omitempty"` // what the form was answered with
	Media   *media          `json:"media,omitempty"`
	Speaker string          `json:"speaker,omitempty"` // of a transcript: its role
	Interim bool            `json:"interim,omitempty"` // of a transcript: its final replaces it
	Sources []source        `json:"sources,omitempty"`
	Items   []item          `json:"items,omitempty"` // products, or lines of an order
	Sums    []sum           `json:"sums,omitempty"`

	grant *grant // the file behind Media.URL
	ref   string // the sound that a transcript, or the call that a line is about
}

// media is a picture, a file or a sound. URL is one of ours, or http, https or
// (for a picture) data:image of a safe type; "" can't be shown.
type media struct {
	URL     string `json:"url,omitempty"`
	Name    string `json:"name,omitempty"`
	Alt     string `json:"alt,omitempty"`
	Caption string `json:"caption,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"` // 0 = unknown
}

// source is where something that was said comes from; URL may be "".
type source struct {
	Title   string `json:"title"`
	URL     string `json:"url,omitempty"`
	Snippet string `json:"snippet,omitempty"`
}

// item is a product, or a line of an order. URL and Image are checked, or "".
type item struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
	Count string `json:"count,omitempty"`
	Price string `json:"price,omitempty"`
	URL   string `json:"url,omitempty"`
	Image string `json:"image,omitempty"`
}

// sum is an amount below an order.
type sum struct {
	Name   string `json:"name"`
	Amount string `json:"amount"`
}

// precedes reports that next is a later word of the same speech.
func (p *piece) precedes(next *piece) bool {
	return p.Kind == kindTranscript && p.Interim && p.Speaker == next.Speaker && p.ref == next.ref
}

// answered takes over what was answered to the same piece as it was before.
func (p *piece) answered(before *piece) {
	if p.Kind == before.Kind {
		p.Chosen, p.Values = before.Chosen, before.Values
	}
}
