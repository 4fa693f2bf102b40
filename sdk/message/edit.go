package message

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// A part is changed in its bytes: a view would lose what it does not know.

// Address is where the bytes of a vision, file or audio part are; "" if it has
// no url or is of another type.
func (p Part) Address() string {
	switch p.Type {
	case TypeVision, TypeFile, TypeAudioInput, TypeAudioOutput:
		return TextField(p.raw, "url")
	}
	return ""
}

// At is the part with another url, behind everything else.
func (p Part) At(url string) Part { return p.Without("url").with("url", url) }

// Without is the part without the keys, which are not type.
func (p Part) Without(keys ...string) Part {
	raw := json.RawMessage{'{'}
	whole := true
	for m := range members(p.raw) {
		if slices.Contains(keys, m.key) {
			whole = false
			continue
		}
		if len(raw) > 1 {
			raw = append(raw, ',')
		}
		raw = append(raw, p.raw[m.start:m.end]...)
	}
	if !whole {
		p.raw = append(raw, '}')
	}
	return p
}

// with is the part with one more text, behind the others: of a repeated key the
// last counts.
func (p Part) with(key, value string) Part {
	raw := slices.Clone(bytes.TrimRight(p.raw, " \t\r\n"))
	raw = append(wire.AppendString(append(raw[:len(raw)-1], ','), key), ':')
	p.raw = append(wire.AppendString(raw, value), '}')
	return p
}

// rewrite replaces the value of a key of an object, wherever it is repeated;
// all other bytes stay.
func rewrite(raw json.RawMessage, name string, change func(json.RawMessage) json.RawMessage) json.RawMessage {
	var out json.RawMessage
	done := 0
	for m := range members(raw) {
		if m.key != name {
			continue
		}
		value := raw[m.value:m.end]
		if changed := change(value); !bytes.Equal(changed, value) {
			out = append(append(out, raw[done:m.value]...), changed...)
			done = m.end
		}
	}
	if done == 0 {
		return raw
	}
	return append(out, raw[done:]...)
}

// member is a key with its value, by their places in the object.
type member struct {
	key               string
	start, value, end int
}

// members are those of a JSON object in their order; none if it is none.
func members(raw json.RawMessage) iter.Seq[member] {
	return func(yield func(member) bool) {
		d := json.NewDecoder(bytes.NewReader(raw))
		if open, err := d.Token(); err != nil || open != json.Delim('{') {
			return
		}
		for d.More() {
			at := int(d.InputOffset())
			at += bytes.IndexByte(raw[at:], '"')
			key, err := d.Token()
			var value json.RawMessage
			if err != nil || d.Decode(&value) != nil {
				return
			}
			end := int(d.InputOffset())
			if !yield(member{key.(string), at, end - len(value), end}) { // More said that a key comes
				return
			}
		}
	}
}
