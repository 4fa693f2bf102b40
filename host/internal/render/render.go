// Package render is the one place that degrades: a pure function from a message
// and the view of the far end to the frames that it gets, with a note for
// whatever it does not get as it was meant.
package render

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Input is one message on its way to one far end.
type Input struct {
	Message *message.Message
	View    wire.View
	Edit    bool   // the message changes an earlier one …
	Handle  string // … that the platform knows by this; "" = unknown
	Room    int    // bytes that the routing leaves in a frame
}

// Planned is what is sent. No frames and no notes: there was nothing to show.
type Planned struct {
	Frames   []wire.Frame
	Notes    []Note
	TooLarge bool // the routing leaves no room in a frame
	Offers   bool // buttons, or text that stands for them, are among it
}

// Note says what was shown as something else, and why.
type Note struct {
	From   string `json:"from" doc:"Capability or part type that was asked for"`
	To     string `json:"to" doc:"What was sent instead; none = nothing"`
	Reason string `json:"reason"`
}

// minRoom is the least space for content that makes sending sensible.
const minRoom = 64

// Reasons of notes.
const (
	reasonNotEffective = "capability not effective"
	reasonTooLarge     = "larger than a frame"
	reasonTooMany      = "more buttons than the far end shows"
	reasonNoHandle     = "no handle of the earlier message is known"
	reasonNoText       = "has no form in text"
	reasonMalformed    = "malformed part"
	reasonUnreachable  = "the far end can't reach it"
	reasonElement      = "element of an unknown type"
	reasonEdit         = "an edit is plain text"
)

// Plan turns a message into frames. It is deterministic and does no I/O.
func Plan(in Input) Planned {
	p := planner{Input: in}
	if in.Room < minRoom {
		return Planned{TooLarge: true}
	}
	if in.Edit {
		p.edit()
		return p.out
	}
	if len(in.Message.Parts) == 0 {
		p.text(in.Message.Text)
		return p.out
	}
	for _, part := range in.Message.Parts {
		p.part(part)
	}
	if len(p.out.Frames) == 0 && in.Message.Text != "" {
		p.text(in.Message.Text)
	}
	return p.out
}

type planner struct {
	Input
	out Planned
}

func (p *planner) note(from, to, reason string) {
	p.out.Notes = append(p.out.Notes, Note{from, to, reason})
}

func (p *planner) add(f wire.Frame) { p.out.Frames = append(p.out.Frames, f) }

// fits reports whether a frame has room for what it carries beside routing.
func (p *planner) fits(f wire.Frame) bool {
	return len(f.Append(nil, wire.Routing{}))-(wire.Routing{}).Overhead() <= p.Room
}

func (p *planner) text(text string) {
	for _, chunk := range split(text, p.View.Profile.MaxText, p.Room) {
		p.add(wire.Frame{Type: wire.TypeSend, Text: chunk})
	}
}

// instead shows text in place of what was asked for; "" = there is none.
func (p *planner) instead(from, reason, text string) {
	if text == "" {
		p.note(from, "none", reason)
		return
	}
	p.note(from, "text", reason)
	p.text(text)
}

func (p *planner) edit() {
	text := p.Message.Text
	if len(p.Message.Parts) > 0 {
		var planned Planned
		text, planned = plain(p.Message)
		for _, n := range planned.Notes {
			if n.To == "text" {
				n.Reason = reasonEdit
			}
			p.out.Notes = append(p.out.Notes, n)
		}
		if p.out.Offers = planned.Offers; len(planned.Frames) == 0 {
			return // the notes say why
		}
	}
	room := p.Room - len(`"preview_handle":,`) - wire.StringLen(p.Handle)
	switch {
	case !p.View.Caps.Has(wire.CapUpdateMessage):
		p.note("update_message", "text", reasonNotEffective)
	case p.Handle == "":
		p.note("update_message", "text", reasonNoHandle)
	case room < minRoom:
		p.note("update_message", "text", reasonTooLarge)
	default:
		chunks := split(text, p.View.Profile.MaxText, room)
		p.add(wire.Frame{Type: wire.TypeUpdateMessage, PreviewHandle: p.Handle, Text: chunks[0]})
		for _, c := range chunks[1:] {
			p.add(wire.Frame{Type: wire.TypeSend, Text: c})
		}
		return
	}
	p.text(text)
}

func (p *planner) part(part message.Part) {
	var ok bool
	switch part.Type {
	case message.TypeText:
		ok = show(part, func(t message.TextPart) { p.text(t.Text) })
	case message.TypeMarkdown:
		ok = show(part, func(m message.MarkdownPart) { p.text(m.Markdown) })
	case message.TypeCustom:
		ok = p.custom(part)
	case message.TypeVision:
		ok = show(part, p.image)
	case message.TypeFile:
		ok = show(part, p.file)
	case message.TypeUI:
		ok = show(part, func(ui message.UIPart) {
			p.instead(part.Type, reasonNotEffective, formText(ui))
		})
	default:
		p.note(part.Type, "none", reasonNoText)
		return
	}
	if !ok {
		p.note(part.Type, "none", reasonMalformed)
	}
}

// show decodes the part and passes it on; false if it is malformed.
func show[T message.View](part message.Part, fn func(T)) bool {
	v, err := message.As[T](part)
	if err != nil {
		return false
	}
	fn(v)
	return true
}

func (p *planner) custom(part message.Part) bool {
	c, err := message.As[message.CustomPart](part)
	if err != nil {
		return false
	}
	switch c.PayloadType {
	case message.PayloadCard:
		var card wire.Card
		if json.Unmarshal(c.Data, &card) != nil || card.Header == nil && len(card.Elements) == 0 {
			return false
		}
		p.card(&card)
	case message.PayloadButtons:
		var o message.Offer
		if json.Unmarshal(c.Data, &o) != nil {
			return false
		}
		switch rows := filled(o.Buttons); {
		case len(rows) > 0:
			p.out.Offers = true
			p.buttons(o.Text, rows, "buttons")
		case o.Text != "":
			p.text(o.Text)
		default:
			return false
		}
	default:
		p.note(firstOf(c.PayloadType, part.Type), "none", reasonNoText)
	}
	return true
}

// card → buttons with the card's text, if it has any and they can be shown → text.
func (p *planner) card(c *wire.Card) {
	for i := range c.Elements {
		if !known(c.Elements[i].Type) {
			p.note("card", "none", reasonElement)
		}
	}
	rows := cardRows(c)
	p.out.Offers = p.out.Offers || len(rows) > 0
	frame := wire.Frame{Type: wire.TypeSendCard, Card: c}
	reason := reasonNotEffective
	if p.View.Caps.Has(wire.CapCard) {
		if p.fits(frame) {
			p.add(frame)
			return
		}
		reason = reasonTooLarge
	}
	if len(rows) > 0 && p.View.Caps.Has(wire.CapButtons) && p.buttonsFit(rows) == "" {
		p.note("card", "buttons", reason)
		p.buttons(CardText(c), rows, "card")
		return
	}
	p.instead("card", reason, CardText(c))
}

func known(t wire.ElementType) bool {
	switch t {
	case wire.ElementMarkdown, wire.ElementDivider, wire.ElementActions, wire.ElementListItem, wire.ElementSelect, wire.ElementNote:
		return true
	}
	return false
}

// buttons → text with the labels.
func (p *planner) buttons(text string, rows [][]wire.Button, from string) {
	reason := reasonNotEffective
	if p.View.Caps.Has(wire.CapButtons) {
		if reason = p.buttonsFit(rows); reason == "" {
			room := p.Room - len(`,"buttons":`) - len(wire.AppendRows(nil, rows))
			chunks := split(text, p.View.Profile.MaxText, room)
			for _, c := range chunks[:len(chunks)-1] {
				p.add(wire.Frame{Type: wire.TypeSend, Text: c})
			}
			p.add(wire.Frame{Type: wire.TypeSendButtons, Text: chunks[len(chunks)-1], Buttons: rows})
			return
		}
	}
	p.note(from, "text", reason)
	p.text(ButtonsText(text, rows))
}

// buttonsFit is "" if the rows can be shown as they are, else why not.
func (p *planner) buttonsFit(rows [][]wire.Button) string {
	n := 0
	for _, r := range rows {
		n += len(r)
	}
	if most := p.View.Profile.MaxButtons; most > 0 && n > most {
		return reasonTooMany
	}
	if len(wire.AppendRows(nil, rows)) > p.Room-minRoom-len(`,"buttons":`) {
		return reasonTooLarge
	}
	return ""
}

func (p *planner) image(v message.VisionPart) {
	img := wire.Image{URL: v.URL, Caption: v.Caption}
	if p.View.Local {
		img.Path = v.Path
	}
	frame := wire.Frame{Type: wire.TypeSendImage, Image: &img}
	p.media("image", wire.CapImage, frame, img.URL != "" || img.Path != "", mediaText(v.Caption, v.AltText, v.URL))
}

func (p *planner) file(f message.FilePart) {
	file := wire.File{URL: f.URL, Filename: f.FileName, Caption: f.Caption}
	if p.View.Local {
		file.Path = f.Path
	}
	frame := wire.Frame{Type: wire.TypeSendFile, File: &file}
	p.media("file", wire.CapFile, frame, file.URL != "" || file.Path != "", mediaText(f.Caption, f.FileName, f.URL))
}

// media sends the frame, or the text in its place.
func (p *planner) media(name string, needs wire.Caps, frame wire.Frame, reachable bool, text string) {
	reason := reasonNotEffective
	switch {
	case !reachable:
		reason = reasonUnreachable
	case p.View.Caps.Has(needs) && p.fits(frame):
		p.add(frame)
		return
	case p.View.Caps.Has(needs):
		reason = reasonTooLarge
	}
	p.instead(name, reason, text)
}
