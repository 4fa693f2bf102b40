package render

import (
	"strings"

	"github.com/rivo/uniseg"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// carousel → a card with an item each → a table in text.
func (p *planner) carousel(c message.CarouselPart) {
	var items []message.Item
	for _, raw := range c.Products {
		if it := message.ReadItem(raw); it.Name != "" {
			items = append(items, it)
		}
	}
	if len(items) == 0 {
		p.note(message.TypeCarousel, "none", reasonEmpty)
		return
	}
	card := &wire.Card{}
	var rows [][]string
	for _, it := range items {
		card.Elements = append(card.Elements, wire.Element{Type: wire.ElementMarkdown, Content: itemMarkdown(it)})
		rows = append(rows, []string{it.Name, it.Price, it.URL})
	}
	p.cardOr(message.TypeCarousel, card, table(rows))
}

func itemMarkdown(it message.Item) string {
	line := "**" + it.Name + "**"
	if it.URL != "" {
		line = "[" + line + "](" + it.URL + ")"
	}
	if it.Price != "" {
		line += " — " + it.Price
	}
	if it.About != "" {
		line += "\n" + it.About
	}
	return line
}

// order → a card with the items and sums → a table in text.
func (p *planner) order(o message.OrderPart) {
	title := "Order " + o.OrderID
	card := &wire.Card{Header: &wire.Header{Title: title}}
	var rows [][]string
	for _, raw := range o.Items {
		it := message.ReadItem(raw)
		if it.Name == "" {
			continue
		}
		name := it.Name
		if it.Count != "" {
			name = it.Count + " × " + name
		}
		rows = append(rows, []string{name, it.Price})
		card.Elements = append(card.Elements, wire.Element{Type: wire.ElementListItem, Text: strings.TrimSuffix(name+" — "+it.Price, " — ")})
	}
	card.Elements = append(card.Elements, wire.Element{Type: wire.ElementDivider})
	for _, s := range []struct{ name, sum string }{{"Subtotal", message.Sum(o.Subtotal)}, {"Total", message.Sum(o.Total)}} {
		if s.sum != "" {
			rows = append(rows, []string{s.name, s.sum})
			card.Elements = append(card.Elements, wire.Element{Type: wire.ElementMarkdown, Content: s.name + ": **" + s.sum + "**"})
		}
	}
	p.cardOr(message.TypeOrder, card, title+"\n"+table(rows))
}

// cardOr shows the card, or the text where no card can be shown.
func (p *planner) cardOr(from string, card *wire.Card, text string) {
	frame := wire.Frame{Type: wire.TypeSendCard, Card: card}
	reason := reasonNotEffective
	if p.View.Caps.Has(wire.CapCard) {
		if p.fits(frame) {
			p.note(from, "card", reasonNoFrame)
			p.add(frame)
			return
		}
		reason = reasonTooLarge
	}
	p.instead(from, reason, text)
}

// maxColumn bounds the padding of a table: a wider cell is not cut, but does
// not make the others wide.
const maxColumn = 40

// table sets rows of cells below each other, two spaces between the columns.
func table(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if w := uniseg.StringWidth(cell); w <= maxColumn {
				widths[i] = max(widths[i], w)
			}
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if pad := widths[i] - uniseg.StringWidth(cell) + 2; i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", max(pad, 2)))
			}
		}
		lines[n] = strings.TrimRight(b.String(), " ")
	}
	return strings.Join(lines, "\n")
}
