package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Host is the host as an adapter sees it. Its methods may be called from any
// number of goroutines.
type Host struct {
	// Log is where the adapter writes; it carries the platform's name.
	Log *slog.Logger

	config json.RawMessage
	links  *links
	ids    *ids
	timing *timing
	status status
}

// Config decodes the adapter's configuration into v, as Config.Decode does, for an
// adapter without Setup.
func (h *Host) Config(v any) error { return decodeConfig(h.config, v) }

// decodeConfig implements Config.Decode.
func decodeConfig(raw json.RawMessage, v any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("found more after the JSON object, expected its end")
	}
	return Refused(fmt.Errorf("configuration: %w", configError(raw, err)))
}

// configError puts what encoding/json says into the operator's words.
func configError(text []byte, err error) error {
	var mistyped *json.UnmarshalTypeError
	var broken *json.SyntaxError
	switch {
	case errors.As(err, &mistyped):
		found, _, _ := strings.Cut(mistyped.Value, " ") // "number 70000": the value stays out
		if mistyped.Field == "" {
			return fmt.Errorf("found %s, expected an object", found)
		}
		return fmt.Errorf("key %q: found %s, expected %s", mistyped.Field, found, kindName(mistyped.Type))
	case errors.As(err, &broken):
		line, column := position(text, broken.Offset)
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		line, column := position(text, int64(len(text)))
		return fmt.Errorf("line %d, column %d: unexpected end", line, column)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown key %s", name)
	}
	return err
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	default:
		return t.String()
	}
}

// position is the line and column, from 1, of the byte before offset.
func position(text []byte, offset int64) (line, column int) {
	before := text[:min(max(offset-1, 0), int64(len(text)))]
	line = 1 + bytes.Count(before, []byte("\n"))
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// Cursor is the Event.Cursor that the host has committed last, for an adapter to
// read on from; "" = none yet. It outlives the adapter. Protocol 1.0 keeps none.
func (h *Host) Cursor() string { return h.links.position() }
