package wire

import (
	"encoding/json"
	"math"
	"slices"
)

// Object is a frame of a protocol beside the adapters' (package agentwire): its
// keys with their raw values. What both protocols have in common is read, and
// refused, by the same rules. Of a repeated key the last counts.
type Object []member

// member is a key with its value, which is JSON. There are few: to look through them
// takes less than a map.
type member struct{ name, value string }

func (o Object) raw(name string) string {
	for i := len(o) - 1; i >= 0; i-- {
		if o[i].name == name {
			return o[i].value
		}
	}
	return ""
}

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
	o := make(Object, 0, len(all))
	for name, raw := range all {
		o = append(o, member{name, string(raw)})
	}
	return o, nil
}

// readOrdinary is the fast path of ReadObject, by the rules of scan: nil on anything
// unusual or wrong, which the library decides.
func readOrdinary(s string) Object {
	i := space(s, 0)
	if i >= len(s) || s[i] != '{' {
		return nil
	}
	o := make(Object, 0, 12)
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
		o = append(o, member{s[i+1 : nameEnd-1], s[value:end]})
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
func (o Object) Absent(name string) bool { return isAbsent(o.raw(name)) }

// Missing refuses a key that must be there and isn't, or is null.
func (o Object) Missing(name, expected string) *Error {
	return missing(name, o.raw(name), expected)
}

// Only reports whether each key is one of the names, and there once: then no other
// reader finds more in the object than who asks for these.
func (o Object) Only(names ...string) bool {
	for i := range o {
		if !slices.Contains(names, o[i].name) || slices.ContainsFunc(o[:i], func(m member) bool { return m.name == o[i].name }) {
			return false
		}
	}
	return true
}

// Raw is the key's value as it came; nil = absent.
func (o Object) Raw(name string) json.RawMessage {
	if raw := o.raw(name); raw != "" {
		return json.RawMessage(raw)
	}
	return nil
}

// Inner reads an object within this one.
func (o Object) Inner(name string) (Object, *Error) {
	raw := o.raw(name)
	if inner := readOrdinary(raw); inner != nil {
		return inner, nil
	}
	return ReadObject([]byte(raw))
}

// Strings reads an array of strings; absent and null leave dst as it is.
func (o Object) Strings(dst *[]string, name string) *Error {
	raw := o.raw(name)
	if isAbsent(raw) {
		return nil
	}
	if raw[0] != '[' {
		return errorf(CodeWrongType, "%s: found %s, expected an array of strings", name, kindOf(raw))
	}
	all := make([]string, 0, 8)
	for i, element := range elements(raw) {
		if element[0] != '"' {
			return errorf(CodeWrongType, "%s[%d]: found %s, expected a string", name, i, kindOf(element))
		}
		var s string
		if err := readText(&s, "", name, element, MaxFrame); err != nil {
			return err
		}
		all = append(all, s)
	}
	*dst = all
	return nil
}

// Int reads an integer from 0 on; absent and null leave dst as it is.
func (o Object) Int(dst *int64, name string) *Error {
	return readInt(dst, "", name, o.raw(name), math.MaxInt64)
}

// Text reads a string; absent and null leave dst as it is.
func (o Object) Text(dst *string, name string, limit int) *Error {
	return readText(dst, "", name, o.raw(name), limit)
}

// Filled reads a string that must be there and must not be empty.
func (o Object) Filled(dst *string, name string, limit int) *Error {
	return readFilled(dst, name, o.raw(name), limit)
}

// Bool reads a boolean; absent and null leave dst as it is.
func (o Object) Bool(dst *bool, name string) *Error { return readBool(dst, name, o.raw(name)) }

// Parts reads an array of objects that have a type; absent, null and an empty
// array leave dst as it is. What else is in them, the message model says.
func (o Object) Parts(dst *json.RawMessage, name string) *Error {
	raw := o.raw(name)
	if isAbsent(raw) {
		return nil
	}
	if err := checkParts(raw); err != nil {
		return err
	}
	if !isEmpty(raw) {
		*dst = json.RawMessage(raw)
	}
	return nil
}

// Struct reads an object into a struct, and an array into a slice; absent and
// null leave dst as it is. expected says what it should be.
func (o Object) Struct(dst any, name, expected string) *Error {
	raw := o.raw(name)
	if isAbsent(raw) {
		return nil
	}
	if err := json.Unmarshal([]byte(raw), dst); err != nil {
		return errorf(CodeWrongType, "%s: found %s, expected %s", name, describe(raw, err), expected)
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
