package search

import "strings"

// FTS is the query for the index; "" if the index is of no use: then messages are
// looked at one by one. Everything in it is quoted words of letters and digits.
// places are those that the message may be in; none = any.
func (q *Query) FTS(places []string) string {
	var all []string
	for _, p := range q.Words {
		all = append(all, "{text author} : "+p.fts())
	}
	for _, p := range q.From {
		all = append(all, "author : "+p.fts())
	}
	if len(places) > 0 {
		all = append(all, `place : ("`+strings.Join(places, `" OR "`)+`")`)
	}
	if len(all) == 0 {
		return ""
	}
	out := strings.Join(all, " AND ")
	var none []string
	for _, p := range q.Without.Words {
		none = append(none, "{text author} : "+p.fts())
	}
	for _, p := range q.Without.From {
		none = append(none, "author : "+p.fts())
	}
	if len(none) > 0 {
		out = "(" + out + ") NOT (" + strings.Join(none, " OR ") + ")"
	}
	return out
}

func (p Phrase) fts() string {
	s := `"` + strings.Join(p.Words, " ") + `"`
	if p.Prefix {
		s += " *"
	}
	return s
}

// Match reports whether a message is wanted for its text and its author.
func (q *Query) Match(text, author string) bool {
	if len(q.Words)+len(q.From)+len(q.Without.Words)+len(q.Without.From) == 0 {
		return true
	}
	if len(text) > MaxText {
		text = text[:MaxText]
	}
	said, by := split(text), split(author)
	for _, p := range q.Words {
		if !p.in(said) && !p.in(by) {
			return false
		}
	}
	for _, p := range q.From {
		if !p.in(by) {
			return false
		}
	}
	for _, p := range q.Without.Words {
		if p.in(said) || p.in(by) {
			return false
		}
	}
	for _, p := range q.Without.From {
		if p.in(by) {
			return false
		}
	}
	return true
}

func (p Phrase) in(words []string) bool {
	for i := range words {
		if p.at(words[i:]) {
			return true
		}
	}
	return false
}

// at reports whether the words begin with the phrase.
func (p Phrase) at(words []string) bool {
	if len(words) < len(p.Words) {
		return false
	}
	for i, w := range p.Words {
		if words[i] == w || p.Prefix && i == len(p.Words)-1 && strings.HasPrefix(words[i], w) {
			continue
		}
		return false
	}
	return true
}
