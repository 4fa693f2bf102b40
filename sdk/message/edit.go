package message

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// A part is changed in its bytes: a view would lose what it does not know.

// Address is where the bytes of a vision, file or audio part are; "" if it has
// no url or is of another type.
func (p Part) Address() string {
	if p.hasAddress() {
		return TextField(p.raw, "url")
	}
	return ""
}

func (p Part) hasAddress() bool {
	switch p.Type {
	case TypeVision, TypeFile, TypeAudioInput, TypeAudioOutput:
		return true
	}
	return false
}

// LocalFiles yields the fields of a picture, file or sound that name a file of
// the machine where they are read, with their values: a path, and a url of the
// scheme file. Field names count in any case and as often as they are repeated,
// since readers differ in which they take.
func (p Part) LocalFiles() iter.Seq2[string, string] {
	return func(yield func(field, value string) bool) {
		if !p.hasAddress() {
			return
		}
		for m := range members(p.raw) {
			if value, ok := p.localFile(m); ok && !yield(m.key, value) {
				return
			}
		}
	}
}

// WithoutLocalFiles is the part without what LocalFiles yields.
func (p Part) WithoutLocalFiles() Part {
	if !p.hasAddress() {
		return p
	}
	return p.drop(func(m member) bool { _, ok := p.localFile(m); return ok })
}

// localFile is the value of a field that names a file of this machine.
func (p Part) localFile(m member) (string, bool) {
	var value string
	switch {
	case strings.EqualFold(m.key, "path") && (p.Type == TypeVision || p.Type == TypeFile):
		_ = json.Unmarshal(p.raw[m.value:m.end], &value) // what is no text is nobody's path
		return value, value != ""
	case strings.EqualFold(m.key, "url"):
		_ = json.Unmarshal(p.raw[m.value:m.end], &value)
		scheme, _, _ := strings.Cut(strings.TrimLeftFunc(value, func(r rune) bool { return r <= ' ' }), ":")
		return value, strings.EqualFold(scheme, "file")
	}
	return "", false
}

// At is the part with another url, behind everything else.
func (p Part) At(url string) Part { return p.Without("url").with("url", url) }

// Named is the part, if it is a file without a name, with this one.
func (p Part) Named(name string) Part {
	if p.Type != TypeFile || TextField(p.raw, "fileName") != "" {
		return p
	}
	return p.Without("fileName").with("fileName", name)
}

// Without is the part without the keys, which are not type.
func (p Part) Without(keys ...string) Part {
	return p.drop(func(m member) bool { return slices.Contains(keys, m.key) })
}

func (p Part) drop(unwanted func(member) bool) Part {
	raw := json.RawMessage{'{'}
	whole := true
	for m := range members(p.raw) {
		if unwanted(m) {
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
