package schema

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// The frames of agents that dial in, as docs/agents.md has them.

// fromAgent are the frames of an agent, by type.
var fromAgent = map[string]any{
	"hello": struct {
		Key      string `json:"key,omitempty" maxLength:"4096"`
		Agent    string `json:"agent,omitempty" maxLength:"4096"`
		Protocol string `json:"protocol,omitempty" maxLength:"4096"`
		Resume   string `json:"resume,omitempty" maxLength:"4096"`
	}{},
	"message":    said{},
	"stream":     said{},
	"stream_end": said{},
	"typing": struct {
		place
		On bool `json:"on,omitempty"`
	}{},
	"card": struct {
		said
		Card wire.Card `json:"card"`
	}{},
	"buttons": struct {
		said
		Buttons [][]wire.Button `json:"buttons" minItems:"1"`
	}{},
	"update": struct {
		said
		Update agentwire.Earlier `json:"update"`
	}{},
	"transfer": struct {
		said
		Agent  string `json:"agent" minLength:"1" maxLength:"4096"`
		Reason string `json:"reason,omitempty" maxLength:"4096"`
	}{},
	"turn_end": struct {
		TurnID string `json:"turn_id" minLength:"1" maxLength:"4096"`
		Error  string `json:"error,omitempty"`
	}{},
	"message_ack": struct {
		TurnID string `json:"turn_id" minLength:"1" maxLength:"4096"`
	}{},
	"ping": struct{}{},
	"pong": struct{}{},
}

type place struct {
	TurnID         string `json:"turn_id,omitempty" maxLength:"4096"`
	Channel        string `json:"channel,omitempty" maxLength:"4096"`
	ConversationID string `json:"conversation_id,omitempty" maxLength:"4096"`
	MessageID      string `json:"message_id,omitempty" maxLength:"4096"`
	ReplyTo        string `json:"reply_to,omitempty" maxLength:"4096"`
}

type said struct {
	place
	Text     string                     `json:"text,omitempty"`
	Parts    []json.RawMessage          `json:"parts,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	More     bool                       `json:"more,omitempty"`
}

// toAgent are the frames of the host, by type.
var toAgent = map[string]any{
	"hello_ack": agentwire.HelloAck{},
	"turn": struct {
		TurnID         string          `json:"turn_id"`
		Repeated       bool            `json:"repeated,omitempty"`
		Channel        string          `json:"channel"`
		ConversationID string          `json:"conversation_id"`
		UserID         string          `json:"user_id,omitempty"`
		UserName       string          `json:"user_name,omitempty"`
		Message        json.RawMessage `json:"message"`
		Capabilities   []string        `json:"capabilities"`
		HistoryCursor  string          `json:"history_cursor"`
	}{},
	"cancel":      agentwire.Cancel{},
	"message_ack": agentwire.Ack{},
	"ping":        struct{}{},
	"pong":        struct{}{},
	"error":       toAdapter["error"],
}

// agentRules are what the structs can't say.
var agentRules = map[string]string{
	"message": placed + `, ` + speaking, "stream": placed + `, ` + speaking, "stream_end": placed + `, ` + speaking,
	"update": placed + `, ` + speaking + `, {"properties": {"update": ` + oneOfTwo("message_id", "preview_handle") + `}}`,
	"typing": placed, "buttons": placed, "transfer": placed,
	"card": placed + `, {"properties": {"card": {"anyOf": [{"required": ["header"]}, {"properties": {"elements": {"type": "array", "minItems": 1}}}]}}}`,
}

var placed = `{"anyOf": [` + filled("turn_id") + `, {"allOf": [` + filled("channel") + `, {"required": ["conversation_id"], "properties": {"conversation_id": {"type": "string"}}}]}]}`

const speaking = `{"anyOf": [` + saysText + `, ` + saysParts + `]}`
