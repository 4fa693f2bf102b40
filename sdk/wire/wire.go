// Package wire is the one definition of the Bridge Protocol: its frames, cards,
// capability names, error codes and close codes, with their JSON codec. Host and
// SDK share it. It needs the standard library only.
//
// Evolution rules: a frame or field of protocol 1.0 never changes; new fields
// are optional; new frame types need a capability that both sides declared.
package wire

import "time"

// Path is where the host upgrades an adapter's WebSocket.
const Path = "/api/v1/channels/bridge/ws"

// MaxFrame is the largest frame in bytes, in either direction (protocol 1.0, 256 KiB).
const MaxFrame = 262_144

// MaxField is the largest routing or author field in bytes: session_key,
// conversation_id, user_id, user_name, message_id and platform; under protocol
// 1.1 also cursor, emoji, ui_id, preview_handle, and names and types of files.
const MaxField = 4096

// MostRetryAfter is the longest retry_after_ms of a message_ack.
const MostRetryAfter = time.Hour

// Timings of protocol 1.0.
const (
	RegisterTimeout = 10 * time.Second // connection → first frame
	PingInterval    = 54 * time.Second // host → adapter WebSocket ping
	SilenceTimeout  = 60 * time.Second // nothing heard for this long: the peer is dropped
)

// Type is a frame's type tag.
type Type string

// Adapter → host.
const (
	TypeRegister   Type = "register"
	TypeMessage    Type = "message"
	TypeCardAction Type = "card_action"
	TypePing       Type = "ping"
)

// Adapter → host, protocol 1.1.
const (
	TypeMessageAck    Type = "message_ack" // in both directions
	TypeMessageEdit   Type = "message_edit"
	TypeMessageDelete Type = "message_delete"
	TypeReaction      Type = "reaction"
	TypeFormSubmit    Type = "form_submit"
	TypeUpload        Type = "upload"

	TypePlatformStatus Type = "platform_status"
)

// Host → adapter.
const (
	TypeRegisterAck   Type = "register_ack"
	TypeSend          Type = "send"
	TypeSendCard      Type = "send_card"
	TypeSendButtons   Type = "send_buttons"
	TypeUpdateMessage Type = "update_message"
	TypeSendImage     Type = "send_image"
	TypeSendFile      Type = "send_file"
	TypeStartTyping   Type = "start_typing"
	TypeStopTyping    Type = "stop_typing"
	TypePong          Type = "pong"
	TypeError         Type = "error"
)

// Host → adapter, protocol 1.1.
const (
	TypeSendParts     Type = "send_parts"
	TypeStream        Type = "stream"
	TypeStreamEnd     Type = "stream_end"
	TypeDeleteMessage Type = "delete_message"
	TypeSendReaction  Type = "send_reaction"
	TypeSendAudio     Type = "send_audio"
	TypeSendForm      Type = "send_form"
	TypeUploadAck     Type = "upload_ack"
)

// Raw is one JSON value kept byte for byte, such as reply_ctx. "" means the
// peer never sent it; it is written as null.
type Raw string

// Routing says where in the platform a frame belongs. An answer carries the
// routing of the message that it answers.
type Routing struct {
	SessionKey     string
	ConversationID string
	ReplyCtx       Raw
}
