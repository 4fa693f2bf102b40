package render

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Offer is what a message lets users choose or fill in, so that a typed answer
// counts as the button or the form that it stands for. The zero Offer is none.
type Offer struct {
	choices []choice        // in the order that they are shown
	form    *message.UIPart // the last one
	parts   []message.Part  // that all of these are of
	edit    bool            // they came with an edit, which is plain text
	passed  bool            // see Passed
}

// choice can be chosen by typing its label or number.
type choice struct{ label, value string }

// OfferOf is what the message offers.
func OfferOf(m *message.Message) Offer {
	o := Offer{edit: ActOf(m).Kind == ActEdit}
	for _, p := range m.Parts {
		before := len(o.choices)
		switch p.Type {
		case message.TypeCustom:
			o.add(customRows(p))
		case message.TypeChips:
			show(p, func(c message.ChipsPart) { o.add(chipRows(c)) })
		case message.TypeUI:
			show(p, func(ui message.UIPart) {
				o.form = &ui
				o.add(formRows(ui))
			})
		}
		if len(o.choices) > before {
			o.parts = append(o.parts, p)
		}
	}
	return o
}

// Typed reports whether a typed text may stand for what the offer shows.
func (o Offer) Typed() bool { return !o.Empty() && !o.passed }

// Passed is the offer after the conversation's next message: who types a word or a
// number later means that, and no button of long ago. Buttons can still be pressed, and
// a form of several questions filled in, whose answers can't be taken for anything else.
func (o Offer) Passed() Offer {
	if o.form == nil {
		return Offer{}
	}
	return Offer{form: o.form, passed: true}
}

// inText reports whether a far end with this view is shown the choices as text, so that
// a user who types a number has counted them.
func (o Offer) inText(v wire.View) bool {
	if o.edit {
		return true
	}
	planned := Plan(Input{Message: &message.Message{Parts: o.parts}, View: v, Room: wire.MaxFrame / 2})
	return slices.ContainsFunc(planned.Notes, func(n Note) bool { return n.To == "text" })
}

func (o *Offer) add(rows [][]wire.Button) {
	for _, row := range rows {
		for _, b := range row {
			o.choices = append(o.choices, choice{b.Text, b.Value})
		}
	}
}

func customRows(p message.Part) [][]wire.Button {
	c, err := message.As[message.CustomPart](p)
	if err != nil {
		return nil
	}
	switch c.PayloadType {
	case message.PayloadCard:
		var card wire.Card
		if json.Unmarshal(c.Data, &card) == nil {
			return cardRows(&card)
		}
	case message.PayloadButtons:
		var o message.Offer
		if json.Unmarshal(c.Data, &o) == nil {
			return o.Buttons
		}
	}
	return nil
}

// Empty reports that there is nothing to choose.
func (o Offer) Empty() bool { return len(o.choices) == 0 && o.form == nil }

// Choose is the action of the choice that the user typed, by its label (in any
// case), or by its number if the far end was shown the choices as text. Labels go
// first: one may be a number, and a user types what is shown.
func (o Offer) Choose(text string, v wire.View) (action string, ok bool) {
	if len(o.choices) == 0 {
		return "", false
	}
	text = strings.TrimSpace(text)
	for _, c := range o.choices {
		if strings.EqualFold(c.label, text) {
			return c.value, true
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(o.choices) && len(text) < 4 && o.inText(v) {
		return o.choices[n-1].value, true
	}
	return "", false
}

// Submit is the form filled in, if that is what the action or else the typed
// text means.
func (o Offer) Submit(text, action string) (message.Part, bool) {
	switch {
	case o.form == nil:
		return message.Part{}, false
	case action != "":
		return answered(*o.form, action)
	case o.passed && len(questions(*o.form)) == 1: // to which any text is an answer
		return message.Part{}, false
	}
	return typed(*o.form, text)
}
