package wire

import (
	"slices"
	"strings"
	"time"
)

// PlatformState is how an adapter's platform is.
type PlatformState string

// The states of a platform.
const (
	PlatformConnecting   PlatformState = "connecting"   // for the first time
	PlatformConnected    PlatformState = "connected"    // messages go both ways
	PlatformReconnecting PlatformState = "reconnecting" // the connection was lost
	PlatformRefused      PlatformState = "refused"      // the platform does not let the adapter in, such as for a wrong password
	PlatformLimited      PlatformState = "limited"      // the platform takes nothing for a while
)

var platformStates = []PlatformState{PlatformConnecting, PlatformConnected, PlatformReconnecting, PlatformRefused, PlatformLimited}

// PlatformStates lists them.
func PlatformStates() []PlatformState { return slices.Clone(platformStates) }

// Values lists them for JSON Schema.
func (PlatformState) Values() []string {
	names := make([]string, len(platformStates))
	for i, s := range platformStates {
		names[i] = string(s)
	}
	return names
}

// mostUntil is the longest until_ms of platform_status.
const mostUntil = 30 * 24 * time.Hour

// PlatformStatus is what platform_status says.
type PlatformStatus struct {
	State   PlatformState `json:"state"`
	Reason  string        `json:"reason,omitempty" maxLength:"4096"`                   // for people
	Since   string        `json:"since,omitempty" format:"date-time"`                  // RFC 3339: when the state began; "" = now
	UntilMS int64         `json:"until_ms,omitempty" minimum:"0" maximum:"2592000000"` // limited: for so many milliseconds from now; 0 = not known
}

func (l *Later) status(f *fields) *Error {
	s := new(PlatformStatus)
	if err := f.filled((*string)(&s.State), keyState); err != nil {
		return err
	}
	if !slices.Contains(platformStates, s.State) {
		return errorf(CodeWrongType, "state: found %.64q, expected %s", string(s.State), strings.Join(s.State.Values(), ", "))
	}
	if err := f.text(&s.Reason, keyReason, MaxField); err != nil {
		return err
	}
	if err := f.text(&s.Since, keySince, MaxField); err != nil {
		return err
	}
	if s.Since != "" {
		if _, err := time.Parse(time.RFC3339, s.Since); err != nil {
			return errorf(CodeWrongType, "since: found %.64q, expected a time such as 2026-11-20T10:00:00Z", s.Since)
		}
	}
	if err := readInt(&s.UntilMS, "", keyNames[keyUntil], f[keyUntil], mostUntil.Milliseconds()); err != nil {
		return err
	}
	l.Status = s
	return nil
}

func (s *PlatformStatus) append(dst []byte) []byte {
	dst = field(dst, "state", string(s.State))
	dst = fieldIf(dst, "reason", s.Reason)
	dst = fieldIf(dst, "since", s.Since)
	return intIf(dst, "until_ms", s.UntilMS)
}
