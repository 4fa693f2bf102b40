package auth

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Scope is what a key opens.
type Scope string

// What a key may open. None but admin includes another.
const (
	ScopeRead     Scope = "read"      // all that an operator sees, but secrets, keys and sessions
	ScopeSend     Scope = "send"      // send, test, react, take back, replay dead letters
	ScopeManage   Scope = "manage"    // channels, tokens, plugins, agents
	ScopeAdmin    Scope = "admin"     // all, also keys, sessions and the audit log
	ScopeAgentRun Scope = "agent:run" // the routes of the AG-UI front end
)

// Scopes lists what a key that an operator makes may open.
func Scopes() []Scope { return []Scope{ScopeRead, ScopeSend, ScopeManage, ScopeAdmin, ScopeAgentRun} }

// MaxKeyChannels is how many channels a key may be limited to.
const MaxKeyChannels = 100

// CheckScopes says what is wrong with the scopes of a key that is to be made;
// limited: to channels.
func CheckScopes(scopes []string, limited bool) error {
	if len(scopes) == 0 {
		return fmt.Errorf("found none, expected some of %s", scopeNames())
	}
	for i, s := range scopes {
		if !slices.Contains(Scopes(), Scope(s)) {
			return fmt.Errorf("found %.64q, expected some of %s", s, scopeNames())
		}
		if slices.Contains(scopes[:i], s) {
			return fmt.Errorf("found %q twice, expected it once", s)
		}
		if s := Scope(s); limited && (s == ScopeAdmin || s == ScopeAgentRun) {
			return fmt.Errorf("found %s of a key that is limited to channels, expected some of %s, %s, %s", s, ScopeRead, ScopeSend, ScopeManage)
		}
	}
	return nil
}

func scopeNames() string {
	names := make([]string, len(Scopes()))
	for i, s := range Scopes() {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// KeyNameRule says what a key's name must be: never what could be an id.
const KeyNameRule = "up to 63 of a-z, 0-9, '.', '_' and '-', the first a letter,"

var keyName = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,62}$`)

// operatorName is the operator's own, which no key may have.
const operatorName = "admin"

// CheckKeyName says what is wrong with the name of a key that is to be made.
func CheckKeyName(name string) error {
	if !keyName.MatchString(name) || name == operatorName {
		return fmt.Errorf("found %.64q, expected %s and not %s", name, KeyNameRule, operatorName)
	}
	return nil
}
