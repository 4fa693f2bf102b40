package sdk

import (
	"errors"
	"fmt"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// ErrReplaced ends Run: a newer connection with the same channel's token took
// this one's place (close code 4001). Dialling again would start a tug of war.
var ErrReplaced = errors.New("replaced by a newer connection of the same channel")

// ErrRevoked ends Run: the channel was disabled or deleted, or its token
// revoked (close code 4003).
var ErrRevoked = errors.New("channel disabled or deleted, or token revoked")

// ErrStopped is what Host.Deliver returns once Run has ended its connection for good.
var ErrStopped = errors.New("adapter has stopped")

// ErrDetached ends Run where the host connects (Options.Accept): it has ended the
// connection and won't make another.
var ErrDetached = errors.New("the host ended the stream")

// RegisterError ends Run: the host refused the register frame. Reason is the
// host's word, such as "invalid token".
type RegisterError struct{ Reason string }

func (e *RegisterError) Error() string { return "host refused to register this adapter: " + e.Reason }

// RejectedError is the host's word that it does not take an event or a file.
type RejectedError struct {
	Reason    string
	Retryable bool // it may later
}

func (e *RejectedError) Error() string { return "the host does not take it: " + e.Reason }

// RetryError is an error of the platform that passes: what was tried had no
// effect and may be tried again after After (0 = when the caller likes).
type RetryError struct {
	After time.Duration
	Err   error
}

// Retry says that the platform did not take it, but may later, such as a rate
// limit that names a delay. The host waits for after, an hour at most, which holds no
// other conversation and counts as no try; without one it tries up to ten times
// within a quarter of an hour. Behind a host that waits for no acknowledgement the SDK
// repeats the call for a minute. A nil err stays nil.
func Retry(after time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &RetryError{After: after, Err: err}
}

func (e *RetryError) Error() string {
	if e.After <= 0 {
		return "try again: " + e.Err.Error()
	}
	return fmt.Sprintf("try again in %s: %s", e.After, e.Err)
}

// wait is After as the host can be told it: whole milliseconds, none of them too few.
func (e *RetryError) wait() time.Duration {
	return min((max(e.After, 0) + time.Millisecond - 1).Truncate(time.Millisecond), wire.MostRetryAfter)
}

// Unwrap is the platform's own error.
func (e *RetryError) Unwrap() error { return e.Err }

// RefusedError is an error that no repetition cures: what was tried had no
// effect and never will.
type RefusedError struct{ Err error }

// Refused says that the platform will never take it, such as a conversation
// that no longer exists. From Adapter.Run it ends the adapter instead of
// restarting it. A nil err stays nil.
func Refused(err error) error {
	if err == nil {
		return nil
	}
	return &RefusedError{Err: err}
}

func (e *RefusedError) Error() string { return "refused: " + e.Err.Error() }

// Unwrap is the platform's own error.
func (e *RefusedError) Unwrap() error { return e.Err }

// panicError is a panic of the adapter's code, as an error.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("adapter panicked: %v", e.value) }

// hopelessError ends an adapter for which another start would change nothing. It
// reads as the platform's own error.
type hopelessError struct{ refused *RefusedError }

func (e *hopelessError) Error() string { return e.refused.Err.Error() }

func (e *hopelessError) Unwrap() error { return e.refused }

// acceptError is what Options.Accept said.
type acceptError struct{ error }

func (e *acceptError) Unwrap() error { return e.error }
