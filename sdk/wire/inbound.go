package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// Inbound is one frame of an adapter. Which fields count follows from Type.
// Its strings are of their own: the frame's buffer may be reused.
type Inbound struct {
	Type Type

	// register
	Token        string
	Platform     string
	Capabilities []string
	Metadata     Raw

	// message, card_action
	Routing
	UserID   string
	UserName string
	Text     string // message
	Action   string // card_action

	// MessageID is the platform's own id of what the frame carries; "" = none.
	MessageID string
}

// The keys that the host reads; all others are ignored. Their order is the
// index into fields.
const (
	keyType = iota
	keyToken
	keyPlatform
	keyCapabilities
	keyMetadata
	keySessionKey
	keyConversationID
	keyUserID
	keyUserName
	keyText
	keyAction
	keyReplyCtx
	keyMessageID
	keyCount
)

var keyNames = [keyCount]string{
	"type", "token", "platform", "capabilities", "metadata", "session_key", "conversation_id",
	"user_id", "user_name", "text", "action", "reply_ctx", "message_id",
}

// fields holds the raw JSON value of each known key; "" = absent. Of a
// repeated key the last counts.
type fields [keyCount]string

func keyIndex(name string) int {
	for i, n := range keyNames {
		if n == name {
			return i
		}
	}
	return -1
}

// DecodeInbound reads one frame of an adapter. The frame must be valid UTF-8.
// A refusal is always an *Error whose Code is one of bad_json, not_object,
// too_deep, unknown_type, missing_field, wrong_type, too_large, not_supported;
// it carries the frame's message_id as Ref where that could be read.
func DecodeInbound(frame []byte) (*Inbound, *Error) {
	s := string(frame) // one allocation; every field is a part of it
	var f fields
	if !scan(s, &f) {
		f = fields{}
		if err := decodeSlowly(frame, &f); err != nil {
			return nil, err
		}
	}
	in := new(Inbound)
	if err := in.interpret(&f); err != nil {
		err.Ref = in.MessageID
		return nil, err
	}
	return in, nil
}

// decodeSlowly is the reference that scan must agree with: the library reads
// the frame, and says what is wrong with it.
func decodeSlowly(frame []byte, f *fields) *Error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(frame, &all); err != nil {
		return syntaxError(frame, err)
	}
	if all == nil { // the frame is null
		return errorf(CodeNotObject, "frame: found null, expected a JSON object")
	}
	for name, raw := range all {
		if i := keyIndex(name); i >= 0 {
			f[i] = string(raw)
		}
	}
	return nil
}

func syntaxError(frame []byte, err error) *Error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return errorf(CodeNotObject, "frame: found %s, expected a JSON object", kindOf(string(bytes.TrimLeft(frame, " \t\r\n"))))
	}
	if strings.Contains(err.Error(), "max depth") {
		return errorf(CodeTooDeep, "frame: nested deeper than 10000 levels, which is the limit")
	}
	if len(bytes.TrimSpace(frame)) == 0 {
		return errorf(CodeBadJSON, "frame: empty, expected a JSON object")
	}
	if bytes.HasPrefix(frame, []byte("\xef\xbb\xbf")) {
		return errorf(CodeBadJSON, "frame: starts with a byte order mark, expected '{'")
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return errorf(CodeBadJSON, "frame: %s at byte %d", syntax.Error(), syntax.Offset)
	}
	return errorf(CodeBadJSON, "frame: %s", err.Error())
}

// kindOf names the JSON kind of a raw value for a message to a human.
func kindOf(raw string) string {
	if raw == "" {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

func (in *Inbound) interpret(f *fields) *Error {
	// The id first, so that every later refusal can refer to it. Protocol 1.0
	// does not know it: what can't be one is ignored, like any unknown field.
	_ = f.text(&in.MessageID, keyMessageID, MaxField)
	if f[keyType] == "" || f[keyType] == "null" {
		return errorf(CodeMissingField, "type: absent, expected register, message, card_action or ping")
	}
	var name string
	if err := f.text(&name, keyType, MaxFrame); err != nil {
		return err
	}
	in.Type = Type(name)
	switch in.Type {
	case TypeRegister:
		return in.register(f)
	case TypeMessage:
		if err := f.required(&in.Text, keyText); err != nil {
			return err
		}
		return in.author(f)
	case TypeCardAction:
		if err := f.required(&in.Action, keyAction); err != nil {
			return err
		}
		return in.author(f)
	case TypePing, TypePong, TypeRegisterAck: // the last two are ignored by whoever reads them
		return nil
	}
	if needs, ok := later[in.Type]; ok {
		return errorf(CodeNotSupported, "type: %q needs %s, which this session has not negotiated", name, needs)
	}
	return errorf(CodeUnknownType, "type: found %.64q, expected message, card_action or ping", name)
}

func (in *Inbound) register(f *fields) *Error {
	if err := f.text(&in.Token, keyToken, MaxFrame); err != nil { // a giant token is an invalid one
		return err
	}
	if err := f.text(&in.Platform, keyPlatform, MaxField); err != nil {
		return err
	}
	if raw := f[keyCapabilities]; raw != "" {
		if err := json.Unmarshal([]byte(raw), &in.Capabilities); err != nil {
			return notStrings("capabilities", raw)
		}
	}
	if raw := f[keyMetadata]; raw != "" && raw != "null" {
		if raw[0] != '{' {
			return errorf(CodeWrongType, "metadata: found %s, expected an object", kindOf(raw))
		}
		in.Metadata = Raw(raw)
	}
	return nil
}

// notStrings says what about raw is not an array of strings.
func notStrings(name, raw string) *Error {
	var elements []json.RawMessage
	if json.Unmarshal([]byte(raw), &elements) == nil {
		for i, e := range elements {
			if e[0] != '"' && e[0] != 'n' {
				return errorf(CodeWrongType, "%s[%d]: found %s, expected a string", name, i, kindOf(string(e)))
			}
		}
	}
	return errorf(CodeWrongType, "%s: found %s, expected an array of strings", name, kindOf(raw))
}

func (in *Inbound) author(f *fields) *Error {
	for _, d := range [...]struct {
		dst *string
		key int
	}{
		{&in.SessionKey, keySessionKey}, {&in.ConversationID, keyConversationID},
		{&in.UserID, keyUserID}, {&in.UserName, keyUserName},
	} {
		if err := f.text(d.dst, d.key, MaxField); err != nil {
			return err
		}
	}
	in.ReplyCtx = Raw(f[keyReplyCtx])
	return nil
}

func (f *fields) required(dst *string, key int) *Error {
	if f[key] == "" {
		return errorf(CodeMissingField, "%s: absent, expected a string", keyNames[key])
	}
	if f[key] == "null" {
		return errorf(CodeWrongType, "%s: found null, expected a string", keyNames[key])
	}
	return f.text(dst, key, MaxFrame)
}

// text reads a string field; absent and null leave dst as it is.
func (f *fields) text(dst *string, key, limit int) *Error {
	raw := f[key]
	switch {
	case raw == "" || raw == "null":
		return nil
	case raw[0] != '"':
		return errorf(CodeWrongType, "%s: found %s, expected a string", keyNames[key], kindOf(raw))
	case strings.IndexByte(raw, '\\') < 0:
		*dst = raw[1 : len(raw)-1]
	default:
		if err := json.Unmarshal([]byte(raw), dst); err != nil {
			return errorf(CodeBadJSON, "%s: %s", keyNames[key], err.Error())
		}
	}
	if len(*dst) > limit {
		n := len(*dst)
		*dst = ""
		return errorf(CodeTooLarge, "%s: found %d bytes, at most %d are allowed", keyNames[key], n, limit)
	}
	return nil
}

// Append appends the frame as one JSON object: what an adapter writes. Empty
// optional fields are left out.
func (in *Inbound) Append(dst []byte) []byte {
	dst = open(dst, in.Type)
	switch in.Type {
	case TypeRegister:
		dst = fieldIf(dst, "token", in.Token)
		dst = field(dst, "platform", in.Platform)
		dst = append(key(dst, "capabilities"), '[')
		for i, c := range in.Capabilities {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendString(dst, c)
		}
		dst = append(dst, ']')
		if in.Metadata != "" {
			dst = rawField(dst, "metadata", in.Metadata)
		}
	case TypeMessage, TypeCardAction:
		dst = fieldIf(dst, "session_key", in.SessionKey)
		dst = fieldIf(dst, "conversation_id", in.ConversationID)
		dst = fieldIf(dst, "user_id", in.UserID)
		dst = fieldIf(dst, "user_name", in.UserName)
		if in.Type == TypeMessage {
			dst = field(dst, "text", in.Text)
		} else {
			dst = field(dst, "action", in.Action)
		}
		if in.ReplyCtx != "" {
			dst = rawField(dst, "reply_ctx", in.ReplyCtx)
		}
		dst = fieldIf(dst, "message_id", in.MessageID)
	}
	return append(dst, '}')
}
