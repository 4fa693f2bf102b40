// Package render is the one place that degrades: a pure function from a message
// and the view of the far end to the frames that it gets, with a note for
// whatever it does not get as it was meant.
package render

import (
	"slices"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Input is one message on its way to one far end.
type Input struct {
	Message *message.Message
	View    wire.View
	Act     Act // see ActOf
	Room    int // bytes that the routing leaves in a frame
}

// Planned is what is sent. No frames and no notes: there was nothing to show.
type Planned struct {
	Frames   []wire.Frame
	Notes    []Note
	TooLarge bool // the routing leaves no room in a frame, or it would be more than MaxFrames
	Offers   bool // buttons, or text that stands for them, are among it
}

// Note says what was shown as something else, and why.
type Note struct {
	From   string `json:"from" doc:"Capability or part type that was asked for"`
	To     string `json:"to" doc:"What was sent instead; none = nothing"`
	Reason string `json:"reason"`
}

// MaxFrames is into how many frames a message may be cut. It holds a megabyte of text
// for a far end that shows a thousand letters at once; what has more is too large.
const MaxFrames = 1000

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
	p.act(in.Act)
	if len(p.out.Frames) > MaxFrames {
		return Planned{TooLarge: true}
	}
	return p.out
}

// content plans what the message says.
func (p *planner) content() {
	if p.whole() {
		return
	}
	if len(p.Message.Parts) == 0 {
		p.text(p.Message.Text)
		return
	}
	p.parts(message.Complete(p.Message.Parts))
	if len(p.out.Frames) == 0 && p.Message.Text != "" {
		p.text(p.Message.Text)
	}
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
	parts := p.Message.All()
	if !p.View.Local {
		parts = each(parts, message.Part.WithoutLocalFiles)
	}
	text := p.Message.Text
	if text == "" && len(p.Message.Parts) > 0 {
		text = Text(p.Message) // for what of the parts the adapter does not know
	}
	frame := wire.Frame{Type: wire.TypeSendParts, Text: text, Parts: message.AppendParts(nil, parts)}
	if !p.fits(frame) {
		// What is inline has an address too, if the host could give it one.
		light := each(parts, byAddress)
		frame.Parts = message.AppendParts(nil, light)
		if !p.fits(frame) {
			if len(p.Message.Parts) > 0 {
				p.note("parts", "frames", reasonTooLarge)
			}
			return false
		}
		p.note("data", "url", reasonTooLarge)
	}
	p.out.Offers = !OfferOf(p.Message).Empty()
	p.add(frame)
	return true
}

// each is the parts as change makes them. Those given stay as they are.
func each(parts []message.Part, change func(message.Part) message.Part) []message.Part {
	out := slices.Clone(parts)
	for i, part := range out {
		out[i] = change(part)
	}
	return out
}

// byAddress is a picture or file without its bytes, if it has an address too.
func byAddress(part message.Part) message.Part {
	if part.Type != message.TypeVision && part.Type != message.TypeFile || part.Address() == "" {
		return part
	}
	return part.Without("data")
}

// fits reports whether a frame has room for what it carries beside routing.
func (p *planner) fits(f wire.Frame) bool {
	return len(f.Append(nil, wire.Routing{}))-(wire.Routing{}).Overhead() <= p.Room
}

func (p *planner) text(text string) {
	if fitsWhole(text, p.View.Profile.MaxText, p.Room) {
		p.add(wire.Frame{Type: wire.TypeSend, Text: text})
		return
	}
	for _, chunk := range p.split(text, p.Room) {
		p.add(wire.Frame{Type: wire.TypeSend, Text: chunk})
	}
}

// split cuts a text into chunks for the far end, and no more of them than Plan sees to
// be too many.
func (p *planner) split(text string, room int) []string {
	return splitUpTo(MaxFrames+1, text, p.View.Profile.MaxText, room)
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

func (p *planner) edit(a Act) {
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
	room := p.Room - len(`"preview_handle":,`) - wire.StringLen(a.Handle)
	switch {
	case !p.View.Caps.Has(wire.CapUpdateMessage):
		p.note("update_message", "text", reasonNotEffective)
	case a.Handle == "":
		p.note("update_message", "text", reasonNoHandle)
	case room < minRoom:
		p.note("update_message", "text", reasonTooLarge)
	default:
		chunks := p.split(text, room)
		p.add(wire.Frame{Type: wire.TypeUpdateMessage, PreviewHandle: a.Handle, Text: chunks[0]})
		for _, c := range chunks[1:] {
			p.add(wire.Frame{Type: wire.TypeSend, Text: c})
		}
		return
	}
	p.text(text)
}
