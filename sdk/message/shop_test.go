package message

import (
	"encoding/json"
	"testing"
)

// What applications call the fields of products differs; what they say is found.
func TestReadItem(t *testing.T) {
	for raw, want := range map[string]Item{
		`{"title":"Raft","description":"of logs","price":"10 EUR","url":"https://example.org/r","imageUrl":"https://example.org/r.png"}`: {
			Name: "Raft", About: "of logs", Price: "10 EUR", URL: "https://example.org/r", Image: "https://example.org/r.png"},
		`{"name":"Oar","quantity":2,"price":{"amount":4.50,"currency":"EUR"}}`: {Name: "Oar", Count: "2", Price: "4.50 EUR"},
		`{"name":"Sail","qty":"3","price":7.5,"currency":"EUR"}`:               {Name: "Sail", Count: "3", Price: "7.5 EUR"},
		`{"name":"Mast","price":{"formatted":"€ 9"},"currency":"EUR"}`:         {Name: "Mast", Price: "€ 9"},
		`{"sku":"A-1","price":null,"image":{"no":"text"}}`:                     {Name: "A-1"},
		`[1]`: {},
	} {
		if got := ReadItem(json.RawMessage(raw)); got != want {
			t.Errorf("%s: found %+v", raw, got)
		}
	}
}
