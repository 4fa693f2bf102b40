package message

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What readers of a message decode, its parts and its metadata, stays within what
// the usual parsers of all languages take.
const (
	MaxDepth  = 64   // how far objects and arrays may lie in each other
	MaxNumber = 1000 // characters of a number, which must fit a float64 too: Python takes 4,300 digits, Jackson 1,000
)

// How Readable gives what can't be given as it is.
const (
	AsIs     = ""
	AsJSON   = "json"   // a string that holds the JSON text
	AsBase64 = "base64" // a string that holds the bytes, in standard base64
)

// Readable is raw as any reader of JSON can take it: as it is, or a string that
// holds it if it lies deeper than MaxDepth, has a number that not every reader takes,
// or is no JSON. how says which.
func Readable(raw []byte) (value json.RawMessage, how string) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return wire.AppendString(nil, base64.StdEncoding.EncodeToString(raw)), AsBase64
	}
	if levels, number := measure(raw); levels > MaxDepth || number != "" {
		return wire.AppendString(nil, string(raw)), AsJSON
	}
	return raw, AsIs
}

// ReadMeta reads the metadata of a stored message. Values that no reader could
// take are given as Readable gives them, and odd says how, by key. The error is
// of metadata that can't be read at all.
func ReadMeta(raw []byte) (meta Meta, odd map[string]string, err error) {
	meta = Meta{}
	if len(raw) == 0 {
		return meta, nil, nil
	}
	if err := json.Unmarshal(raw, &meta); err != nil || meta == nil {
		return Meta{}, nil, errors.New("metadata: found what is no JSON object")
	}
	for key, value := range meta {
		given, how := Readable(value)
		if how == AsIs {
			continue
		}
		if meta[key] = given; odd == nil {
			odd = map[string]string{}
		}
		odd[key] = how
	}
	return meta, odd, nil
}

// ReadParts is ParseParts for what is stored: the error is also of parts that no
// reader could take.
func ReadParts(raw []byte) ([]Part, error) {
	parts, err := ParseParts(raw)
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		if _, how := Readable(p.raw); how != AsIs {
			return nil, fmt.Errorf("parts[%d]: found what no reader takes", i)
		}
	}
	return parts, nil
}

// Check is why metadata can't be taken, nil = it can: it names a key whose value
// lies deeper than MaxDepth, or has a number that not every reader takes.
func (m Meta) Check() *wire.Error {
	for key, value := range m {
		levels, number := measure(value)
		switch {
		case levels > MaxDepth:
			return wire.Refuse(wire.CodeTooDeep, "metadata.%.80s: too_deep: found %d levels, expected at most %d", key, levels, MaxDepth)
		case number != "":
			return wire.Refuse(wire.CodeWrongType, "metadata.%.80s: found %s, expected %s", key, number, plainNumber)
		}
	}
	return nil
}

// CheckGiven is Check for metadata that a client gives: a key that only the host sets
// is refused, by its name.
func (m Meta) CheckGiven() *wire.Error {
	for _, key := range hostKeys {
		if _, there := m[key]; there {
			return wire.Refuse(wire.CodeWrongType, "metadata.%s: found a key that only the host sets, expected keys of your own", key)
		}
	}
	return m.Check()
}

// plainNumber says which numbers are taken.
var plainNumber = fmt.Sprintf("numbers that fit a float64, of at most %d characters", MaxNumber)

// measure is what readers mind of valid JSON: how far objects and arrays lie in each
// other, and the first number that not every reader takes; "" = there is none.
func measure(raw []byte) (levels int, number string) {
	now := 0
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			levels = max(levels, now)
		case c == '}' || c == ']':
			now--
		case c == '-' || c >= '0' && c <= '9':
			n := numberLen(raw[i:])
			if literal := raw[i : i+n]; number == "" && !PlainNumber(literal) {
				number = fmt.Sprintf("a number of %d characters", n)
				if n <= excerptLen {
					number = "the number " + string(literal)
				}
			}
			i += n - 1
		}
	}
	return levels, number
}

func numberLen(raw []byte) int {
	for i, c := range raw {
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			return i
		}
	}
	return len(raw)
}

// PlainNumber reports whether the usual readers of JSON take a number: it is short,
// and fits a float64.
func PlainNumber(literal []byte) bool {
	const surely = 300 // digits without an exponent that fit
	switch {
	case len(literal) > MaxNumber:
		return false
	case len(literal) <= surely && !bytes.ContainsAny(literal, "eE"):
		return true
	}
	_, err := strconv.ParseFloat(string(literal), 64)
	return err == nil
}
