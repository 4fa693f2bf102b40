package wire

import "encoding/json"

// Object is a frame of a protocol beside the adapters' (package agentwire): the
// raw values of its keys. What both protocols have in common is read, and
// refused, by the same rules. Of a repeated key the last counts.
type Object map[string]json.RawMessage

// ReadObject reads a frame, which must be valid UTF-8. A refusal is one of bad_json,
// not_object, too_deep.
func ReadObject(frame []byte) (Object, *Error) {
	if o := readOrdinary(string(frame)); o != nil {
		return o, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(frame, &all); err != nil {
		return nil, syntaxError(frame, err)
	}
	if all == nil { // the frame is null
		return nil, errorf(CodeNotObject, "frame: found null, expected a JSON object")
	}
	return all, nil
}

// readOrdinary is the fast path of ReadObject, by the rules of scan: nil on anything
// unusual or wrong, which the library decides.
func readOrdinary(s string) Object {
	i := space(s, 0)
	if i >= len(s) || s[i] != '{' {
		return nil
	}
	o := make(Object, 8)
	for i = space(s, i+1); ; i = space(s, i+1) {
		nameEnd, escaped := stringEnd(s, i)
		if nameEnd < 0 || escaped {
			return nil
		}
		colon := space(s, nameEnd)
		if colon >= len(s) || s[colon] != ':' {
			return nil
		}
		value := space(s, colon+1)
		end := valueEnd(s, value, maxFastDepth)
		if end < 0 {
			return nil
		}
		o[s[i+1:nameEnd-1]] = json.RawMessage(s[value:end])
		if i = space(s, end); i >= len(s) {
			return nil
		}
		switch s[i] {
		case ',':
		case '}':
			if space(s, i+1) != len(s) {
				return nil
			}
			return o
		default:
			return nil
		}
	}
}

// Absent reports whether the key has no value; null is as good as none.
func (o Object) Absent(name string) bool { return isAbsent(string(o[name])) }

// Missing refuses a key that must be there and isn't, or is null.
func (o Object) Missing(name, expected string) *Error {
	return missing(name, string(o[name]), expected)
}

// Text reads a string; absent and null leave dst as it is.
func (o Object) Text(dst *string, name string, limit int) *Error {
	return readText(dst, "", name, string(o[name]), limit)
}

// Filled reads a string that must be there and must not be empty.
func (o Object) Filled(dst *string, name string, limit int) *Error {
	return readFilled(dst, name, string(o[name]), limit)
}

// Bool reads a boolean; absent and null leave dst as it is.
func (o Object) Bool(dst *bool, name string) *Error { return readBool(dst, name, string(o[name])) }

// Parts reads an array of objects that have a type; absent, null and an empty
// array leave dst as it is. What else is in them, the message model says.
func (o Object) Parts(dst *json.RawMessage, name string) *Error {
	raw := string(o[name])
	if isAbsent(raw) {
		return nil
	}
	if err := checkParts(raw); err != nil {
		return err
	}
	if !isEmpty(raw) {
		*dst = o[name]
	}
	return nil
}

// Struct reads an object into a struct, and an array into a slice; absent and
// null leave dst as it is. expected says what it should be.
func (o Object) Struct(dst any, name, expected string) *Error {
	raw := o[name]
	if isAbsent(string(raw)) {
		return nil
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		return errorf(CodeWrongType, "%s: found %s, expected %s", name, describe(string(raw), err), expected)
	}
	return nil
}

// describe says what is wrong within a value that is of the right kind.
func describe(raw string, err error) string {
	if kind := raw[0]; kind == '{' || kind == '[' {
		return kindOf(raw) + " with " + err.Error()
	}
	return kindOf(raw)
}

// Refuse makes a refusal with a code of the closed list.
func Refuse(code Code, format string, args ...any) *Error { return errorf(code, format, args...) }
