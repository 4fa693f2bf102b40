package wire

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Outbound is any frame of the host as an adapter reads it.
type Outbound struct {
	Frame
	Routing
	Ack        *RegisterAck // register_ack
	MessageAck *MessageAck  // message_ack
	UploadAck  *UploadAck   // upload_ack
	Error      *Error       // error
}

// DecodeOutbound reads a frame of the host. Unknown fields are ignored; an
// unknown type is not an error, so that an older adapter survives a newer host.
func DecodeOutbound(frame []byte) (*Outbound, error) {
	if out := decodeOrdinary(string(frame)); out != nil {
		return out, nil
	}
	return decodeAny(frame)
}

// decodeAny is the reference that decodeOrdinary must agree with.
func decodeAny(frame []byte) (*Outbound, error) {
	var f struct {
		Type           Type            `json:"type"`
		SessionKey     string          `json:"session_key"`
		ConversationID string          `json:"conversation_id"`
		ReplyCtx       json.RawMessage `json:"reply_ctx"`
		Text           string          `json:"text"`
		Card           *Card           `json:"card"`
		Buttons        [][]Button      `json:"buttons"`
		PreviewHandle  string          `json:"preview_handle"`
		Image          *Image          `json:"image"`
		File           *File           `json:"file"`
		OK             bool            `json:"ok"`
		Error          string          `json:"error"`
		Code           Code            `json:"code"`
		Message        string          `json:"message"`
		Ref            string          `json:"ref"`
		MessageID      json.RawMessage `json:"message_id"`
		Resumed        json.RawMessage `json:"resumed"`
		Unsolicited    json.RawMessage `json:"unsolicited"`
		Protocol       json.RawMessage `json:"protocol"`
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		return nil, fmt.Errorf("decode frame of the host: %w", err)
	}
	out := &Outbound{
		Frame: Frame{
			Type: f.Type, Text: f.Text, Card: f.Card, Buttons: f.Buttons, PreviewHandle: f.PreviewHandle, Image: f.Image, File: f.File,
			MessageID: stringIn(f.MessageID), Resumed: string(f.Resumed) == "true", Unsolicited: string(f.Unsolicited) == "true",
		},
		Routing: Routing{SessionKey: f.SessionKey, ConversationID: f.ConversationID},
	}
	if string(f.ReplyCtx) != "null" {
		out.ReplyCtx = Raw(f.ReplyCtx)
	}
	switch f.Type {
	case TypeRegisterAck:
		out.Ack = &RegisterAck{OK: f.OK, Error: f.Error}
		if f.OK && stringIn(f.Protocol) != "" {
			if err := decodeInto(out.Ack, frame); err != nil {
				return nil, err
			}
		}
	case TypeError:
		out.Error = &Error{Code: f.Code, Message: f.Message, Ref: f.Ref}
	default:
		if err := out.later(frame); err != nil {
			return nil, err
		}
	}
	if name := out.lacks(); name != "" {
		return nil, errorf(CodeMissingField, "%s: absent, expected an object", name)
	}
	return out, nil
}

// decodeOrdinary is the fast path of DecodeOutbound, for what most frames are: a text,
// or the acknowledgement of a message. It is nil on others and on anything unusual,
// which the library decides.
func decodeOrdinary(frame string) *Outbound {
	var f fields
	if !utf8.ValidString(frame) || !scan(frame, &f) {
		return nil
	}
	out := new(Outbound)
	bad := f.text(&out.SessionKey, keySessionKey, MaxFrame) != nil ||
		f.text(&out.ConversationID, keyConversationID, MaxFrame) != nil ||
		f.text(&out.Text, keyText, MaxFrame) != nil ||
		f.text(&out.PreviewHandle, keyPreviewHandle, MaxFrame) != nil
	if reply := f[keyReplyCtx]; reply != "null" {
		out.ReplyCtx = Raw(reply)
	}
	out.Resumed, out.Unsolicited = f[keyResumed] == "true", f[keyUnsolicited] == "true"
	switch f[keyType] {
	case `"send"`:
		out.Type = TypeSend
		if id := f[keyMessageID]; id != "" && id[0] == '"' { // see stringIn
			bad = bad || f.text(&out.MessageID, keyMessageID, MaxFrame) != nil
		}
	case `"message_ack"`:
		out.Type, out.MessageAck = TypeMessageAck, new(MessageAck)
		a := out.MessageAck
		bad = bad || f.text(&a.MessageID, keyMessageID, MaxFrame) != nil || f.text(&a.Error, keyError, MaxFrame) != nil ||
			f.boolean(&a.OK, keyOK) != nil || f.boolean(&a.Retryable, keyRetryable) != nil
	default:
		return nil
	}
	if bad {
		return nil
	}
	return out
}

// lacks names the object that the frame's type needs and that is not there.
func (o *Outbound) lacks() string {
	switch {
	case o.Type == TypeSendCard && o.Card == nil:
		return "card"
	case o.Type == TypeSendImage && o.Image == nil:
		return "image"
	case o.Type == TypeSendFile && o.File == nil:
		return "file"
	case o.Type == TypeSendAudio && o.Audio == nil:
		return "audio"
	}
	return ""
}

// stringIn is the string that raw is, or none: a host of 1.0 may use a name of
// 1.1 for something else.
func stringIn(raw json.RawMessage) (s string) {
	if len(raw) > 0 && raw[0] == '"' {
		_ = json.Unmarshal(raw, &s) // valid, so it can't fail
	}
	return s
}

// decodeInto reads the fields of protocol 1.1 from a frame that has them.
func decodeInto(fields any, frame []byte) error {
	if err := json.Unmarshal(frame, fields); err != nil {
		return fmt.Errorf("decode frame of the host: %w", err)
	}
	return nil
}
