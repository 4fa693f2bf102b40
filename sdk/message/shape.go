package message

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A shape says what a JSON value may be. Those of the parts are read off their
// structs, so that structs, validation and JSON Schema can't differ.
type shape struct {
	kind     kind
	fields   []fieldShape // of an object
	elements *shape       // of an array, or the values of a map
	values   []string     // of a closed set; nil = any text
}

type fieldShape struct {
	name     string
	required bool
	shape    *shape
}

// kind is a kind of JSON value.
type kind int

const (
	anyValue kind = iota
	text
	number
	boolean
	object // with fields, unknown ones too
	dictionary
	array
)

func (k kind) String() string {
	return [...]string{"any value", "a string", "a number", "a boolean", "an object", "an object", "an array"}[k]
}

// shapes has the shape of each type of part.
var shapes = sync.OnceValue(func() map[string]*shape {
	out := map[string]*shape{}
	for _, v := range views {
		out[v.partType()] = shapeOf(reflect.TypeOf(v))
	}
	return out
})

var rawType = reflect.TypeFor[json.RawMessage]()

func shapeOf(t reflect.Type) *shape {
	if c, ok := reflect.Zero(t).Interface().(closed); ok {
		return &shape{kind: text, values: c.values()}
	}
	switch {
	case t == rawType:
		return &shape{}
	case t.Kind() == reflect.Pointer:
		return shapeOf(t.Elem())
	case t.Kind() == reflect.Slice:
		return &shape{kind: array, elements: shapeOf(t.Elem())}
	case t.Kind() == reflect.Map:
		return &shape{kind: dictionary, elements: shapeOf(t.Elem())}
	case t.Kind() == reflect.Struct:
		s := &shape{kind: object}
		s.add(t)
		return s
	case t.Kind() == reflect.String:
		return &shape{kind: text}
	case t.Kind() == reflect.Bool:
		return &shape{kind: boolean}
	}
	return &shape{kind: number}
}

// add reads the fields of a struct; those of an embedded one are its own.
func (s *shape) add(t reflect.Type) {
	for f := range t.Fields() {
		if f.Anonymous {
			s.add(f.Type)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		s.fields = append(s.fields, fieldShape{name, !slices.Contains(strings.Split(options, ","), "omitempty"), shapeOf(f.Type)})
	}
}
