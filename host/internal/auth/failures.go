package auth

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Login is what somebody shows to be the operator: a name and a password, the link
// that sets them, or a session.
const Login ledger.CredentialKind = "login"

// Kinds lists what somebody can show to be let in.
var Kinds = [...]ledger.CredentialKind{ledger.ChannelToken, ledger.AgentKey, ledger.APIKey, Login}

// Failures counts credentials that were shown and opened nothing. The zero value
// is ready; many may use it at once.
type Failures struct {
	n [len(Kinds)]atomic.Uint64
}

// Add counts one of a kind, which is one of Kinds.
func (f *Failures) Add(kind ledger.CredentialKind) { f.n[slices.Index(Kinds[:], kind)].Add(1) }

// Count is how many there were.
func (f *Failures) Count(kind ledger.CredentialKind) uint64 {
	return f.n[slices.Index(Kinds[:], kind)].Load()
}

// note counts what err says was refused, and returns err.
func (f *Failures) note(kind ledger.CredentialKind, err error) error {
	if errors.Is(err, ErrInvalid) {
		f.Add(kind)
	}
	return err
}
