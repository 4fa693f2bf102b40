package wire

import (
	"encoding/json"
	"fmt"
)

// Image is a picture by address. Path is a file of the host's machine.
type Image struct {
	Path    string `json:"path,omitempty"`
	URL     string `json:"url,omitempty"`
	Caption string `json:"caption,omitempty"`
}

// File is a document by address.
type File struct {
	Path     string `json:"path,omitempty"`
	URL      string `json:"url,omitempty"`
	Filename string `json:"filename,omitempty"`
	Caption  string `json:"caption,omitempty"`
}

// Frame is one content or typing frame of the host, without its routing. Which
// fields count follows from Type.
type Frame struct {
	Type          Type
	Text          string
	Card          *Card
	Buttons       [][]Button
	PreviewHandle string
	Image         *Image
	File          *File
}

// Append appends the frame with its routing as one JSON object.
func (f *Frame) Append(dst []byte, r Routing) []byte {
	dst = open(dst, f.Type)
	dst = field(dst, "session_key", r.SessionKey)
	dst = field(dst, "conversation_id", r.ConversationID)
	dst = rawField(dst, "reply_ctx", r.ReplyCtx)
	switch f.Type {
	case TypeSend:
		dst = field(dst, "text", f.Text)
	case TypeSendCard:
		dst = f.Card.Append(key(dst, "card"))
	case TypeSendButtons:
		dst = field(dst, "text", f.Text)
		dst = AppendRows(key(dst, "buttons"), f.Buttons)
	case TypeUpdateMessage:
		dst = field(dst, "preview_handle", f.PreviewHandle)
		dst = field(dst, "text", f.Text)
	case TypeSendImage:
		dst = append(key(dst, "image"), '{')
		dst = fieldIf(dst, "path", f.Image.Path)
		dst = fieldIf(dst, "url", f.Image.URL)
		dst = fieldIf(dst, "caption", f.Image.Caption)
		dst = append(dst, '}')
	case TypeSendFile:
		dst = append(key(dst, "file"), '{')
		dst = fieldIf(dst, "path", f.File.Path)
		dst = fieldIf(dst, "url", f.File.URL)
		dst = fieldIf(dst, "filename", f.File.Filename)
		dst = fieldIf(dst, "caption", f.File.Caption)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// Overhead is the size in bytes of a content frame with this routing, the
// longest type and an empty text: what is left of MaxFrame is room for content.
func (r Routing) Overhead() int {
	ctx := len(r.ReplyCtx)
	if ctx == 0 {
		ctx = len("null")
	}
	return len(`{"type":"update_message","session_key":,"conversation_id":,"reply_ctx":,"text":""}`) +
		StringLen(r.SessionKey) + StringLen(r.ConversationID) + ctx
}

// RegisterAck answers register.
type RegisterAck struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

// Append appends the acknowledgement as one JSON object.
func (a RegisterAck) Append(dst []byte) []byte {
	dst = open(dst, TypeRegisterAck)
	if a.OK {
		return append(dst, `,"ok":true}`...)
	}
	dst = append(dst, `,"ok":false`...)
	return append(field(dst, "error", a.Error), '}')
}

// Append appends the error as an error frame.
func (e *Error) Append(dst []byte) []byte {
	dst = open(dst, TypeError)
	dst = field(dst, "code", string(e.Code))
	dst = field(dst, "message", e.Message)
	dst = fieldIf(dst, "ref", e.Ref)
	return append(dst, '}')
}

// AppendPong appends the answer to a ping frame.
func AppendPong(dst []byte) []byte { return append(open(dst, TypePong), '}') }

// Outbound is any frame of the host as an adapter reads it.
type Outbound struct {
	Frame
	Routing
	Ack   *RegisterAck // register_ack
	Error *Error       // error
}

// DecodeOutbound reads a frame of the host. Unknown fields are ignored; an
// unknown type is not an error, so that an older adapter survives a newer host.
func DecodeOutbound(frame []byte) (*Outbound, error) {
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
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		return nil, fmt.Errorf("decode frame of the host: %w", err)
	}
	out := &Outbound{
		Frame:   Frame{f.Type, f.Text, f.Card, f.Buttons, f.PreviewHandle, f.Image, f.File},
		Routing: Routing{SessionKey: f.SessionKey, ConversationID: f.ConversationID},
	}
	if string(f.ReplyCtx) != "null" {
		out.ReplyCtx = Raw(f.ReplyCtx)
	}
	switch f.Type {
	case TypeRegisterAck:
		out.Ack = &RegisterAck{OK: f.OK, Error: f.Error}
	case TypeError:
		out.Error = &Error{Code: f.Code, Message: f.Message, Ref: f.Ref}
	case TypeSendCard:
		if f.Card == nil {
			return nil, errorf(CodeMissingField, "card: absent, expected an object")
		}
	case TypeSendImage:
		if f.Image == nil {
			return nil, errorf(CodeMissingField, "image: absent, expected an object")
		}
	case TypeSendFile:
		if f.File == nil {
			return nil, errorf(CodeMissingField, "file: absent, expected an object")
		}
	}
	return out, nil
}
