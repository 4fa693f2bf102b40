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
		Key      string `json:"key,omitempty"`
		Agent    string `json:"agent,omitempty"`
		Protocol string `json:"protocol,omitempty"`
		Resume   string `json:"resume,omitempty"`
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
		Buttons [][]wire.Button `json:"buttons"`
	}{},
	"update": struct {
		said
		Update agentwire.Earlier `json:"update"`
	}{},
	"transfer": struct {
		said
		Agent  string `json:"agent"`
		Reason string `json:"reason,omitempty"`
	}{},
	"turn_end": struct {
		TurnID string `json:"turn_id"`
		Error  string `json:"error,omitempty"`
	}{},
	"message_ack": struct {
		TurnID string `json:"turn_id"`
	}{},
	"ping": struct{}{},
	"pong": struct{}{},
}

type place struct {
	TurnID         string `json:"turn_id,omitempty"`
	Channel        string `json:"channel,omitempty"`
	ConversationID string `json:"conversation_id,omitempty"`
	MessageID      string `json:"message_id,omitempty"`
	ReplyTo        string `json:"reply_to,omitempty"`
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
	"message": placed + `, ` + speaking, "stream": placed + `, ` + speaking, "stream_end": placed + `, ` + speaking, "update": placed + `, ` + speaking,
	"typing": placed, "card": placed, "buttons": placed, "transfer": placed,
}

const (
	placed   = `{"anyOf": [{"required": ["turn_id"]}, {"required": ["channel", "conversation_id"]}]}`
	speaking = `{"anyOf": [{"required": ["text"]}, {"required": ["parts"]}]}`
)
