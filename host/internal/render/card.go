package render

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

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
			p.addButtons(text, rows)
			return
		}
	}
	p.note(from, "text", reason)
	p.text(ButtonsText(text, rows))
}

// addButtons sends the buttons under the text, or under its last piece.
func (p *planner) addButtons(text string, rows [][]wire.Button) {
	room := p.Room - len(`,"buttons":`) - len(wire.AppendRows(nil, rows))
	chunks := p.split(text, room)
	for _, c := range chunks[:len(chunks)-1] {
		p.add(wire.Frame{Type: wire.TypeSend, Text: c})
	}
	p.add(wire.Frame{Type: wire.TypeSendButtons, Text: chunks[len(chunks)-1], Buttons: rows})
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
