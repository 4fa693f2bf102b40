package render

import (
	"encoding/json"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Products and orders. Their shape is the application's: what the fields are
// called that nearly all of them have is read here, and nothing else.

type item struct{ name, about, price, count, url string }

func readItem(raw json.RawMessage) item {
	return item{
		name:  message.TextField(raw, "title", "name", "label", "productName", "id", "sku"),
		about: message.TextField(raw, "description", "subtitle", "summary"),
		price: money(raw, "price", "formattedPrice", "amount", "total"),
		count: money(raw, "quantity", "qty", "count"),
		url:   message.TextField(raw, "url", "link", "href", "productUrl"),
	}
}

// money is the first of the fields as text: text, a number, or an object with an
// amount and a currency.
func money(raw json.RawMessage, names ...string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return ""
	}
	for _, name := range names {
		if s := sum(fields[name]); s != "" {
			return s
		}
	}
	return ""
}

func sum(raw json.RawMessage) string {
	var m struct {
		Formatted string          `json:"formatted"`
		Amount    json.RawMessage `json:"amount"`
		Value     json.RawMessage `json:"value"`
		Currency  string          `json:"currency"`
	}
	if len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &m) == nil {
		if m.Formatted != "" {
			return m.Formatted
		}
		return strings.TrimSpace(firstOf(value(m.Amount), value(m.Value)) + " " + m.Currency)
	}
	return value(raw)
}

// carousel → a card with an item each → a table in text.
func (p *planner) carousel(c message.CarouselPart) {
	var items []item
	for _, raw := range c.Products {
		if it := readItem(raw); it.name != "" {
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
		rows = append(rows, []string{it.name, it.price, it.url})
	}
	p.cardOr(message.TypeCarousel, card, table(rows))
}

func itemMarkdown(it item) string {
	line := "**" + it.name + "**"
	if it.url != "" {
		line = "[" + line + "](" + it.url + ")"
	}
	if it.price != "" {
		line += " — " + it.price
	}
	if it.about != "" {
		line += "\n" + it.about
	}
	return line
}

// order → a card with the items and sums → a table in text.
func (p *planner) order(o message.OrderPart) {
	title := "Order " + o.OrderID
	card := &wire.Card{Header: &wire.Header{Title: title}}
	var rows [][]string
	for _, raw := range o.Items {
		it := readItem(raw)
		if it.name == "" {
			continue
		}
		name := it.name
		if it.count != "" {
			name = it.count + " × " + name
		}
		rows = append(rows, []string{name, it.price})
		card.Elements = append(card.Elements, wire.Element{Type: wire.ElementListItem, Text: strings.TrimSuffix(name+" — "+it.price, " — ")})
	}
	card.Elements = append(card.Elements, wire.Element{Type: wire.ElementDivider})
	for _, s := range []struct{ name, sum string }{{"Subtotal", sum(o.Subtotal)}, {"Total", sum(o.Total)}} {
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
