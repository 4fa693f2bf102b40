package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/pontoon-bridge/pontoon/sdk/internal/shape"
)

// View is a part read as the struct of its type: one of the …Part structs of
// this package, in a type switch. A view is a copy of what it knows; what it
// does not know stays in the Part.
type View interface{ partType() string }

// Base begins every part.
type Base struct {
	ID string `json:"id,omitempty"` // stable, unique in its message
}

// views has one struct for each type of part.
var views = []View{
	TextPart{}, TextDeltaPart{}, MarkdownPart{}, CitationPart{}, ChipsPart{}, CarouselPart{}, OrderPart{}, CustomPart{},
	ToolCallPart{}, ToolResultPart{}, FilePart{}, TransferPart{}, DiagnosticPart{}, EndSessionPart{}, ErrorPart{},
	AudioInputPart{}, AudioOutputPart{}, TranscriptPart{}, AudioCuePart{}, VisionPart{}, MemoryApprovalPart{}, MemoryRecallPart{},
	SentimentPart{}, IntentPart{}, ComputerUsePart{}, A2UIPart{}, UIPart{}, UISubmitPart{},
}

// viewTypes finds the struct of a type of part.
var viewTypes = sync.OnceValue(func() map[string]reflect.Type {
	m := make(map[string]reflect.Type, len(views))
	for _, v := range views {
		m[v.partType()] = reflect.TypeOf(v)
	}
	return m
})

// shapes has the shape of each type of part.
var shapes = sync.OnceValue(func() map[string]*shape.Shape {
	m := make(map[string]*shape.Shape, len(views))
	for _, v := range views {
		m[v.partType()] = shape.Of(reflect.TypeOf(v))
	}
	return m
})

// Types lists the types of parts that have a struct.
func Types() []string {
	out := make([]string, len(views))
	for i, v := range views {
		out[i] = v.partType()
	}
	return out
}

// ErrUnknownType is the error of a part whose type has no struct.
var ErrUnknownType = fmt.Errorf("unknown type of part")

// View reads the part as the struct of its type. The error wraps ErrUnknownType
// if there is none, and names the field if one is of another type than it
// should be.
func (p Part) View() (View, error) {
	t, ok := viewTypes()[p.Type]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknownType, p.Type)
	}
	v := reflect.New(t)
	if err := json.Unmarshal(p.raw, v.Interface()); err != nil {
		return nil, fmt.Errorf("%s part: %w", p.Type, err)
	}
	return v.Elem().Interface().(View), nil // only views are in the table
}

// As reads the part as one of the part structs.
func As[T View](p Part) (T, error) {
	var v T
	if want := v.partType(); p.Type != want {
		return v, fmt.Errorf("%s part: expected %s", p.Type, want)
	}
	if err := json.Unmarshal(p.raw, &v); err != nil {
		return v, fmt.Errorf("%s part: %w", p.Type, err)
	}
	return v, nil
}

// Is reports whether the part is of the struct's type, such as Is[TextPart](p).
func Is[T View](p Part) bool {
	var v T
	return p.Type == v.partType()
}

// IsSignal reports a classification of what was said, of either kind.
func IsSignal(p Part) bool { return p.Type == TypeSentiment || p.Type == TypeIntent }

// Of makes a part of its struct. It panics if a json.RawMessage in it is not
// JSON, which is the caller's mistake.
func Of(v View) Part {
	raw := compose(v.partType(), v)
	return Part{Type: v.partType(), raw: raw}
}

// compose is v with its type as the first key.
func compose(typ string, v any) json.RawMessage {
	fields, err := json.Marshal(v)
	if err != nil {
		panic("message: marshal " + typ + ": " + err.Error())
	}
	raw := make(json.RawMessage, 0, len(fields)+len(typ)+len(`{"type":"",`))
	raw = append(raw, `{"type":"`...)
	raw = append(raw, typ...)
	raw = append(raw, '"')
	if !bytes.Equal(fields, []byte("{}")) {
		raw = append(raw, ',')
	}
	return append(raw, fields[1:]...)
}

// TextField is the value of the first of the named fields that is text and not
// empty; "" if there is none. It is for what parts leave open, such as products.
func TextField(object json.RawMessage, names ...string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return ""
	}
	for _, name := range names {
		var s string
		if json.Unmarshal(fields[name], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}
