// Package shape reads off a Go struct what a JSON value of it may be, so that
// structs, validation and JSON Schema can't differ.
package shape

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Shape says what a JSON value may be.
type Shape struct {
	Kind     Kind
	Name     string   // of the Go type, for an object
	Fields   []Field  // of an object
	Elements *Shape   // of an array, or the values of a dictionary
	Values   []string // of a closed set; nil = any text
}

// Field is one key of an object.
type Field struct {
	Name     string
	Required bool
	Shape    *Shape

	tag reflect.StructTag // see bound
}

// Kind is a kind of JSON value.
type Kind int

// The kinds. An Object has Fields, and may have others; a Dictionary has keys
// of any name.
const (
	Any Kind = iota
	Text
	Number
	Boolean
	Object
	Dictionary
	Array
)

func (k Kind) String() string {
	return [...]string{"any value", "a string", "a number", "a boolean", "an object", "an object", "an array"}[k]
}

// Is reports whether raw, which is JSON without white space around it, begins
// as a value of the kind does.
func (k Kind) Is(raw json.RawMessage) bool {
	if len(raw) == 0 {
		return false
	}
	switch c := raw[0]; k {
	case Text:
		return c == '"'
	case Number:
		return c == '-' || c >= '0' && c <= '9'
	case Boolean:
		return c == 't' || c == 'f'
	case Object, Dictionary:
		return c == '{'
	case Array:
		return c == '['
	}
	return true
}

// Closed is a string type of which only some values are allowed.
type Closed interface{ Values() []string }

var rawType = reflect.TypeFor[json.RawMessage]()

// Of is the shape of values of the type: of a struct by its json tags, where a
// key without omitempty or omitzero is required.
func Of(t reflect.Type) *Shape {
	if c, ok := reflect.Zero(t).Interface().(Closed); ok {
		return &Shape{Kind: Text, Values: c.Values()}
	}
	switch {
	case t == rawType:
		return &Shape{}
	case t.Kind() == reflect.Pointer:
		return Of(t.Elem())
	case t.Kind() == reflect.Slice:
		return &Shape{Kind: Array, Elements: Of(t.Elem())}
	case t.Kind() == reflect.Map:
		return &Shape{Kind: Dictionary, Elements: Of(t.Elem())}
	case t.Kind() == reflect.Struct:
		s := &Shape{Kind: Object, Name: t.Name()}
		s.add(t)
		return s
	case t.Kind() == reflect.String:
		return &Shape{Kind: Text}
	case t.Kind() == reflect.Bool:
		return &Shape{Kind: Boolean}
	}
	return &Shape{Kind: Number}
}

// add reads the fields of a struct; those of an embedded one are its own.
func (s *Shape) add(t reflect.Type) {
	for f := range t.Fields() {
		if f.Anonymous {
			s.add(f.Type)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		optional := func(o string) bool { return o == "omitempty" || o == "omitzero" }
		s.Fields = append(s.Fields, Field{name, !slices.ContainsFunc(strings.Split(options, ","), optional), Of(f.Type), f.Tag})
	}
}

// Schema is the shape as JSON Schema 2020-12. Unknown keys are allowed.
func (s *Shape) Schema() map[string]any {
	switch s.Kind {
	case Text:
		if s.Values != nil {
			return map[string]any{"type": "string", "enum": s.Values}
		}
		return map[string]any{"type": "string"}
	case Number:
		return map[string]any{"type": "number"}
	case Boolean:
		return map[string]any{"type": "boolean"}
	case Array:
		return map[string]any{"type": "array", "items": s.Elements.Schema()}
	case Dictionary:
		return map[string]any{"type": "object", "additionalProperties": s.Elements.Schema()}
	case Object:
		return s.object()
	}
	return map[string]any{}
}

// object leaves a key that may be absent open to null too: as absent.
func (s *Shape) object() map[string]any {
	fields := map[string]any{}
	var required []string
	for _, f := range s.Fields {
		schema := f.Shape.Schema()
		f.bound(schema)
		if f.Required {
			required = append(required, f.Name)
		} else if values, ok := schema["enum"].([]string); ok {
			schema = map[string]any{"enum": append(toAny(values), nil)}
		} else if t, ok := schema["type"]; ok {
			schema["type"] = []any{t, "null"}
		}
		fields[f.Name] = schema
	}
	out := map[string]any{"type": "object", "properties": fields}
	if required != nil {
		out["required"] = required
	}
	return out
}

// bounds are the struct tags that say more of a field than its type, as the REST API
// reads them too; all are numbers.
var bounds = []string{"minimum", "maximum", "minLength", "maxLength", "minItems"}

// bound adds to a field's schema what its tags say. A number with a minimum is an integer.
// A text of a closed set may be empty where it may be absent.
func (f *Field) bound(schema map[string]any) {
	for _, name := range bounds {
		if n, err := strconv.ParseInt(f.tag.Get(name), 10, 64); err == nil {
			schema[name] = n
		}
	}
	if _, ok := schema["minimum"]; ok {
		schema["type"] = "integer"
	}
	if format := f.tag.Get("format"); format != "" {
		schema["format"] = format
	}
	if list := f.tag.Get("enum"); list != "" {
		values := strings.Split(list, ",")
		if !f.Required {
			values = append(values, "")
		}
		schema["enum"] = values
	}
}

func toAny(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
