package render

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

var order = message.UIPart{UIID: "order", Components: []message.UIComponent{
	{Type: message.UIHeading, Text: "Order"},
	{Type: message.UIInput, Name: "who", Label: "Name", Required: true},
	{Type: message.UIRadio, Name: "size", Label: "Size", Options: []message.UIOption{{Value: "s", Label: "Small"}, {Value: "l", Label: "Large"}}},
	{Type: message.UICheckbox, Name: "gift", Label: "A gift", Default: []byte("true")},
	{Type: message.UICheckboxGroup, Name: "extras", Label: "Extras", Options: []message.UIOption{{Value: "oar", Label: "Oar"}, {Value: "sail", Label: "Sail"}}},
}}

// What a user types for a numbered form becomes the form filled in, or stays
// what it is.
func TestTypedForm(t *testing.T) {
	m := message.New(message.NewForm(order))
	offer := OfferOf(&m)
	for name, c := range map[string]struct{ typed, want string }{
		"numbered":        {"1. Ann\n2. large\n3. no\n4. oar, Sail", `{"extras":["oar","sail"],"gift":false,"size":"l","who":"Ann"}`},
		"by place":        {"Ann\nSmall\nyes\nnone", `{"extras":[],"gift":true,"size":"s","who":"Ann"}`},
		"some":            {"1) Ann", `{"gift":true,"who":"Ann"}`},
		"by number":       {"1: Ann\n2: 2", `{"gift":true,"size":"l","who":"Ann"}`},
		"several lines":   {"1. Ann\nSmith\n2. s", `{"gift":true,"size":"s","who":"Ann\nSmith"}`},
		"out of order":    {"4. oar\n1. Ann", `{"extras":["oar"],"gift":true,"who":"Ann"}`},
		"errRequired":     {"2. large", ""},
		"errChoice":       {"1. Ann\n2. huge", ""},
		"errGift":         {"1. Ann\n3. perhaps", ""},
		"errProse":        {"what is this?", ""},
		"errTwoLines":     {"what is\nthis?", ""},
		"errBeyond":       {"7. Ann", ""},
		"errEmpty":        {"", ""},
		"errEmptyNumbers": {"1.\n2.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			part, ok := offer.Submit(c.typed, "")
			want := `{"type":"ui_submit","uiId":"order","values":` + c.want + `}`
			if ok != (c.want != "") || ok && string(part.Raw()) != want {
				t.Errorf("read as %v %s, expected %s", ok, part.Raw(), want)
			}
		})
	}
	if _, ok := offer.Passed().Submit("1. Ann", ""); !ok {
		t.Error("after another message the form can't be filled in")
	}
	if _, ok := OfferOf(&message.Message{}).Submit("1. Ann", ""); ok {
		t.Error("no form is filled in")
	}
}

// A form that asks for one choice is buttons, whose actions are its answer; so
// is their label or number when typed.
func TestChosenForm(t *testing.T) {
	for name, c := range map[string]struct {
		component message.UIComponent
		label     string
		want      string
	}{
		"radio":                 {message.UIComponent{Type: message.UIRadio, Name: "a:b", Label: "Which?", Options: []message.UIOption{{Value: "x y/ü", Label: "First"}, {Value: "2"}}}, "First", `{"a:b":"x y/ü"}`},
		"select without labels": {message.UIComponent{Type: message.UISelect, Name: "n", Options: []message.UIOption{{Value: "1"}, {Value: "2"}}}, "2", `{"n":"2"}`},
		"checkbox":              {message.UIComponent{Type: message.UICheckbox, Name: "n", Label: "Sure?"}, "Yes", `{"n":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			m := message.New(message.NewForm(message.UIPart{UIID: "f:1", Components: []message.UIComponent{{Type: message.UIText, Text: "Intro"}, c.component}}))
			for _, caps := range []wire.Caps{wire.CapText | wire.CapButtons, wire.CapText | wire.CapCard} {
				planned := Plan(Input{Message: &m, View: wire.View{Caps: caps}, Room: ample})
				if len(planned.Frames) != 1 || !planned.Offers || planned.Frames[0].Type == wire.TypeSend {
					t.Errorf("with %s: %s", caps, asJSON(planned))
				}
			}
			offer := OfferOf(&m)
			action, ok := offer.Choose(c.label, wire.View{})
			if !ok {
				t.Fatalf("%q is no choice", c.label)
			}
			part, ok := offer.Passed().Submit("", action)
			if want := `{"type":"ui_submit","uiId":"f:1","values":` + c.want + `}`; !ok || string(part.Raw()) != want {
				t.Errorf("%s is read as %v %s, expected %s", action, ok, part.Raw(), want)
			}
			for _, other := range []string{"yes", "ui:", "ui:f:1:n:1", "ui:other:n:true", "ui:f%3A1:other:true", "ui:f%3A1:n:%zz"} {
				if _, ok := offer.Submit("", other); ok {
					t.Errorf("action %q fills the form in", other)
				}
			}
		})
	}
}
