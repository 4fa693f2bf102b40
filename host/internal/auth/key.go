package auth

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/store"
)

// Scope is what a key opens.
type Scope string

// ScopeAgentRun opens the routes of the AG-UI front end, and nothing else.
const ScopeAgentRun Scope = "agent:run"

// Scopes lists what a key that an operator makes may open.
func Scopes() []Scope { return []Scope{ScopeAgentRun} }

// CheckScopes says what is wrong with the scopes of a key that is to be made.
func CheckScopes(scopes []string) error {
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
const KeyNameRule = "[a-z][a-z0-9._-]{0,62}"

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

// Holder is who holds a key.
type Holder struct {
	ID     int64 // of the key; 0 = the operator
	Name   string
	Scopes []string // of the operator none, who may do all
}

// Operator is who holds the key of the data directory.
func Operator() Holder { return Holder{Name: operatorName} }

// May reports whether the key opens what the scope stands for; "" = all there is.
func (h Holder) May(s Scope) bool {
	return h.ID == 0 || s != "" && slices.Contains(h.Scopes, string(s))
}

// Ref is how others call the holder: the id of the key as operators see it.
func (h Holder) Ref() string {
	if h.ID == 0 {
		return operatorName
	}
	return strconv.FormatInt(h.ID, 10)
}

// AdmitKey is Admit for a key of the API: it returns who holds it.
func (g *Gate) AdmitKey(ctx context.Context, secret string) (Holder, error) {
	var k store.Key
	_, err := g.check(ctx, secret, func(ctx context.Context, hash []byte) (store.Token, error) {
		var err error
		k, err = g.store.KeyByHash(ctx, hash)
		return k.Token, err
	}, func(context.Context, int64) (bool, error) { return true, nil }) // it has no owner that could be disabled
	if err != nil {
		return Holder{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.apiKeys[k.ID] = g.now()
	return Holder{ID: k.ID, Name: k.Name, Scopes: k.Scopes}, nil
}
