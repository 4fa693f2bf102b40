package webchat

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What the page shows of one message, product list or order; a frame of the host
// may hold thousands, which no page is read for.
const maxPieces, maxItems = 200, 100

// reader makes pieces of parts.
type reader struct {
	pieces []*piece
	said   bool  // something is there to be read, heard or chosen
	left   int   // parts beyond maxPieces
	err    error // the first thing that can't be shown
}

// piecesOf is what the page shows of a message. text counts where its parts say
// nothing. The error says why, where the message is nothing but what can't be
// shown; beside something else, the page says that it can't.
func piecesOf(text string, parts []message.Part) ([]*piece, error) {
	var r reader
	for _, p := range message.Complete(parts) {
		v, err := p.View()
		switch {
		case errors.Is(err, message.ErrUnknownType):
			r.text(kindText, message.TextField(p.Raw(), "text", "markdown", "message", "title"))
		case err == nil: // else it is malformed: there is nothing to read in it
			r.read(v, p)
		}
	}
	if r.err != nil && !r.said {
		return nil, r.err
	}
	if !r.said {
		r.text(kindText, text)
	}
	if r.left > 0 {
		r.pieces = append(r.pieces, &piece{Kind: kindLine, Text: "And " + strconv.Itoa(r.left) + " more that this page does not show"})
	}
	return r.pieces, nil
}

// add shows p, which says something.
func (r *reader) add(p *piece) {
	r.said = true
	r.beside(p)
}

// beside shows p, which alone is no message.
func (r *reader) beside(p *piece) {
	if len(r.pieces) >= maxPieces {
		r.left++
		return
	}
	r.pieces = append(r.pieces, p)
}

// text shows text, if there is any.
func (r *reader) text(k kind, text string) {
	if strings.TrimSpace(text) != "" {
		r.add(&piece{Kind: k, Text: text})
	}
}

// line shows that something happened.
func (r *reader) line(text string) { r.beside(&piece{Kind: kindLine, Text: text}) }

// read shows one part. What only developers or machines read is left out:
// diagnostics, cues and surfaces.
func (r *reader) read(v message.View, p message.Part) {
	switch v := v.(type) {
	case message.TextPart:
		r.text(kindText, v.Text)
	case message.MarkdownPart:
		r.text(kindMarkdown, v.Markdown)
	case message.CitationPart:
		r.citation(v)
	case message.ChipsPart:
		r.chips(v)
	case message.CarouselPart:
		r.carousel(v)
	case message.OrderPart:
		r.order(v)
	case message.CustomPart:
		r.custom(v, p)
	case message.UIPart:
		r.add(formPiece(&v))
	case message.UISubmitPart:
		r.text(kindText, p.Plain())
	case message.VisionPart:
		r.media(picture(v))
	case message.FilePart:
		r.media(document(v))
	case message.AudioInputPart:
		r.sound(v.ID, v.URL)
	case message.AudioOutputPart:
		r.sound(v.ID, v.URL)
	case message.TranscriptPart:
		r.transcript(v)
	case message.ErrorPart:
		r.text(kindError, or(v.UserMessage, "Something went wrong."))
	case message.EndSessionPart:
		r.text(kindEnd, or(v.Message, endText(v.Reason)))
	case message.SentimentPart:
		r.signal("Sentiment", or(v.Polarity, v.Category))
	case message.IntentPart:
		r.signal("Intent", v.Intent)
	default:
		r.told(v)
	}
}

// citation adds a source to those just named.
func (r *reader) citation(c message.CitationPart) {
	s := source{Title: or(c.Title, c.URL), Snippet: c.Snippet}
	if checkURL(c.URL) == nil {
		s.URL = c.URL
	}
	if s.Title == "" && s.Snippet == "" {
		return
	}
	if n := len(r.pieces); n > 0 && r.pieces[n-1].Kind == kindSources {
		if last := r.pieces[n-1]; len(last.Sources) < maxItems {
			last.Sources = append(last.Sources, s)
		}
		return
	}
	r.add(&piece{Kind: kindSources, Sources: []source{s}})
}

// chips are buttons without a text of their own.
func (r *reader) chips(c message.ChipsPart) {
	var row []wire.Button
	for _, chip := range c.Chips {
		if chip.Label != "" {
			row = append(row, wire.Button{Text: chip.Label, Value: or(chip.Value, chip.Label)})
		}
	}
	if row != nil {
		r.add(buttonsPiece("", [][]wire.Button{row}))
	}
}

func (r *reader) carousel(c message.CarouselPart) {
	if items, more := readItems(c.Products); items != nil {
		r.add(&piece{Kind: kindProducts, Items: items, Text: more})
	}
}

func (r *reader) order(o message.OrderPart) {
	p := &piece{Kind: kindOrder, Text: "Order"}
	if o.OrderID != "" {
		p.Text += " " + o.OrderID
	}
	items, more := readItems(o.Items)
	if p.Items = items; more != "" {
		p.Items = append(p.Items, item{Name: more})
	}
	for _, s := range []sum{{"Subtotal", message.Sum(o.Subtotal)}, {"Total", message.Sum(o.Total)}} {
		if s.Amount != "" {
			p.Sums = append(p.Sums, s)
		}
	}
	r.add(p)
}

// readItems reads what has a name; more says how many are not shown.
func readItems(raw []json.RawMessage) (items []item, more string) {
	for _, one := range raw {
		it := message.ReadItem(one)
		if it.Name == "" {
			continue
		}
		if len(items) == maxItems {
			return items, "And more"
		}
		shown := item{Name: it.Name, About: it.About, Count: it.Count, Price: it.Price}
		if checkURL(it.URL) == nil {
			shown.URL = it.URL
		}
		if dataImage.MatchString(it.Image) || checkURL(it.Image) == nil {
			shown.Image = it.Image
		}
		items = append(items, shown)
	}
	return items, ""
}

// custom shows the bridge's own cards and buttons, and the words of another.
func (r *reader) custom(c message.CustomPart, p message.Part) {
	switch c.PayloadType {
	case message.PayloadCard:
		var card wire.Card
		if json.Unmarshal(c.Data, &card) == nil && (card.Header != nil || len(card.Elements) > 0) {
			r.add(cardPiece(&card))
		}
	case message.PayloadButtons:
		var o message.Offer
		if json.Unmarshal(c.Data, &o) == nil && (o.Text != "" || len(o.Buttons) > 0) {
			r.add(buttonsPiece(o.Text, o.Buttons))
		}
	default:
		r.text(kindText, or(message.TextField(p.Raw(), "text"), p.Plain()))
	}
}

func cardPiece(card *wire.Card) *piece { return &piece{Kind: kindCard, Card: card} }

func buttonsPiece(text string, rows [][]wire.Button) *piece {
	return &piece{Kind: kindButtons, Text: text, Buttons: rows}
}

func formPiece(form *message.UIPart) *piece { return &piece{Kind: kindForm, Form: form} }

// media shows p, or that it can't be shown.
func (r *reader) media(p *piece, err error) {
	switch {
	case err == nil:
		r.add(p)
	case r.err == nil:
		r.err = err
		r.beside(p)
	default:
		r.beside(p)
	}
}

// sound shows a recording that is there; what was said in it is beside it.
func (r *reader) sound(id, url string) {
	if url != "" {
		p, err := sound(url, "")
		p.ref = id
		r.media(p, err)
	}
}

// transcript goes beside its sound, else in place of what it is the final word of.
func (r *reader) transcript(t message.TranscriptPart) {
	p := &piece{Kind: kindTranscript, Text: t.Text, Speaker: t.Role, Interim: t.Interim, ref: t.AudioRefID}
	if strings.TrimSpace(t.Text) == "" {
		return
	}
	for _, before := range r.pieces {
		switch {
		case before.Kind == kindAudio && p.ref != "" && before.ref == p.ref:
			before.Media.Caption, r.said = p.Text, true
			return
		case before.precedes(p):
			*before = *p
			return
		}
	}
	r.add(p)
}

// signal tells screen readers what an agent took a message for.
func (r *reader) signal(name, what string) {
	if what != "" {
		r.beside(&piece{Kind: kindSignal, Text: name + ": " + oneLine(what, maxLabel)})
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
