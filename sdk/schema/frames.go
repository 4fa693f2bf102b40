package schema

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// The frames as docs/protocol.md has them. Package wire reads and writes them
// without these structs, for speed; the tests hold the two together.

// toHost are the frames of an adapter, by type.
var toHost = map[string]any{
	"register": struct {
		Token        string                     `json:"token,omitempty"`
		Platform     string                     `json:"platform,omitempty"`
		Capabilities []string                   `json:"capabilities,omitempty"`
		Metadata     map[string]json.RawMessage `json:"metadata,omitempty"`
	}{},
	"message": struct {
		author
		Text string `json:"text"`
	}{},
	"card_action": struct {
		author
		Action string `json:"action"`
	}{},
	"ping": struct{}{},
}

type author struct {
	SessionKey     string          `json:"session_key,omitempty"`
	ConversationID string          `json:"conversation_id,omitempty"`
	UserID         string          `json:"user_id,omitempty"`
	UserName       string          `json:"user_name,omitempty"`
	ReplyCtx       json.RawMessage `json:"reply_ctx,omitempty"`
	MessageID      string          `json:"message_id,omitempty"`
}

// toAdapter are the frames of the host, by type.
var toAdapter = map[string]any{
	"register_ack": struct {
		OK    bool   `json:"ok"`
		Error string `json:"error,omitempty"`
	}{},
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
}

// refs are fields whose schema is another file's.
var refs = map[string]any{
	"parts": map[string]any{"type": "array", "items": map[string]any{"$ref": "message.json#/$defs/part"}},
}
