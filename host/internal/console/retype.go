package console

import (
	"net/url"
	"strings"
)

// A page never holds a secret that was typed, so a form that was refused has lost it.
// These hidden fields and boxes, with the field's name behind them, keep that it was
// typed: the form is not saved until it is typed again, or until the box says that it
// should go on without.
const (
	retypeField  = "retype."
	withoutField = "without."
)

const sayAgain = "type it again: secrets are not kept here"

// wasTyped reports whether a secret was typed into the form, or into one before that
// was refused.
func wasTyped(sent url.Values, name string) bool {
	return strings.TrimSpace(sent.Get(name)) != "" || sent.Has(retypeField+name)
}

// missed are the secrets that were typed into a form which was refused, and that are
// neither typed again nor given up.
func missed(sent url.Values, names ...string) []Fault {
	var faults []Fault
	for _, name := range names {
		if sent.Has(retypeField+name) && !sent.Has(withoutField+name) && strings.TrimSpace(sent.Get(name)) == "" {
			faults = append(faults, Fault{"body." + name, sayAgain + ", or tick the box below it"})
		}
	}
	return faults
}

// again makes the field of a secret one that asks for what was typed into a refused
// form; without is the label of the box by which the form goes on without it.
func (i input) again(sent url.Values, without string) input {
	i.Value = ""
	if !wasTyped(sent, i.Name) {
		return i
	}
	i.Without, i.GoesWithout = without, sent.Has(withoutField+i.Name)
	if !i.GoesWithout && !strings.Contains(i.Error, sayAgain) {
		i.Error = strings.TrimPrefix(i.Error+"; "+sayAgain, "; ")
	}
	return i
}
