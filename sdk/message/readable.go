package message

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// MaxDepth is how far objects and arrays may lie in each other in what readers of
// a message decode: its parts and its metadata.
const MaxDepth = 64

// How Readable gives what can't be given as it is.
const (
	AsIs     = ""
	AsJSON   = "json"   // a string that holds the JSON text
	AsBase64 = "base64" // a string that holds the bytes, in standard base64
)

// Readable is raw as any reader of JSON can take it: as it is, or a string that
// holds it if it lies deeper than MaxDepth or is no JSON. how says which.
func Readable(raw []byte) (value json.RawMessage, how string) {
	switch {
	case !utf8.Valid(raw), !json.Valid(raw):
		return wire.AppendString(nil, base64.StdEncoding.EncodeToString(raw)), AsBase64
	case depth(raw) > MaxDepth:
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

// CheckDepth is an error that names the key whose value lies deeper than
// MaxDepth.
func (m Meta) CheckDepth() error {
	for key, value := range m {
		if d := depth(value); d > MaxDepth {
			return fmt.Errorf("metadata.%.80s: too_deep: found %d levels, expected at most %d", key, d, MaxDepth)
		}
	}
	return nil
}
