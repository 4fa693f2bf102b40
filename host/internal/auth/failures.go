package auth

import (
	"errors"
	"sync/atomic"
)

// Credential is what somebody showed to be let in. The list is closed.
type Credential int

// What can be shown.
const (
	ChannelToken Credential = iota
	AgentKey
	APIKey
	Login // the operator's name and password, the link that sets them, or a session
)

// Credentials names them all, by their numbers.
var Credentials = [...]string{"channel_token", "agent_key", "api_key", "login"}

func (c Credential) String() string { return Credentials[c] }

// Failures counts credentials that were shown and opened nothing. The zero value
// is ready; many may use it at once.
type Failures struct {
	n [len(Credentials)]atomic.Uint64
}

// Add counts one.
func (f *Failures) Add(c Credential) { f.n[c].Add(1) }

// Count is how many there were.
func (f *Failures) Count(c Credential) uint64 { return f.n[c].Load() }

// note counts what err says was refused, and returns err.
func (f *Failures) note(c Credential, err error) error {
	if errors.Is(err, ErrInvalid) {
		f.Add(c)
	}
	return err
}
