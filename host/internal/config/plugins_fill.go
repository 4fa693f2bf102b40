package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxFilled bounds an entry's config, which travels to the plugin in one
// message, and what ${…} may add to the entry.
const maxFilled = 256 << 10

// config makes a JSON object of a mapping, its keys sorted, so that the same
// config is the same bytes.
func (l *loader) config(v value, p *Plugin) {
	switch v.kind {
	case null:
		return
	case mapping:
	default:
		l.wrong(v, "a mapping")
		return
	}
	tree, ok := l.json(v)
	if !ok {
		return
	}
	raw, err := json.Marshal(tree)
	if err != nil { // of texts, numbers that were checked, lists and maps: can't be
		l.report(v.position, "found something that JSON can't hold")
		return
	}
	if len(raw) > maxFilled {
		l.report(v.position, fmt.Sprintf("found a config of %d bytes as JSON, at most %d are allowed", len(raw), maxFilled))
		return
	}
	p.Config = raw
}

// json never shows a value in what it reports.
func (l *loader) json(v value) (any, bool) {
	switch v.kind {
	case null:
		return nil, true
	case boolean:
		return strings.EqualFold(v.text, "true"), true
	case number: // its digits stay as they are
		return json.Number(v.text), true
	case text:
		return l.fill(v)
	case list:
		items, ok := make([]any, len(v.items)), true
		for i, item := range v.items {
			var itemOK bool
			items[i], itemOK = l.json(item)
			ok = ok && itemOK
		}
		return items, ok
	case mapping:
		object, ok := make(map[string]any, len(v.pairs)), true
		for _, p := range v.pairs {
			if strings.Contains(p.key, "${") {
				l.report(p.position, "found ${…} in a key, which is filled in only in values")
				ok = false
				continue
			}
			item, itemOK := l.json(p.value)
			if value, is := item.(string); is && secretive.MatchString(p.key) {
				l.hide(value)
			}
			object[p.key], ok = item, ok && itemOK
		}
		return object, ok
	}
	l.wrong(v, "one such as 31 or 0.5: write it so, or quote it if it is text")
	return nil, false
}

// secretive are names of what is a secret as a rule.
var secretive = regexp.MustCompile(`(?i)pass|secret|token|key|auth|cred|pwd`)

// minHidden is the length from which on a value is hidden: a shorter one is found
// in what has nothing to do with it.
const minHidden = 6

func (l *loader) hide(value string) {
	if len(value) >= minHidden && !slices.Contains(l.hidden, value) {
		l.hidden = append(l.hidden, value)
	}
}

// lookup finds what ${NAME} stands for. A secret of the store is refused where
// others would see it.
func (l *loader) lookup(v value, name string) (string, bool) {
	if strings.HasPrefix(name, masterKey) {
		l.report(v.position, fmt.Sprintf("found ${%s}, which is the host's own: no plugin may have it", name))
		return "", false
	}
	if filled, set := l.from.Env(name); set {
		if secretive.MatchString(name) {
			l.hide(filled)
		}
		return filled, true
	}
	if l.from.Secret == nil {
		l.report(v.position, fmt.Sprintf("found ${%s}, which is not set in the environment", name))
		return "", false
	}
	filled, set, err := l.from.Secret(name)
	switch {
	case err != nil:
		l.report(v.position, fmt.Sprintf("found ${%s}, a secret that can't be opened: %v", name, err))
	case !set:
		l.report(v.position, fmt.Sprintf("found ${%s}, which is neither set in the environment nor in the secret store: pontoon secret set %s", name, name))
	case l.open:
		l.report(v.position, fmt.Sprintf("found ${%s} of the secret store in a command, which every user of the machine can see, expected it in config", name))
	default:
		if !slices.Contains(l.secrets, name) {
			l.secrets = append(l.secrets, name)
		}
		l.hide(filled)
		return filled, true
	}
	return "", false
}

// fill replaces each ${NAME} by what lookup has for it, which is not looked at
// again; $${ becomes ${, and any other $ stays.
func (l *loader) fill(v value) (string, bool) {
	var b strings.Builder
	rest := v.text
	for {
		before, after, found := strings.Cut(rest, "${")
		if !found {
			b.WriteString(rest)
			return b.String(), true
		}
		if escaped, is := strings.CutSuffix(before, "$"); is {
			b.WriteString(escaped + "${")
			rest = after
			continue
		}
		name, after, closed := strings.Cut(after, "}")
		if !closed || !envForm.MatchString(name) {
			l.report(v.position, "found ${ without the name of an environment variable and }, expected ${NAME}, or $${ for the text ${")
			return "", false
		}
		filled, set := l.lookup(v, name)
		switch l.left -= len(filled); {
		case !set:
			return "", false
		case !utf8.ValidString(filled):
			l.report(v.position, fmt.Sprintf("found ${%s}, whose value is not UTF-8", name))
			return "", false
		case l.left < 0:
			l.report(v.position, fmt.Sprintf("found ${%s}, with which more than %d bytes are filled in here", name, maxFilled))
			return "", false
		}
		b.WriteString(before + filled)
		rest = after
	}
}
