package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxQuery bounds a query in characters, maxTerms what it asks for.
const (
	MaxQuery = 500
	maxTerms = 32
)

// ErrEmpty is returned for a query that asks for nothing.
var ErrEmpty = errors.New("found no word, expected some, or a filter such as from:ann")

// Query is what somebody looks for. All of it must be so.
type Query struct {
	Words    []Phrase // in text or author
	From     []Phrase // in the author
	Channels []string // any of them; none = all
	States   []string // any of them; none = all
	Without  Without
	Before   time.Time // zero = any
	After    time.Time // from then on; zero = any
}

// Without is what must not be so.
type Without struct {
	Words, From      []Phrase
	Channels, States []string
}

// Phrase is words that follow one another.
type Phrase struct {
	Words  []string
	Prefix bool // the last one may go on
}

// States are the words that state: knows.
var States = []string{"received", "handled", "queued", "sent", "delivered", "failed", "expired"}

// Parse reads a query as people write it: words, "phrases", -not, and the filters
// from:, channel:, state:, before: and after:. The last word may be a beginning.
// What looks like another filter is words. An error says what was expected of a
// filter, or is ErrEmpty.
func Parse(text string) (Query, error) {
	var q Query
	terms := 0
	for rest := strings.TrimLeftFunc(text, unicode.IsSpace); rest != ""; {
		var t term
		t, rest = cut(rest)
		if terms++; terms > maxTerms {
			return q, fmt.Errorf("found more than %d words, expected fewer", maxTerms)
		}
		// While somebody types the last word is not at its end.
		if err := q.take(t, rest == "" && !t.closed && !strings.HasSuffix(text, " ")); err != nil {
			return q, err
		}
	}
	if q.empty() {
		return q, ErrEmpty
	}
	return q, nil
}

func (q *Query) empty() bool {
	return len(q.Words)+len(q.From)+len(q.Channels)+len(q.States)+len(q.Without.Words)+len(q.Without.From)+
		len(q.Without.Channels)+len(q.Without.States) == 0 && q.Before.IsZero() && q.After.IsZero()
}

// term is one word, phrase or filter.
type term struct {
	not    bool
	field  string // "" = none
	value  string
	closed bool // it was in quotes, or they came after the colon
}

// cut takes the first term off.
func cut(s string) (t term, rest string) {
	if len(s) > 1 && s[0] == '-' && s[1] != '-' && s[1] != ' ' {
		t.not, s = true, s[1:]
	}
	if name, value, ok := strings.Cut(s, ":"); ok && slices.Contains(fields, strings.ToLower(name)) {
		t.field, s = strings.ToLower(name), value
	}
	if r, n := utf8.DecodeRuneInString(s); isQuote(r) {
		t.closed, s = true, s[n:]
		end := strings.IndexFunc(s, isQuote)
		if end < 0 {
			t.value = s
			return t, ""
		}
		_, n := utf8.DecodeRuneInString(s[end:])
		t.value, s = s[:end], s[end+n:]
	} else {
		end := strings.IndexFunc(s, unicode.IsSpace)
		if end < 0 {
			end = len(s)
		}
		t.value, s = s[:end], s[end:]
	}
	return t, strings.TrimLeftFunc(s, unicode.IsSpace)
}

var fields = []string{"from", "channel", "state", "before", "after"}

func isQuote(r rune) bool { return r == '"' || r == '“' || r == '”' || r == '„' }

func (q *Query) take(t term, last bool) error {
	pick := func(yes, no *[]string) *[]string {
		if t.not {
			return no
		}
		return yes
	}
	switch t.field {
	case "channel":
		if t.value == "" {
			return errors.New("channel: found nothing behind it, expected a channel's name")
		}
		to := pick(&q.Channels, &q.Without.Channels)
		*to = append(*to, t.value)
		return nil
	case "state":
		state := strings.ToLower(t.value)
		if !slices.Contains(States, state) {
			return fmt.Errorf("state: found %.40q, expected %s", t.value, strings.Join(States, ", "))
		}
		to := pick(&q.States, &q.Without.States)
		*to = append(*to, state)
		return nil
	case "before", "after":
		return q.takeTime(t)
	}
	p := Phrase{Words: split(t.value), Prefix: last && !t.not}
	if len(p.Words) == 0 {
		return nil
	}
	if n := len(p.Words[len(p.Words)-1]); n < minPrefix {
		p.Prefix = false
	}
	switch {
	case t.field == "from" && t.not:
		q.Without.From = append(q.Without.From, p)
	case t.field == "from":
		q.From = append(q.From, p)
	case t.not:
		q.Without.Words = append(q.Without.Words, p)
	default:
		q.Words = append(q.Words, p)
	}
	return nil
}

// minPrefix is how long the last word must be, in bytes, to count as a beginning.
const minPrefix = 2

func (q *Query) takeTime(t term) error {
	at, err := time.Parse(time.DateOnly, t.value)
	if err != nil {
		if at, err = time.Parse(time.RFC3339, t.value); err != nil {
			return fmt.Errorf("%s: found %.40q, expected a day such as 2026-01-31 (UTC), or a time such as 2026-01-31T12:00:00Z", t.field, t.value)
		}
	}
	if (t.field == "before") != t.not {
		if q.Before.IsZero() || at.Before(q.Before) {
			q.Before = at
		}
	} else if at.After(q.After) {
		q.After = at
	}
	return nil
}

// split is the words of a text.
func split(text string) []string {
	var out []string
	s := scanner{text: text}
	for s.next() {
		out = append(out, string(s.word))
	}
	return out
}
