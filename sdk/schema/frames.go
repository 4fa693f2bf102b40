package schema

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// The frames as docs/protocol.md has them. Package wire reads and writes them
// without these structs, for speed; the tests hold the two together.

// toHost are the frames of an adapter, by type; those of protocol 1.1 and what
// needs a capability included.
var toHost = map[string]any{
	"register": struct {
		Token        string                     `json:"token,omitempty"`
		Platform     string                     `json:"platform,omitempty" maxLength:"4096"`
		Capabilities []string                   `json:"capabilities,omitempty"`
		Metadata     map[string]json.RawMessage `json:"metadata,omitempty"`
		Protocol     string                     `json:"protocol,omitempty"`
		Profile      wire.Profile               `json:"profile,omitempty"`
	}{},
	"message": struct {
		author
		Text        string            `json:"text,omitempty"`
		Parts       []json.RawMessage `json:"parts,omitempty"`
		Attachments []wire.Attachment `json:"attachments,omitempty"`
	}{},
	"card_action": struct {
		author
		Action string `json:"action"`
	}{},
	"ping": struct {
		Cursor string `json:"cursor,omitempty" maxLength:"4096"`
	}{},
	"message_ack": struct {
		MessageID     string `json:"message_id" minLength:"1" maxLength:"4096"`
		OK            bool   `json:"ok"`
		Error         string `json:"error,omitempty"`
		Retryable     bool   `json:"retryable,omitempty"`
		RetryAfterMS  int64  `json:"retry_after_ms,omitempty" minimum:"0" maximum:"3600000"`
		Ambiguous     bool   `json:"ambiguous,omitempty"`
		PreviewHandle string `json:"preview_handle,omitempty" maxLength:"4096"`
		Note          string `json:"note,omitempty" maxLength:"4096"`
		Cursor        string `json:"cursor,omitempty" maxLength:"4096"`
	}{},
	"message_edit": struct {
		author
		Text string `json:"text"`
	}{},
	"message_delete": author{},
	"reaction": struct {
		author
		Emoji  string `json:"emoji" minLength:"1" maxLength:"4096"`
		Remove bool   `json:"remove,omitempty"`
	}{},
	"form_submit": struct {
		author
		UIID   string                     `json:"ui_id" minLength:"1" maxLength:"4096"`
		Values map[string]json.RawMessage `json:"values"`
	}{},
	"platform_status": struct {
		wire.PlatformStatus
		Cursor string `json:"cursor,omitempty" maxLength:"4096"`
	}{},
	"upload": struct {
		MessageID string `json:"message_id,omitempty" maxLength:"4096"`
		Name      string `json:"name" minLength:"1" maxLength:"4096"`
		MimeType  string `json:"mime_type" minLength:"1" maxLength:"4096"`
		SizeBytes int64  `json:"size_bytes" minimum:"0" maximum:"9007199254740991"`
		Cursor    string `json:"cursor,omitempty" maxLength:"4096"`
	}{},
}

type author struct {
	SessionKey     string          `json:"session_key,omitempty" maxLength:"4096"`
	ConversationID string          `json:"conversation_id,omitempty" maxLength:"4096"`
	UserID         string          `json:"user_id,omitempty" maxLength:"4096"`
	UserName       string          `json:"user_name,omitempty" maxLength:"4096"`
	ReplyCtx       json.RawMessage `json:"reply_ctx,omitempty"`
	MessageID      string          `json:"message_id,omitempty" maxLength:"4096"`
	Cursor         string          `json:"cursor,omitempty" maxLength:"4096"`
}

// toAdapter are the frames of the host, by type.
var toAdapter = map[string]any{
	"register_ack": wire.RegisterAck{},
	"message_ack":  wire.MessageAck{},
	"upload_ack":   wire.UploadAck{},
	"send": struct {
		routing
		Text string `json:"text"`
	}{},
	"send_card": struct {
		routing
		Card wire.Card `json:"card"`
	}{},
	"send_buttons": struct {
		routing
		Text    string          `json:"text"`
		Buttons [][]wire.Button `json:"buttons"`
	}{},
	"update_message": struct {
		routing
		PreviewHandle string `json:"preview_handle"`
		Text          string `json:"text"`
	}{},
	"send_image": struct {
		routing
		Image wire.Image `json:"image"`
	}{},
	"send_file": struct {
		routing
		File wire.File `json:"file"`
	}{},
	"start_typing": struct{ routing }{},
	"stop_typing":  struct{ routing }{},
	"pong":         struct{}{},
	"send_parts": struct {
		routing
		content
	}{},
	"stream": struct {
		routing
		content
		Draft int64 `json:"draft,omitempty"`
	}{},
	"stream_end": struct {
		routing
		content
	}{},
	"delete_message": struct {
		routing
		PreviewHandle string `json:"preview_handle"`
	}{},
	"send_reaction": struct {
		routing
		Emoji  string `json:"emoji"`
		Remove bool   `json:"remove,omitempty"`
	}{},
	"send_audio": struct {
		routing
		Audio wire.Audio `json:"audio"`
	}{},
	"send_form": struct {
		routing
		UI json.RawMessage `json:"ui"`
	}{},
	"error": struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Ref     string `json:"ref,omitempty"`
	}{},
}

type routing struct {
	SessionKey     string          `json:"session_key"`
	ConversationID string          `json:"conversation_id"`
	ReplyCtx       json.RawMessage `json:"reply_ctx"`
	MessageID      string          `json:"message_id,omitempty" maxLength:"4096"` // protocol 1.1
	Resumed        bool            `json:"resumed,omitempty"`                     // protocol 1.1
	Unsolicited    bool            `json:"unsolicited,omitempty"`                 // protocol 1.1
}

// content is that of a message in parts.
type content struct {
	Text  string            `json:"text"`
	Parts []json.RawMessage `json:"parts"`
}

// refs are fields whose schema is another file's.
var refs = map[string]any{
	"parts": map[string]any{"type": "array", "items": map[string]any{"$ref": "message.json#/$defs/part"}},
	"ui":    map[string]any{"$ref": "message.json#/$defs/ui"},

	"message": map[string]any{"$ref": "message.json#/$defs/message"},
}

// rules are what a frame's struct can't say.
var rules = map[string]string{
	"message_edit":   concerned,
	"message_delete": concerned,
	"reaction":       concerned,
	"message": `{"anyOf": [` + saysText + `, ` + saysParts + `, {"required": ["attachments"], "properties": {"attachments": {"type": "array", "minItems": 1}}}]},
		{"properties": {"attachments": {"items": ` + oneOfTwo("attachment_id", "url") + `}}}`,
}

const (
	// concerned is a rule of frames that are about an earlier message.
	concerned = `{"required": ["message_id"], "properties": {"message_id": {"type": "string", "minLength": 1}}}`

	saysText  = `{"required": ["text"], "properties": {"text": {"type": "string"}}}`
	saysParts = `{"required": ["parts"], "properties": {"parts": {"type": "array", "minItems": 1}}}`
)

// oneOfTwo is a rule of objects that have at least one of two texts.
func oneOfTwo(a, b string) string { return `{"anyOf": [` + filled(a) + `, ` + filled(b) + `]}` }

// filled is a rule of objects that have a text which is not empty.
func filled(name string) string {
	return `{"required": ["` + name + `"], "properties": {"` + name + `": {"type": "string", "minLength": 1}}}`
}
