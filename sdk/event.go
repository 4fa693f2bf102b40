package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Event is what a user did on the platform: a message (Text, Parts,
// Attachments), or the one of Action, Form, Edits, Deletes and Reaction that is
// set. Only Text and Action exist in protocol 1.0; see Deliver.
type Event struct {
	// ID is the platform's own id of the event. The host takes each once, also if
	// it is delivered again after a restart of either side. "" = the SDK makes
	// one, which tells apart only what one call of Deliver repeats. Edits,
	// Deletes and Reaction have none.
	ID             string
	SessionKey     string // stable key of the adapter's own, by convention platform:conversation:user
	ConversationID string // "" = SessionKey stands in for it
	UserID         string // decides who may speak
	UserName       string // shown; "" = UserID
	ReplyCtx       any    // marshalled as JSON, echoed with every answer; nil = none

	Text        string
	Parts       []message.Part    // the message by its parts, which count more than Text; for Rich adapters
	Attachments []wire.Attachment // by url, or by what Host.Upload returned

	Action   string    // the value of a button that was pressed
	Form     *Form     // a form that was filled in
	Edits    string    // platform's id of the message that now says Text
	Deletes  string    // platform's id of a message that is gone
	Reaction *Reaction // for Reactors

	// Cursor is where the platform would be read on after this event, at most
	// 4,096 bytes. It is committed with the event; see Host.Cursor.
	Cursor string
}

// Form is a form as a user filled it in. ID is the uiId of its message.UIPart;
// a value is a string, a bool or a []string, by the component's name.
type Form struct {
	ID     string
	Values map[string]any
}

// Reaction is a user's reaction to the message with the platform's id To.
type Reaction struct {
	To     string
	Emoji  string
	Remove bool // taken back
}

// dialect is what a connection has negotiated.
type dialect struct {
	protocol wire.Protocol
	caps     wire.Caps // effective; none of 1.1 under 1.0
}

func (d dialect) has(c wire.Caps) bool { return d.protocol != wire.V10 && d.caps.Has(c) }

// newest is all that this SDK can say.
var newest = dialect{wire.V11, wire.CapsV11}

// errLacks: the host does not take this kind of event.
var errLacks = errors.New("the host has not granted what it needs")

// encode makes the event's frame, or says what about it the host would refuse.
// id is that of the frame.
func encode(e *Event, id string, d dialect) ([]byte, error) {
	for _, f := range [...]struct{ name, value string }{
		{"ID", e.ID}, {"SessionKey", e.SessionKey}, {"ConversationID", e.ConversationID}, {"UserID", e.UserID}, {"UserName", e.UserName},
		{"Edits", e.Edits}, {"Deletes", e.Deletes}, {"Cursor", e.Cursor},
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
	if d.protocol != wire.V10 {
		in.MessageID, in.Cursor = id, e.Cursor
	}
	if err := e.kind(&in, d); err != nil {
		return nil, err
	}
	frame := in.Append(make([]byte, 0, 256+len(in.Text)+len(replyCtx)))
	if len(frame) > wire.MaxFrame {
		return nil, fmt.Errorf("found a frame of %d bytes, at most %d are allowed", len(frame), wire.MaxFrame)
	}
	return frame, nil
}

// kind makes in a frame of the event's kind.
func (e *Event) kind(in *wire.Inbound, d dialect) error {
	set := 0
	for _, is := range [...]bool{e.Action != "", e.Form != nil, e.Edits != "", e.Deletes != "", e.Reaction != nil} {
		if is {
			set++
		}
	}
	var needs wire.Caps
	switch {
	case set > 1:
		return errors.New("found several of Action, Form, Edits, Deletes and Reaction, at most one is allowed")
	case e.Action != "":
		in.Type = wire.TypeCardAction
		return nil
	case e.Form != nil:
		if e.Form.ID == "" || e.Form.Values == nil {
			return errors.New("Form: expected an ID, the uiId of the form, and Values")
		}
		values, err := marshal(e.Form.Values)
		if err != nil {
			return fmt.Errorf("Form.Values: %w", err)
		}
		needs, in.Type, in.Later = wire.CapForm, wire.TypeFormSubmit, &wire.Later{UIID: e.Form.ID, Values: values}
	case e.Edits != "":
		in.Type, in.MessageID = wire.TypeMessageEdit, e.Edits
	case e.Deletes != "":
		needs, in.Type, in.MessageID = wire.CapDeleteMessage, wire.TypeMessageDelete, e.Deletes
	case e.Reaction != nil:
		if e.Reaction.To == "" || e.Reaction.Emoji == "" || max(len(e.Reaction.To), len(e.Reaction.Emoji)) > wire.MaxField {
			return fmt.Errorf("Reaction: expected To and Emoji, of at most %d bytes", wire.MaxField)
		}
		needs, in.Type, in.MessageID = wire.CapReaction, wire.TypeReaction, e.Reaction.To
		in.Later = &wire.Later{Emoji: e.Reaction.Emoji, Remove: e.Reaction.Remove}
	default:
		e.content(in, d)
		return nil
	}
	if !d.has(needs) {
		return fmt.Errorf("%s: %w", in.Type, errLacks)
	}
	return nil
}

// content puts parts and attachments where the host takes them; else the text
// says what can be said of attachments.
func (e *Event) content(in *wire.Inbound, d dialect) {
	var rich wire.Later
	if len(e.Parts) > 0 && d.has(wire.CapParts) {
		rich.Parts = wire.Raw(message.AppendParts(nil, e.Parts))
	} else if len(e.Parts) > 0 && in.Text == "" {
		in.Text = message.RollUp(e.Parts)
	}
	if d.has(wire.CapParts) || d.has(wire.CapAudio) {
		rich.Attachments = e.Attachments
	} else {
		in.Text = inWords(in.Text, e.Attachments)
	}
	if rich.Parts != "" || len(rich.Attachments) > 0 {
		rich.NoText = in.Text == ""
		in.Later = &rich
	}
}

func inWords(text string, files []wire.Attachment) string {
	lines := []string{text}
	for _, f := range files {
		lines = append(lines, f.Caption, strings.TrimSpace(f.Name+" "+f.URL))
	}
	kept := lines[:0]
	for _, l := range lines {
		if l != "" {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
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
	return marshal(v)
}

// marshal is v as JSON, without HTML being escaped.
func marshal(v any) (wire.Raw, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return wire.Raw(bytes.TrimSpace(b.Bytes())), nil
}
