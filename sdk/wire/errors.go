package wire

import (
	"fmt"
	"strings"
)

// Code is an error code of the closed list in protocol section A8.
type Code string

// The error codes that an adapter may be answered with. Only
// CodeStorageUnavailable and CodeRateLimited are worth a retry.
const (
	CodeBadJSON            Code = "bad_json"
	CodeNotObject          Code = "not_object"
	CodeUnknownType        Code = "unknown_type"
	CodeMissingField       Code = "missing_field"
	CodeWrongType          Code = "wrong_type"
	CodeTooDeep            Code = "too_deep"
	CodeTooLarge           Code = "too_large"
	CodeAlreadyRegistered  Code = "already_registered"
	CodeRateLimited        Code = "rate_limited"
	CodeNotSupported       Code = "not_supported"
	CodeUnknownField       Code = "unknown_field"   // 1.1: the frame counts, but for a field that looks like a known one
	CodeUnknownMessage     Code = "unknown_message" // 1.1: an acknowledgement of what is not in flight
	CodeStorageUnavailable Code = "storage_unavailable"
	CodeInternal           Code = "internal"
)

// Error is a refusal that crosses the wire. Message names the field, what was
// found and what is allowed. Ref is the refused frame's message_id, if it had one.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Ref     string `json:"ref,omitempty"`
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Retryable reports whether the same frame may be taken later.
func (e *Error) Retryable() bool {
	return e.Code == CodeRateLimited || e.Code == CodeStorageUnavailable
}

// About is the refusal of the frame with this message_id.
func (e *Error) About(ref string) *Error {
	e.Ref = ref
	return e
}

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// The three reasons that a failed register_ack gives. One of 1.1 is told as CODE: TEXT what
// is wrong with its register frame, as RefusedRegister makes it.
const (
	RefusedMissingToken = "missing token"
	RefusedInvalidToken = "invalid token" // unknown, revoked, expired or channel disabled: one answer
	RefusedFirstFrame   = "first frame must be type=register"
)

// RefusedRegister is the reason of a failed register_ack for a register frame of 1.1 in
// which a field is wrong.
func RefusedRegister(err *Error) string { return string(err.Code) + ": " + err.Message }

// RefusedForGood reports whether the reason of a failed register_ack is one that no other
// try mends.
func RefusedForGood(reason string) bool {
	switch reason {
	case RefusedMissingToken, RefusedInvalidToken, RefusedFirstFrame:
		return true
	}
	code, _, ok := strings.Cut(reason, ": ")
	return ok && (Code(code) == CodeWrongType || Code(code) == CodeTooLarge)
}

// CloseCode is a WebSocket close code; Reconnect tells what it asks of an adapter.
type CloseCode int

// Close codes of protocol section A8.
const (
	CloseNormal      CloseCode = 1000
	CloseDraining    CloseCode = 1001
	CloseInvalidUTF8 CloseCode = 1007
	CloseRefused     CloseCode = 1008
	CloseTooLarge    CloseCode = 1009
	CloseOverload    CloseCode = 1013
	CloseReplaced    CloseCode = 4001
	CloseRevoked     CloseCode = 4003 // channel disabled or deleted, token revoked
	CloseTooSlow     CloseCode = 4008
)

// Reconnect reports whether the peer may dial again (with backoff) after c.
func (c CloseCode) Reconnect() bool { return c < 4000 || c == CloseTooSlow }
