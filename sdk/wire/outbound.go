package wire

import "encoding/json"

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

	// Protocol 1.1.

	// MessageID is the host's id of the message, or in send_reaction the
	// platform's id of the one to react to. "" is left out of frames of 1.0.
	MessageID string
	Parts     json.RawMessage // send_parts, stream, stream_end: an array
	Audio     *Audio          // send_audio
	UI        json.RawMessage // send_form: the ui part
	Emoji     string          // send_reaction
	Remove    bool            // send_reaction: take it back
	Resumed   bool            // the conversation goes on with this one, after one that the adapter refused for now
	// Unsolicited: it answers no message, and goes where the newest came from, whose
	// reply_ctx it has.
	Unsolicited bool
	Draft       int64 // stream: counts up with each frame of one answer, from 1; it needs no acknowledgement

	// Plain writes element keys of cards in lower case only, for an adapter of
	// 1.1. It is no field of the frame: DecodeOutbound leaves it false.
	Plain bool
}

// Append appends the frame with its routing as one JSON object.
func (f *Frame) Append(dst []byte, r Routing) []byte {
	dst = open(dst, f.Type)
	dst = field(dst, "session_key", r.SessionKey)
	dst = field(dst, "conversation_id", r.ConversationID)
	dst = rawField(dst, "reply_ctx", r.ReplyCtx)
	if f.MessageID != "" && f.Type != TypeStartTyping && f.Type != TypeStopTyping {
		dst = field(dst, "message_id", f.MessageID)
	}
	dst = boolIf(dst, "resumed", f.Resumed)
	dst = boolIf(dst, "unsolicited", f.Unsolicited)
	switch f.Type {
	case TypeSend:
		dst = field(dst, "text", f.Text)
	case TypeSendCard:
		dst = f.Card.append(key(dst, "card"), !f.Plain)
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
	default:
		dst = f.appendLater(dst)
	}
	return append(dst, '}')
}

// Overhead is the size in bytes of a content frame with this routing, the
// longest type and an empty text: what is left of MaxFrame is room for content.
// A message_id takes IDOverhead of it.
func (r Routing) Overhead() int {
	ctx := len(r.ReplyCtx)
	if ctx == 0 {
		ctx = len("null")
	}
	return len(`{"type":"update_message","session_key":,"conversation_id":,"reply_ctx":,"text":""}`) +
		StringLen(r.SessionKey) + StringLen(r.ConversationID) + ctx
}

// IDOverhead is the size in bytes that a message_id adds to a content frame.
func IDOverhead(id string) int {
	if id == "" {
		return 0
	}
	return len(`"message_id":,`) + StringLen(id)
}

// ResumedOverhead is the size in bytes that Resumed adds to a frame.
const ResumedOverhead = len(`"resumed":true,`)

// UnsolicitedOverhead is the size in bytes that Unsolicited adds to a frame.
const UnsolicitedOverhead = len(`"unsolicited":true,`)

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
