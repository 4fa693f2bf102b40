package render

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Forms where the far end has none: as a card or buttons where one choice is
// all that is asked, else as numbered questions. Either is read back into the
// same answer.

// form → send_form → card, then buttons, where a single choice suffices → numbered questions.
func (p *planner) form(raw json.RawMessage, ui message.UIPart) {
	p.out.Offers = true
	reason := reasonNotEffective
	if p.View.Caps.Has(wire.CapForm) {
		if frame := (wire.Frame{Type: wire.TypeSendForm, UI: raw}); p.fits(frame) {
			p.add(frame)
			return
		}
		reason = reasonTooLarge
	}
	if rows := formRows(ui); rows != nil {
		card := formCard(ui, rows)
		if frame := (wire.Frame{Type: wire.TypeSendCard, Card: card}); p.View.Caps.Has(wire.CapCard) && p.fits(frame) {
			p.note(message.TypeUI, "card", reason)
			p.add(frame)
			return
		}
		if p.View.Caps.Has(wire.CapButtons) {
			tooMany := p.buttonsFit(rows)
			if tooMany == "" {
				p.note(message.TypeUI, "buttons", reason)
				p.addButtons(formHead(ui, true), rows)
				return
			}
			reason = tooMany
		}
	}
	p.instead(message.TypeUI, reason, formText(ui))
}

// questions are the components that take an answer.
func questions(ui message.UIPart) []message.UIComponent {
	var out []message.UIComponent
	for _, c := range ui.Components {
		if c.Name != "" && c.Type != message.UIHeading && c.Type != message.UIText {
			out = append(out, c)
		}
	}
	return out
}

// formRows are the buttons of a form that asks for one choice alone; nil if it
// asks for more, or for text.
func formRows(ui message.UIPart) [][]wire.Button {
	asked := questions(ui)
	if len(asked) != 1 {
		return nil
	}
	c := asked[0]
	var row []wire.Button
	switch c.Type {
	case message.UIRadio, message.UISelect:
		for _, o := range c.Options {
			row = append(row, wire.Button{Text: firstOf(o.Label, o.Value), Value: formAction(ui, c, o.Value)})
		}
	case message.UICheckbox:
		row = []wire.Button{{Text: "Yes", Value: formAction(ui, c, "true")}, {Text: "No", Value: formAction(ui, c, "false")}}
	}
	if row == nil {
		return nil
	}
	return [][]wire.Button{row}
}

// formPrefix begins the action of a button that answers a form.
const formPrefix = "ui:"

func formAction(ui message.UIPart, c message.UIComponent, v string) string {
	return formPrefix + url.QueryEscape(ui.UIID) + ":" + url.QueryEscape(c.Name) + ":" + url.QueryEscape(v)
}

func formCard(ui message.UIPart, rows [][]wire.Button) *wire.Card {
	card := &wire.Card{}
	for _, c := range ui.Components {
		switch {
		case c.Type == message.UIHeading && card.Header == nil && len(card.Elements) == 0:
			card.Header = &wire.Header{Title: c.Text}
		case c.Type == message.UIHeading || c.Type == message.UIText:
			card.Elements = append(card.Elements, wire.Element{Type: wire.ElementMarkdown, Content: c.Text})
		case c.Name != "":
			card.Elements = append(card.Elements,
				wire.Element{Type: wire.ElementMarkdown, Content: firstOf(c.Label, c.Name)}, wire.Element{Type: wire.ElementActions, Buttons: rows})
		}
	}
	return card
}

// formHead is what a form says beside its questions, and the one question.
func formHead(ui message.UIPart, question bool) string {
	var lines []string
	for _, c := range ui.Components {
		switch {
		case c.Type == message.UIHeading || c.Type == message.UIText:
			lines = append(lines, c.Text)
		case question && c.Name != "":
			lines = append(lines, firstOf(c.Label, c.Name))
		}
	}
	return strings.Join(lines, "\n")
}

// formText is a form as numbered questions, with how to answer them.
func formText(ui message.UIPart) string {
	var lines []string
	n := 0
	for _, c := range ui.Components {
		if c.Type == message.UIHeading || c.Type == message.UIText || c.Name == "" {
			lines = append(lines, c.Text)
			continue
		}
		n++
		lines = append(lines, strconv.Itoa(n)+". "+questionText(c))
	}
	if n > 1 {
		lines = append(lines, "(Answer with one line each, such as: 1. …)")
	}
	return strings.Join(lines, "\n")
}

func questionText(c message.UIComponent) string {
	text := firstOf(c.Label, c.Name)
	switch c.Type {
	case message.UICheckbox:
		text += " (yes | no)"
	case message.UIRadio, message.UISelect, message.UICheckboxGroup:
		names := make([]string, len(c.Options))
		for i, o := range c.Options {
			names[i] = firstOf(o.Label, o.Value)
		}
		how := ""
		if c.Type == message.UICheckboxGroup {
			how = "any of: "
		}
		text += " (" + how + strings.Join(names, " | ") + ")"
	}
	if c.Required {
		text += " *"
	}
	return text
}

// answered is the form's answer that an action of formRows stands for.
func answered(ui message.UIPart, action string) (message.Part, bool) {
	rest, ok := strings.CutPrefix(action, formPrefix)
	words := strings.Split(rest, ":")
	if !ok || len(words) != 3 {
		return message.Part{}, false
	}
	for i, w := range words {
		plain, err := url.QueryUnescape(w)
		if err != nil {
			return message.Part{}, false
		}
		words[i] = plain
	}
	asked := questions(ui)
	if len(asked) != 1 || words[0] != ui.UIID || words[1] != asked[0].Name {
		return message.Part{}, false
	}
	v, ok := answer(asked[0], words[2])
	if !ok {
		return message.Part{}, false
	}
	return message.NewSubmit(ui.UIID, map[string]any{asked[0].Name: v}), true
}

var numberedLine = regexp.MustCompile(`^\s*(\d{1,3})\s*[.):]\s*(.*)$`)

// typed reads the answers that a user typed: numbered lines, a line for each
// question, or any text if there is one question. It is false if that is no
// answer to the form: something required is missing, a choice is none.
func typed(ui message.UIPart, text string) (message.Part, bool) {
	asked := questions(ui)
	given, ok := lines(len(asked), text)
	if !ok {
		return message.Part{}, false
	}
	values := map[string]any{}
	for i, c := range asked {
		text, there := given[i]
		if !there || text == "" {
			if c.Required {
				return message.Part{}, false
			}
			if v, ok := initial(c); ok {
				values[c.Name] = v
			}
			continue
		}
		v, ok := answer(c, text)
		if !ok {
			return message.Part{}, false
		}
		values[c.Name] = v
	}
	return message.NewSubmit(ui.UIID, values), true
}

// lines finds the answer to each of n questions, by their place.
func lines(n int, text string) (map[int]string, bool) {
	given := map[int]string{}
	all := strings.Split(strings.TrimSpace(text), "\n")
	last := -1
	for _, line := range all {
		if m := numberedLine.FindStringSubmatch(line); m != nil {
			i, _ := strconv.Atoi(m[1]) // at most three digits
			if i >= 1 && i <= n {
				last = i - 1
				given[last] = strings.TrimSpace(m[2])
				continue
			}
		}
		if last >= 0 {
			given[last] += "\n" + strings.TrimRight(line, " \r") // an answer of several lines
		}
	}
	switch {
	case len(given) > 0:
		return given, true
	case n == 1:
		return map[int]string{0: strings.TrimSpace(text)}, n == 1 && strings.TrimSpace(text) != ""
	case n > 0 && len(all) == n:
		for i, line := range all {
			given[i] = strings.TrimSpace(line)
		}
		return given, true
	}
	return nil, false
}

// answer reads what was typed for one question, by label, value or number.
func answer(c message.UIComponent, text string) (any, bool) {
	switch c.Type {
	case message.UICheckbox:
		switch strings.ToLower(text) {
		case "yes", "y", "true", "x", "1", "ok":
			return true, true
		case "no", "n", "false", "-", "0":
			return false, true
		}
		return nil, false
	case message.UIRadio, message.UISelect:
		return option(c, text)
	case message.UICheckboxGroup:
		chosen := []string{}
		if slices.Contains([]string{"none", "-"}, strings.ToLower(text)) {
			return chosen, true
		}
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '|' || r == '\n' }) {
			v, ok := option(c, strings.TrimSpace(word))
			if !ok {
				return nil, false
			}
			chosen = append(chosen, v.(string))
		}
		return chosen, true
	}
	return text, true
}

func option(c message.UIComponent, text string) (any, bool) {
	for _, o := range c.Options {
		if text == o.Value || strings.EqualFold(text, o.Label) {
			return o.Value, true
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(c.Options) {
		return c.Options[n-1].Value, true
	}
	return nil, false
}

// initial is what a question holds that nobody answered.
func initial(c message.UIComponent) (any, bool) {
	var s string
	var yes bool
	var list []string
	switch {
	case c.Type == message.UICheckbox && json.Unmarshal(c.Default, &yes) == nil:
		return yes, true
	case c.Type == message.UICheckboxGroup && json.Unmarshal(c.Default, &list) == nil && list != nil:
		return list, true
	case json.Unmarshal(c.Default, &s) == nil && s != "":
		return s, true
	}
	return nil, false
}
