package agentwire

import (
	"encoding/json"
	"fmt"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// FromHost is one frame of the host. Of the pointers the one of its type is set;
// ping, pong and types that this package does not know have none.
type FromHost struct {
	Type     Type
	HelloAck *HelloAck
	Turn     *Turn
	Cancel   *Cancel
	Ack      *Ack
	Error    *wire.Error
}

// HelloAck answers hello.
type HelloAck struct {
	OK       bool         `json:"ok"`
	Error    string       `json:"error,omitempty"` // not OK; what follows is there only if OK
	Protocol string       `json:"protocol,omitempty"`
	Agent    string       `json:"agent,omitempty"` // the name behind the key
	Limits   *wire.Limits `json:"limits,omitempty"`
	Resume   *Resumed     `json:"resume,omitempty"` // only if hello had resume
}

// Resumed says how things go on after an earlier connection.
type Resumed struct {
	From string `json:"from,omitempty"` // turn_id of the first turn that is handed over now; "" = none waits
	Gap  string `json:"gap,omitempty"`  // why turns may have ended that the agent does not know of; "" = none has
}

// Turn is one message for the agent to answer.
type Turn struct {
	TurnID         string           `json:"turn_id"` // the message's id
	Repeated       bool             `json:"repeated,omitempty"`
	Channel        string           `json:"channel"` // name
	ConversationID string           `json:"conversation_id"`
	UserID         string           `json:"user_id,omitempty"`
	UserName       string           `json:"user_name,omitempty"`
	Message        message.Envelope `json:"message"`
	Capabilities   []string         `json:"capabilities"` // of the far end, when the turn began
	HistoryCursor  string           `json:"history_cursor"`
}

// Text is what the user said; of a pressed button its value.
func (t *Turn) Text() string { return message.RollUp(t.Message.Parts) }

// Cancel ends a turn from the host's side: nothing that belongs to it is sent any
// more.
type Cancel struct {
	TurnID string `json:"turn_id"`
	Reason string `json:"reason"` // stopped: by the user; draining: the host stops, and hands it over again; …
}

// Reasons of cancel.
const (
	CancelStopped  = "stopped"  // by the user
	CancelDraining = "draining" // the host stops; it hands the turn over again when it is back
	CancelEnded    = "ended"    // by the host, such as after its time
)

// Ack is the host's answer to a frame with a message_id: OK after the commit.
type Ack struct {
	MessageID string `json:"message_id"` // the agent's
	OK        bool   `json:"ok"`
	ID        string `json:"id,omitempty"`        // OK: the host's id, if it is a message
	Error     string `json:"error,omitempty"`     // not OK
	Retryable bool   `json:"retryable,omitempty"` // not OK: worth sending again
}

// Append appends the frame as one JSON object.
func (f *FromHost) Append(dst []byte) []byte {
	head := append([]byte(`{"type":`), bare(f.Type)...)
	var rest any
	switch {
	case f.HelloAck != nil:
		rest = f.HelloAck
	case f.Turn != nil:
		rest = f.Turn
	case f.Cancel != nil:
		rest = f.Cancel
	case f.Ack != nil:
		rest = f.Ack
	case f.Error != nil:
		return f.Error.Append(dst)
	default:
		return append(append(dst, head...), '}')
	}
	fields := encode(rest) // at least one is always there
	return append(append(append(dst, head...), ','), fields[1:]...)
}

// DecodeFromHost reads one frame of the host. Unknown types and fields are no
// error.
func DecodeFromHost(frame []byte) (*FromHost, error) {
	var f FromHost
	var head struct {
		Type Type `json:"type"`
	}
	if err := json.Unmarshal(frame, &head); err != nil {
		return nil, fmt.Errorf("decode frame of the host: %w", err)
	}
	f.Type = head.Type
	var into any
	switch f.Type {
	case TypeHelloAck:
		f.HelloAck = new(HelloAck)
		into = f.HelloAck
	case TypeTurn:
		f.Turn = new(Turn)
		into = f.Turn
	case TypeCancel:
		f.Cancel = new(Cancel)
		into = f.Cancel
	case TypeMessageAck:
		f.Ack = new(Ack)
		into = f.Ack
	case TypeError:
		f.Error = new(wire.Error)
		into = f.Error
	default:
		return &f, nil
	}
	if err := json.Unmarshal(frame, into); err != nil {
		return nil, fmt.Errorf("decode frame of the host: %w", err)
	}
	return &f, nil
}
