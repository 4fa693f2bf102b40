package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Page is what every list takes.
type Page struct {
	Limit  int    `query:"limit" default:"50" minimum:"1" maximum:"500" doc:"Most entries to return"`
	Cursor string `query:"cursor" maxLength:"64" doc:"next_cursor of the page before"`
}

// MessagePage is what every list of messages takes.
type MessagePage struct {
	Page
	MaxBytes int `query:"max_bytes" default:"8388608" minimum:"1" maximum:"8388608" doc:"Most bytes of messages to return; the first one is returned whatever it has. A page that ends by it has a next_cursor"`
}

// after reads the cursor; 0 = the first page.
func (p Page) after() (int64, error) {
	if p.Cursor == "" {
		return 0, nil
	}
	if n, ok := ledger.ParseCursor(p.Cursor); ok {
		return n, nil
	}
	return 0, badCursor(p.Cursor)
}

func badCursor(found string) error {
	return field(http.StatusUnprocessableEntity, "query.cursor", "expected a next_cursor of an earlier answer", found)
}

// next is the cursor behind the last of n entries; "" if there are no more.
func (p Page) next(n int, last func() int64) string {
	if n < p.Limit {
		return ""
	}
	return ledger.Cursor(last())
}

// mustJSON encodes our own structs of strings, numbers and valid JSON.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("api: " + err.Error())
	}
	return b
}

// orEmpty makes a list that is never null in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// maxNamed is how many names an error lists.
const maxNamed = 10

// shortList joins names, and not more than a reader takes in.
func shortList(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:maxNamed], ", ") + fmt.Sprintf(" and %d more", len(names)-maxNamed)
}

func isNotFound(err error) bool { return errors.Is(err, ledger.ErrNotFound) }
