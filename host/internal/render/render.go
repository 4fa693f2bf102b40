// Package render is the one place that degrades: a pure function from a message
// and the view of the far end to the frames that it gets, with a note for
// whatever it does not get as it was meant.
package render

import (
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
	reasonNoFrame      = "no frame carries it"
	reasonNotForUsers  = "not for end users"
	reasonInterim      = "not final yet"
	reasonEmpty        = "says nothing"
	reasonMarkdown     = "the far end shows no such markdown"
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
	if p.whole() {
		return p.out
	}
	if len(in.Message.Parts) == 0 {
		p.text(in.Message.Text)
		return p.out
	}
	p.parts(message.Complete(in.Message.Parts))
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

func (p *planner) add(f wire.Frame) {
	f.Plain = p.View.Protocol != wire.V10 // a 1.0 adapter may have been written against either spelling of a card
	p.out.Frames = append(p.out.Frames, f)
}

// whole sends the message as it is to who takes parts; false if that is nobody,
// or it does not fit.
func (p *planner) whole() bool {
	if !p.View.Caps.Has(wire.CapParts) {
		return false
	}
	frame := wire.Frame{Type: wire.TypeSendParts, Text: p.Message.Text, Parts: message.AppendParts(nil, p.Message.All())}
	if !p.fits(frame) {
		if len(p.Message.Parts) > 0 {
			p.note("parts", "frames", reasonTooLarge)
		}
		return false
	}
	p.out.Offers = !OfferOf(p.Message).Empty()
	p.add(frame)
	return true
}

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
