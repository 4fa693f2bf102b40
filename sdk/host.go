package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Host is the host as an adapter sees it. Its methods may be called from any
// number of goroutines.
type Host struct {
	// Log is where the adapter writes; it carries the platform's name.
	Log *slog.Logger

	config json.RawMessage
	links  *links
}

// Deliver hands one event to the host. It returns nil once the event is written
// to the connection, and waits until then: for a slow host, and for the
// connection to come back. An event that a breaking connection took in part is
// written again to the next one. Protocol 1.0 has no acknowledgement: what a
// connection took whole just before it broke may not have arrived.
//
// ctx bounds the waiting, not the writing. An error means that the host does not
// have the event: it is too large or its ReplyCtx is not JSON (no repetition
// cures that), ctx ended, or ErrStopped.
func (h *Host) Deliver(ctx context.Context, e Event) error {
	frame, err := encode(&e)
	if err != nil {
		return fmt.Errorf("deliver event: %w", err)
	}
	for {
		l, err := h.links.wait(ctx)
		if err != nil {
			return fmt.Errorf("deliver event: %w", err)
		}
		if err = l.write(ctx, frame); err == nil {
			return nil
		}
		if errors.Is(err, errNoTurn) {
			return fmt.Errorf("deliver event: %w", err)
		}
		h.links.drop(l)
	}
}

// Config decodes the adapter's configuration, a JSON object, into v. A key that
// v does not have is an error; every error names the key and none shows a value,
// which may be a secret. Without configuration v stays as it is. The error is
// Refused: returned from Run, it ends the adapter.
func (h *Host) Config(v any) error {
	if len(bytes.TrimSpace(h.config)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(h.config))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("found more after the JSON object, expected its end")
	}
	return Refused(fmt.Errorf("configuration: %w", configError(h.config, err)))
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

// Cursor is the platform offset that was committed with the last event, for an
// adapter to resume from; "" = unknown. Protocol 1.0 keeps none.
func (h *Host) Cursor() string { return "" }

// encode makes the event's frame, or says what about it the host would refuse.
func encode(e *Event) ([]byte, error) {
	for _, f := range [...]struct{ name, value string }{
		{"SessionKey", e.SessionKey}, {"ConversationID", e.ConversationID},
		{"UserID", e.UserID}, {"UserName", e.UserName},
	} {
		if len(f.value) > wire.MaxField {
			return nil, fmt.Errorf("%s: found %d bytes, at most %d are allowed", f.name, len(f.value), wire.MaxField)
		}
	}
	replyCtx, err := encodeReplyCtx(e.ReplyCtx)
	if err != nil {
		return nil, fmt.Errorf("ReplyCtx: %w", err)
	}
	in := wire.Inbound{
		Type:     wire.TypeMessage,
		Routing:  wire.Routing{SessionKey: e.SessionKey, ConversationID: e.ConversationID, ReplyCtx: replyCtx},
		UserID:   e.UserID,
		UserName: e.UserName,
		Text:     e.Text,
		Action:   e.Action,
	}
	if e.Action != "" {
		in.Type = wire.TypeCardAction
	}
	frame := in.Append(make([]byte, 0, 256+len(e.Text)+len(replyCtx)))
	if len(frame) > wire.MaxFrame {
		return nil, fmt.Errorf("found a frame of %d bytes, at most %d are allowed", len(frame), wire.MaxFrame)
	}
	return frame, nil
}

// encodeReplyCtx keeps a json.RawMessage byte for byte; the library would
// compact it and escape HTML.
func encodeReplyCtx(v any) (wire.Raw, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return wire.Raw(wire.AppendString(nil, v)), nil
	case json.RawMessage:
		raw := bytes.TrimSpace(v)
		if len(raw) > 0 && (!json.Valid(raw) || !utf8.Valid(raw)) {
			return "", errors.New("found a json.RawMessage that is not one JSON value in UTF-8")
		}
		return wire.Raw(raw), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return wire.Raw(bytes.TrimSpace(b.Bytes())), nil
}
