package render

import (
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// rule is a divider in text.
const rule = "──────────"

// Text is the whole message as the plainest far end shows it.
func Text(m *message.Message) string {
	if len(m.Parts) == 0 {
		return m.Text
	}
	text, _ := plain(m)
	return text
}

// plain plans the message for the plainest far end and joins what it shows.
func plain(m *message.Message) (string, Planned) {
	planned := Plan(Input{Message: m, View: wire.View{Caps: wire.CapText}, Room: wire.MaxFrame * 8})
	texts := make([]string, len(planned.Frames))
	for i, f := range planned.Frames {
		texts[i] = f.Text
	}
	return strings.Join(texts, "\n"), planned
}

// CardText is a card as text: *title*, then one line per element.
func CardText(c *wire.Card) string {
	var lines []string
	if c.Header != nil && c.Header.Title != "" {
		lines = append(lines, "*"+c.Header.Title+"*")
	}
	for i := range c.Elements {
		if line := elementText(&c.Elements[i]); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func elementText(e *wire.Element) string {
	switch e.Type {
	case wire.ElementMarkdown:
		return e.Content
	case wire.ElementDivider:
		return rule
	case wire.ElementNote:
		return e.Text
	case wire.ElementActions:
		return labels(e.Buttons)
	case wire.ElementListItem:
		if e.Button == nil {
			return e.Text
		}
		return e.Text + "  →  [" + e.Button.Text + "]"
	case wire.ElementSelect:
		names := make([]string, len(e.Options))
		for i, o := range e.Options {
			names[i] = o.Text
		}
		return e.Placeholder + " (options: " + strings.Join(names, " | ") + ")"
	}
	return ""
}

// ButtonsText is a text with buttons as text: the labels go on a line of their own.
func ButtonsText(text string, rows [][]wire.Button) string {
	if text == "" {
		return labels(rows)
	}
	return text + "\n" + labels(rows)
}

func labels(rows [][]wire.Button) string {
	var b strings.Builder
	for _, row := range rows {
		for _, button := range row {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString("[" + button.Text + "]")
		}
	}
	return b.String()
}

// cardRows are a card's choices as rows of buttons.
func cardRows(c *wire.Card) [][]wire.Button {
	var rows [][]wire.Button
	for i := range c.Elements {
		e := &c.Elements[i]
		switch e.Type {
		case wire.ElementActions:
			rows = append(rows, filled(e.Buttons)...)
		case wire.ElementListItem:
			if e.Button != nil {
				rows = append(rows, []wire.Button{*e.Button})
			}
		case wire.ElementSelect:
			row := make([]wire.Button, len(e.Options))
			for j, o := range e.Options {
				row[j] = wire.Button{Text: o.Text, Value: e.CallbackPrefix + o.Value}
			}
			rows = append(rows, filled([][]wire.Button{row})...)
		}
	}
	return rows
}

// filled leaves out the rows without a button.
func filled(rows [][]wire.Button) [][]wire.Button {
	return slices.DeleteFunc(slices.Clone(rows), func(row []wire.Button) bool { return len(row) == 0 })
}

func mediaText(caption, name, url string) string {
	if caption == "" {
		caption = name
	}
	switch {
	case caption == "":
		return url
	case url == "":
		return caption
	}
	return caption + "\n" + url
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
