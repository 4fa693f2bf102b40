package message

import (
	"encoding/json"
	"strings"
)

// Products and orders. Their shape is the application's: what the fields are
// called that nearly all of them have is read here, and nothing else.

// Item is what can be read of a product, or of a line of an order. All is text
// as it came: addresses are not checked.
type Item struct {
	Name  string
	About string
	Price string
	Count string
	URL   string
	Image string // its address
}

// ReadItem reads a product of a CarouselPart, or an item of an OrderPart. One
// without a Name says nothing.
func ReadItem(raw json.RawMessage) Item {
	return Item{
		Name:  TextField(raw, "title", "name", "label", "productName", "id", "sku"),
		About: TextField(raw, "description", "subtitle", "summary"),
		Price: price(raw),
		Count: first(raw, "quantity", "qty", "count"),
		URL:   TextField(raw, "url", "link", "href", "productUrl"),
		Image: TextField(raw, "imageUrl", "image", "image_url", "thumbnailUrl", "thumbnail"),
	}
}

// Sum is an amount as text: of text, a number, or an object with an amount and a
// currency, such as the total of an OrderPart.
func Sum(raw json.RawMessage) string {
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
		return strings.TrimSpace(firstOf(valueText(m.Amount), valueText(m.Value)) + " " + m.Currency)
	}
	return valueText(raw)
}

// price is what the item costs; a bare number has its currency beside it.
func price(raw json.RawMessage) string {
	s := first(raw, "price", "formattedPrice", "amount", "total")
	if c := TextField(raw, "currency"); c != "" && json.Valid([]byte(s)) {
		s += " " + c
	}
	return s
}

// first is the first of the fields as Sum reads it.
func first(raw json.RawMessage, names ...string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return ""
	}
	for _, name := range names {
		if s := Sum(fields[name]); s != "" {
			return s
		}
	}
	return ""
}
