package agentwire

import (
	"encoding/json"
	"fmt"
	"strconv"

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

// readAck reads an acknowledgement; nil = the library is to say what is wrong with it.
func readAck(o wire.Object) *Ack {
	a := new(Ack)
	for _, f := range []struct {
		name string
		into *string
	}{{"message_id", &a.MessageID}, {"id", &a.ID}, {"error", &a.Error}} {
		if o.Text(f.into, f.name, wire.MaxFrame) != nil {
			return nil
		}
	}
	if o.Bool(&a.OK, "ok") != nil || o.Bool(&a.Retryable, "retryable") != nil {
		return nil
	}
	return a
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

// readTurn reads an ordinary turn, as almost all are, in a fraction of the library's
// time; nil = the library is to read it, or to say what is wrong with it.
func readTurn(o wire.Object) *Turn {
	if !o.Only("type", "turn_id", "repeated", "channel", "conversation_id", "user_id", "user_name", "message", "capabilities", "history_cursor") {
		return nil
	}
	m, err := o.Inner("message")
	if err != nil || !m.Only("id", "role", "status", "createdAt", "sessionId", "turnIndex", "responseId", "parts") {
		return nil
	}
	t := new(Turn)
	e := &t.Message
	for _, f := range []struct {
		of   wire.Object
		name string
		into *string
	}{
		{o, "turn_id", &t.TurnID}, {o, "channel", &t.Channel}, {o, "conversation_id", &t.ConversationID}, {o, "user_id", &t.UserID},
		{o, "user_name", &t.UserName}, {o, "history_cursor", &t.HistoryCursor},
		{m, "id", &e.ID}, {m, "role", (*string)(&e.Role)}, {m, "status", (*string)(&e.Status)}, {m, "createdAt", &e.CreatedAt},
		{m, "sessionId", &e.SessionID}, {m, "responseId", &e.ResponseID},
	} {
		if f.of.Text(f.into, f.name, wire.MaxFrame) != nil {
			return nil
		}
	}
	if o.Bool(&t.Repeated, "repeated") != nil || o.Strings(&t.Capabilities, "capabilities") != nil || m.Int(&e.TurnIndex, "turnIndex") != nil {
		return nil
	}
	parts, failed := message.ParseParts(m.Raw("parts"))
	if failed != nil {
		return nil
	}
	e.Parts = parts
	return t
}

// Append appends the frame as one JSON object.
func (f *FromHost) Append(dst []byte) []byte {
	switch {
	case f.Turn != nil:
		return f.Turn.append(dst)
	case f.Ack != nil:
		return f.Ack.append(dst)
	}
	head := append([]byte(`{"type":`), bare(f.Type)...)
	var rest any
	switch {
	case f.HelloAck != nil:
		rest = f.HelloAck
	case f.Cancel != nil:
		rest = f.Cancel
	case f.Error != nil:
		return f.Error.Append(dst)
	default:
		return append(append(dst, head...), '}')
	}
	fields := encode(rest) // at least one is always there
	return append(append(append(dst, head...), ','), fields[1:]...)
}

// append writes what the library would, in a fraction of its time: these two are most
// of what a host says.
func (t *Turn) append(dst []byte) []byte {
	dst = wire.AppendString(append(dst, `{"type":"turn","turn_id":`...), t.TurnID)
	if t.Repeated {
		dst = append(dst, `,"repeated":true`...)
	}
	dst = wire.AppendString(append(dst, `,"channel":`...), t.Channel)
	dst = wire.AppendString(append(dst, `,"conversation_id":`...), t.ConversationID)
	dst = appendText(dst, `,"user_id":`, t.UserID)
	dst = appendText(dst, `,"user_name":`, t.UserName)
	dst = appendEnvelope(append(dst, `,"message":`...), &t.Message)
	dst = append(dst, `,"capabilities":`...)
	if t.Capabilities == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, '[')
		for i, c := range t.Capabilities {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = wire.AppendString(dst, c)
		}
		dst = append(dst, ']')
	}
	dst = wire.AppendString(append(dst, `,"history_cursor":`...), t.HistoryCursor)
	return append(dst, '}')
}

func appendEnvelope(dst []byte, e *message.Envelope) []byte {
	dst = wire.AppendString(append(dst, `{"id":`...), e.ID)
	dst = wire.AppendString(append(dst, `,"role":`...), string(e.Role))
	dst = wire.AppendString(append(dst, `,"status":`...), string(e.Status))
	dst = wire.AppendString(append(dst, `,"createdAt":`...), e.CreatedAt)
	dst = wire.AppendString(append(dst, `,"sessionId":`...), e.SessionID)
	dst = strconv.AppendInt(append(dst, `,"turnIndex":`...), e.TurnIndex, 10)
	dst = appendText(dst, `,"responseId":`, e.ResponseID)
	switch dst = append(dst, `,"parts":`...); {
	case len(e.Parts) > 0:
		dst = message.AppendParts(dst, e.Parts)
	case e.Parts == nil:
		dst = append(dst, "null"...)
	default:
		dst = append(dst, "[]"...)
	}
	if len(e.Metadata) > 0 {
		dst = append(append(dst, `,"metadata":`...), encode(e.Metadata)...)
	}
	if len(e.RawResponse) > 0 {
		dst = append(append(dst, `,"rawResponse":`...), encode(e.RawResponse)...)
	}
	return append(dst, '}')
}

func (a *Ack) append(dst []byte) []byte {
	dst = wire.AppendString(append(dst, `{"type":"message_ack","message_id":`...), a.MessageID)
	dst = strconv.AppendBool(append(dst, `,"ok":`...), a.OK)
	dst = appendText(dst, `,"id":`, a.ID)
	dst = appendText(dst, `,"error":`, a.Error)
	if a.Retryable {
		dst = append(dst, `,"retryable":true`...)
	}
	return append(dst, '}')
}

// DecodeFromHost reads one frame of the host. Unknown types and fields are no
// error.
func DecodeFromHost(frame []byte) (*FromHost, error) {
	var f FromHost
	o, werr := wire.ReadObject(frame)
	if werr == nil {
		werr = o.Text((*string)(&f.Type), "type", wire.MaxField)
	}
	if werr != nil {
		return nil, fmt.Errorf("decode frame of the host: %w", werr)
	}
	switch f.Type {
	case TypeMessageAck:
		f.Ack = readAck(o)
	case TypeTurn:
		f.Turn = readTurn(o)
	}
	if f.Ack != nil || f.Turn != nil {
		return &f, nil
	}
	return decodeAny(frame, f)
}

// decodeAny reads a frame of a known type by the library.
func decodeAny(frame []byte, f FromHost) (*FromHost, error) {
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
