package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// decodeSlowly is the reference that scan must agree with: the library reads
// the frame, and says what is wrong with it.
func decodeSlowly(frame []byte, f *fields) *Error {
	all, err := ReadObject(frame)
	if err != nil {
		return err
	}
	for _, m := range all {
		if i := keyIndex(m.name); i >= 0 {
			f[i] = m.value
		}
	}
	return nil
}

func syntaxError(frame []byte, err error) *Error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return errorf(CodeNotObject, "frame: found %s, expected a JSON object", kindOf(string(bytes.TrimLeft(frame, " \t\r\n"))))
	}
	if strings.Contains(err.Error(), "max depth") {
		err := errorf(CodeTooDeep, "frame: nested deeper than 10000 levels, which is the limit")
		err.Ref = refOf(string(frame))
		return err
	}
	if len(bytes.TrimSpace(frame)) == 0 {
		return errorf(CodeBadJSON, "frame: empty, expected a JSON object")
	}
	if bytes.HasPrefix(frame, []byte("\xef\xbb\xbf")) {
		return errorf(CodeBadJSON, "frame: starts with a byte order mark, expected '{'")
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return errorf(CodeBadJSON, "frame: %s at byte %d", syntax.Error(), syntax.Offset)
	}
	return errorf(CodeBadJSON, "frame: %s", err.Error())
}

// refOf is the message_id of a frame that the library does not read to its end; ""
// if there is none, or the frame is otherwise wrong too. One pass, of any depth.
func refOf(frame string) (id string) {
	var f fields
	if !scanTo(frame, &f, anyDepth) || f.text(&id, keyMessageID, MaxField) != nil {
		return ""
	}
	return id
}
