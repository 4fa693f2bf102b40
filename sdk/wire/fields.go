package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The keys that the host reads; all others are ignored. Their order is the
// index into fields; those of protocol 1.0 come first.
const (
	keyType = iota
	keyToken
	keyPlatform
	keyCapabilities
	keyMetadata
	keySessionKey
	keyConversationID
	keyUserID
	keyUserName
	keyText
	keyAction
	keyReplyCtx
	keyMessageID

	keyProtocol
	keyProfile
	keyParts
	keyAttachments
	keyEmoji
	keyRemove
	keyUIID
	keyValues
	keyName
	keyMimeType
	keySizeBytes
	keyOK
	keyError
	keyRetryable
	keyAmbiguous
	keyPreviewHandle
	keyCursor
	keyRetryAfter
	keyState
	keyReason
	keySince
	keyUntil
	keyNote

	keyResumed // of the host's frames, beside others above
	keyUnsolicited
	keyCount
)

var keyNames = [keyCount]string{
	"type", "token", "platform", "capabilities", "metadata", "session_key", "conversation_id",
	"user_id", "user_name", "text", "action", "reply_ctx", "message_id",
	"protocol", "profile", "parts", "attachments", "emoji", "remove", "ui_id", "values",
	"name", "mime_type", "size_bytes", "ok", "error", "retryable", "ambiguous", "preview_handle", "cursor", "retry_after_ms",
	"state", "reason", "since", "until_ms", "note",
	"resumed", "unsolicited",
}

// fields holds the raw JSON value of each known key; "" = absent. Of a
// repeated key the last counts.
type fields [keyCount]string

// keysByLength are the indices of the keys of each length, so that a key is
// compared with two or three names, and most unknown ones with none.
var keysByLength = func() (byLength [16][]int) {
	for i, name := range keyNames {
		byLength[len(name)] = append(byLength[len(name)], i)
	}
	return byLength
}()

func keyIndex(name string) int {
	if len(name) >= len(keysByLength) {
		return -1
	}
	for _, i := range keysByLength[len(name)] {
		if keyNames[i] == name {
			return i
		}
	}
	return -1
}

// absent reports whether key has no value; null is as good as none.
func (f *fields) absent(key int) bool { return isAbsent(f[key]) }

func isAbsent(raw string) bool { return raw == "" || raw == "null" }

// missing refuses a field that must be there and isn't, or is null.
func (f *fields) missing(key int, expected string) *Error {
	return missing(keyNames[key], f[key], expected)
}

func missing(name, raw, expected string) *Error {
	switch raw {
	case "":
		return errorf(CodeMissingField, "%s: absent, expected %s", name, expected)
	case "null":
		return errorf(CodeWrongType, "%s: found null, expected %s", name, expected)
	}
	return nil
}

// required reads a string that must be there; it may be empty.
func (f *fields) required(dst *string, key int) *Error {
	if err := f.missing(key, "a string"); err != nil {
		return err
	}
	return f.text(dst, key, MaxFrame)
}

// filled reads a string that must be there and must not be empty.
func (f *fields) filled(dst *string, key int) *Error {
	return readFilled(dst, keyNames[key], f[key], MaxField)
}

func readFilled(dst *string, name, raw string, limit int) *Error {
	if err := missing(name, raw, "a string"); err != nil {
		return err
	}
	if err := readText(dst, "", name, raw, limit); err != nil {
		return err
	}
	if *dst == "" {
		return errorf(CodeMissingField, "%s: found an empty string, expected one with content", name)
	}
	return nil
}

// text reads a string field; absent and null leave dst as it is.
func (f *fields) text(dst *string, key, limit int) *Error {
	return readText(dst, "", keyNames[key], f[key], limit)
}

// boolean reads a boolean field; absent and null leave dst as it is.
func (f *fields) boolean(dst *bool, key int) *Error { return readBool(dst, keyNames[key], f[key]) }

func readBool(dst *bool, name, raw string) *Error {
	if isAbsent(raw) {
		return nil
	}
	if raw != "true" && raw != "false" {
		return errorf(CodeWrongType, "%s: found %s, expected a boolean", name, kindOf(raw))
	}
	*dst = raw == "true"
	return nil
}

// readText reads the value raw of prefix+name, which messages say. What is too
// long leaves dst empty.
func readText(dst *string, prefix, name, raw string, limit int) *Error {
	switch {
	case raw == "" || raw == "null":
		return nil
	case raw[0] != '"':
		return errorf(CodeWrongType, "%s%s: found %s, expected a string", prefix, name, kindOf(raw))
	case strings.IndexByte(raw, '\\') < 0:
		*dst = raw[1 : len(raw)-1]
	default:
		if err := json.Unmarshal([]byte(raw), dst); err != nil {
			return errorf(CodeBadJSON, "%s%s: %s", prefix, name, err.Error())
		}
	}
	if len(*dst) > limit {
		n := len(*dst)
		*dst = ""
		return errorf(CodeTooLarge, "%s%s: found %d bytes, at most %d are allowed", prefix, name, n, limit)
	}
	return nil
}

// readInt reads an integer from 0 to largest, written as such (not 1.0 or 1e3).
func readInt(dst *int64, prefix, name, raw string, largest int64) *Error {
	if raw == "" || raw == "null" {
		return nil
	}
	found := kindOf(raw)
	if c := raw[0]; c == '-' || '0' <= c && c <= '9' {
		if n, err := strconv.ParseInt(raw, 10, 64); err == nil && n >= 0 && n <= largest {
			*dst = n
			return nil
		}
		found = fmt.Sprintf("%.32s", raw)
	}
	return errorf(CodeWrongType, "%s%s: found %s, expected an integer from 0 to %d", prefix, name, found, largest)
}

// kindOf names the JSON kind of a raw value for a message to a human.
func kindOf(raw string) string {
	if raw == "" {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}
