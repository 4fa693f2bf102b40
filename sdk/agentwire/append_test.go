package agentwire_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
)

// Frames are written by hand, since the library takes several times as long: whatever
// field is set, also one that is added later, they say what the library would.
func TestFramesSayEveryField(t *testing.T) {
	each(t, func(f *agentwire.FromAgent) ([]byte, string) { f.Type = "send"; return f.Append(nil), "send" })
	each(t, func(turn *agentwire.Turn) ([]byte, string) {
		return (&agentwire.FromHost{Type: agentwire.TypeTurn, Turn: turn}).Append(nil), "turn"
	})
	each(t, func(a *agentwire.Ack) ([]byte, string) {
		return (&agentwire.FromHost{Type: agentwire.TypeMessageAck, Ack: a}).Append(nil), "message_ack"
	})
}

// each writes a frame for each field, which alone is set, and one for each field of a
// message in it.
func each[T any](t *testing.T, write func(*T) (frame []byte, kind string)) {
	t.Helper()
	for path := range paths(reflect.TypeFor[T]()) {
		v := new(T)
		set(t, reflect.ValueOf(v).Elem().FieldByIndex(path.index))
		frame, kind := write(v)
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got, want map[string]any
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		want["type"] = kind
		if err := json.Unmarshal(frame, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%T.%s: found %s (%v), expected %v", *v, path.name, frame, err, want)
		}
	}
}

type path struct {
	name  string
	index []int
}

// paths yields the fields of a struct, and those of the message in it.
func paths(of reflect.Type) func(func(path) bool) {
	return func(yield func(path) bool) {
		for _, f := range reflect.VisibleFields(of) {
			if f.Name == "Message" && f.Type.Kind() == reflect.Struct {
				for _, in := range reflect.VisibleFields(f.Type) {
					if !yield(path{"Message." + in.Name, []int{f.Index[0], in.Index[0]}}) {
						return
					}
				}
				continue
			}
			if !yield(path{f.Name, f.Index}) {
				return
			}
		}
	}
}

// set gives a field a value that is left out nowhere.
func set(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("\"a\" < \u00e9\u2028")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if k := v.Elem().Kind(); k == reflect.String || k == reflect.Bool {
			set(t, v.Elem())
		}
	case reflect.Slice:
		if json.Unmarshal([]byte(`[{"type":"text","text":"x"}]`), v.Addr().Interface()) != nil { // no parts
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if err := json.Unmarshal([]byte(`{"key":"value"}`), v.Addr().Interface()); err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatalf("a field of kind %s: say how it is set", v.Kind())
	}
}
