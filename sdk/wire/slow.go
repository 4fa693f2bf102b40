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
	for name, raw := range all {
		if i := keyIndex(name); i >= 0 {
			f[i] = string(raw)
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
		return errorf(CodeTooDeep, "frame: nested deeper than 10000 levels, which is the limit")
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
