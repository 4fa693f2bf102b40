package agui

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// object is a JSON object whose values keep their bytes. Names are compared
// exactly, which structs of encoding/json don't do.
type object map[string]json.RawMessage

// take removes a field and returns it; nil, and the field stays, unless it is
// text that is not empty. What stays is kept as it came.
func (o object) take(name string) json.RawMessage {
	if !o.has(name) {
		return nil
	}
	raw := o[name]
	delete(o, name)
	return raw
}

// has reports a field that is text and not empty.
func (o object) has(name string) bool {
	raw := o[name]
	return len(raw) > len(`""`) && raw[0] == '"'
}

// move takes a field of from to a name of o.
func (o object) move(name string, from object, as string) {
	if raw := from.take(as); raw != nil {
		o[name] = raw
	}
}

// rest is a copy of the object; nil if it is empty.
func (o object) rest() object {
	if len(o) == 0 {
		return nil
	}
	return maps.Clone(o)
}

// orNew is the object, which the caller may change, or a new one.
func (o object) orNew() object {
	if o == nil {
		return object{}
	}
	return o
}

// json is the object as JSON, its names sorted.
func (o object) json() json.RawMessage {
	n := len("{}")
	for name, raw := range o {
		n += len(name) + len(raw) + len(`"":,`)
	}
	out := append(make(json.RawMessage, 0, n), '{')
	for i, name := range slices.Sorted(maps.Keys(o)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(wire.AppendString(out, name), ':')
		out = append(out, o[name]...)
	}
	return append(out, '}')
}

// array is a JSON array.
func array(list []json.RawMessage) json.RawMessage {
	out := json.RawMessage("[")
	for i, raw := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, ']')
}

// quote is a JSON string.
func quote[T ~string](s T) json.RawMessage { return wire.AppendString(nil, string(s)) }

func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("agui: marshal: " + err.Error())
	}
	return raw
}

// str is the text of a JSON string; "" for any other value.
func str(raw json.RawMessage) string {
	if !isText(raw) {
		return ""
	}
	if text := raw[1 : len(raw)-1]; bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return string(text)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// isText reports a JSON string, an empty one too.
func isText(raw json.RawMessage) bool { return len(raw) > 1 && raw[0] == '"' && raw[len(raw)-1] == '"' }

// kind is the first byte of a value, which tells its kind; 0 = absent.
func kind(raw json.RawMessage) byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// part makes a part of its fields, with the mark of where it came from.
func part(o object, mk mark) message.Part {
	if !reflect.ValueOf(mk).IsZero() {
		o[markKey] = marshal(mk)
	}
	var p message.Part
	if err := p.UnmarshalJSON(o.json()); err != nil {
		panic("agui: part: " + err.Error()) // its type is a constant
	}
	return p
}

// markKey is the key of a part, and of metadata, that holds what the canonical
// model has no place for.
const markKey = message.MetaAGUI

// mark is what a part keeps of what it was made of.
type mark struct {
	As        string `json:"as,omitempty"`        // the type of the content, if it is not the one that the part would get
	Rest      object `json:"rest,omitempty"`      // further fields
	Inner     object `json:"inner,omitempty"`     // further fields of its source or function
	Arguments string `json:"arguments,omitempty"` // of a call, as they came, if they were not compact
}

// takeMark removes a part's mark from its fields; one that can't be read counts
// as none.
func (o object) takeMark() mark {
	var mk mark
	raw, ok := o[markKey]
	if !ok {
		return mk
	}
	if delete(o, markKey); json.Unmarshal(raw, &mk) != nil {
		return mark{}
	}
	return mk
}
