package agentwire

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// FromAgent is one frame of an agent. Which fields count follows from Type; their
// order is that of the canonical form.
type FromAgent struct {
	Type Type `json:"type"`

	// hello
	Key      string `json:"key,omitempty"`      // or in the request's header
	Agent    string `json:"agent,omitempty"`    // whose key it is meant to be; transfer: who goes on
	Protocol string `json:"protocol,omitempty"` // asked for; "" = the newest
	Resume   string `json:"resume,omitempty"`   // turn_id of the newest turn that it has; "" = it starts anew

	// Where a frame belongs: to a turn, or else to a conversation.
	TurnID         string  `json:"turn_id,omitempty"`
	Channel        string  `json:"channel,omitempty"`         // name or id
	ConversationID *string `json:"conversation_id,omitempty"` // nil = absent; "" is one too

	MessageID string `json:"message_id,omitempty"` // the agent's own id of what it sends; "" = none
	ReplyTo   string `json:"reply_to,omitempty"`   // message that is answered; "" = the turn's

	// What is said.
	Text     *string         `json:"text,omitempty"`  // nil = absent; of stream: all so far
	Parts    json.RawMessage `json:"parts,omitempty"` // array of objects that have a type
	Metadata message.Meta    `json:"metadata,omitempty"`
	Card     *wire.Card      `json:"card,omitempty"`
	Buttons  [][]wire.Button `json:"buttons,omitempty"`
	Update   *Earlier        `json:"update,omitempty"`
	On       *bool           `json:"on,omitempty"`     // typing; nil = true
	Reason   string          `json:"reason,omitempty"` // transfer
	More     bool            `json:"more,omitempty"`   // it is not the turn's last

	Error string `json:"error,omitempty"` // turn_end: why there is no answer
}

// Earlier is the message that an update changes: one of both is set.
type Earlier struct {
	MessageID     string `json:"message_id,omitempty"` // the host's id, or the agent's own
	PreviewHandle string `json:"preview_handle,omitempty"`
}

// Append appends the frame as one JSON object.
func (f *FromAgent) Append(dst []byte) []byte {
	if !f.plain() {
		return append(dst, encode(f)...)
	}
	dst = wire.AppendString(append(dst, `{"type":`...), string(f.Type))
	dst = appendText(dst, `,"turn_id":`, f.TurnID)
	dst = appendText(dst, `,"channel":`, f.Channel)
	if f.ConversationID != nil {
		dst = wire.AppendString(append(dst, `,"conversation_id":`...), *f.ConversationID)
	}
	dst = appendText(dst, `,"message_id":`, f.MessageID)
	dst = appendText(dst, `,"reply_to":`, f.ReplyTo)
	if f.Text != nil {
		dst = wire.AppendString(append(dst, `,"text":`...), *f.Text)
	}
	if f.More {
		dst = append(dst, `,"more":true`...)
	}
	return append(appendText(dst, `,"error":`, f.Error), '}')
}

// plain reports a frame of texts alone, as most are: the library takes several times
// as long for them.
func (f *FromAgent) plain() bool {
	return f.Key == "" && f.Agent == "" && f.Protocol == "" && f.Resume == "" && len(f.Parts) == 0 && len(f.Metadata) == 0 &&
		f.Card == nil && len(f.Buttons) == 0 && f.Update == nil && f.On == nil && f.Reason == ""
}

// appendText appends a field, unless it is empty.
func appendText(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return wire.AppendString(append(dst, name...), value)
}

// Last reports whether the frame ends the turn that it belongs to.
func (f *FromAgent) Last() bool {
	switch f.Type {
	case TypeTurnEnd:
		return true
	case TypeMessage, TypeStreamEnd, TypeCard, TypeButtons, TypeTransfer:
		return !f.More
	}
	return false
}

// Lossy reports the frames that show how work goes on: they leave no message, and
// nobody acknowledges them.
func (f *FromAgent) Lossy() bool { return f.Type == TypeStream || f.Type == TypeTyping }

const expectedTypes = "hello, message, stream, stream_end, typing, card, buttons, update, transfer, turn_end, message_ack, ping or pong"

// DecodeFromAgent reads one frame of an agent, which must be valid UTF-8. A
// refusal is an *wire.Error whose Code is one of bad_json, not_object, too_deep,
// unknown_type, missing_field, wrong_type, too_large; its Ref is the frame's
// message_id where that could be read. Unknown fields are ignored.
func DecodeFromAgent(frame []byte) (*FromAgent, *wire.Error) {
	o, err := wire.ReadObject(frame)
	if err != nil {
		return nil, err
	}
	f := new(FromAgent)
	if err := f.read(o); err != nil {
		err.Ref = f.MessageID
		return nil, err
	}
	return f, nil
}

func (f *FromAgent) read(o wire.Object) *wire.Error {
	if err := o.Text(&f.MessageID, "message_id", wire.MaxField); err != nil { // first, so that a refusal can refer to it
		return err
	}
	if o.Absent("type") {
		return wire.Refuse(wire.CodeMissingField, "type: absent, expected %s", expectedTypes)
	}
	if err := o.Text((*string)(&f.Type), "type", wire.MaxFrame); err != nil {
		return err
	}
	switch f.Type {
	case TypePing, TypePong:
		return nil
	case TypeHello:
		return texts(o, &f.Key, "key", &f.Agent, "agent", &f.Protocol, "protocol", &f.Resume, "resume")
	case TypeMessageAck:
		return o.Filled(&f.TurnID, "turn_id", wire.MaxField)
	case TypeTurnEnd:
		if err := o.Filled(&f.TurnID, "turn_id", wire.MaxField); err != nil {
			return err
		}
		return o.Text(&f.Error, "error", wire.MaxFrame)
	case TypeMessage, TypeStream, TypeStreamEnd, TypeTyping, TypeCard, TypeButtons, TypeUpdate, TypeTransfer:
		if err := f.place(o); err != nil {
			return err
		}
		return f.content(o)
	}
	return wire.Refuse(wire.CodeUnknownType, "type: found %.64q, expected %s", string(f.Type), expectedTypes)
}

// texts reads strings, each with its name behind it.
func texts(o wire.Object, pairs ...any) *wire.Error {
	for i := 0; i < len(pairs); i += 2 {
		if err := o.Text(pairs[i].(*string), pairs[i+1].(string), wire.MaxField); err != nil { //nolint:gosec // G602: they are pairs
			return err
		}
	}
	return nil
}

// place reads where the frame belongs.
func (f *FromAgent) place(o wire.Object) *wire.Error {
	if err := texts(o, &f.TurnID, "turn_id", &f.Channel, "channel", &f.ReplyTo, "reply_to"); err != nil {
		return err
	}
	if !o.Absent("conversation_id") {
		f.ConversationID = new(string)
		if err := o.Text(f.ConversationID, "conversation_id", wire.MaxField); err != nil {
			return err
		}
	}
	switch {
	case f.TurnID != "":
		return nil
	case f.ConversationID == nil:
		return wire.Refuse(wire.CodeMissingField, "turn_id: absent, expected it, or channel and conversation_id")
	case f.Channel == "":
		return wire.Refuse(wire.CodeMissingField, "channel: absent, expected that of the conversation_id")
	}
	return nil
}

// content reads what the frame says.
func (f *FromAgent) content(o wire.Object) *wire.Error {
	if !o.Absent("text") {
		f.Text = new(string)
		if err := o.Text(f.Text, "text", wire.MaxFrame); err != nil {
			return err
		}
	}
	if err := o.Parts(&f.Parts, "parts"); err != nil {
		return err
	}
	if err := o.Struct(&f.Metadata, "metadata", "an object"); err != nil {
		return err
	}
	if err := o.Bool(&f.More, "more"); err != nil {
		return err
	}
	switch f.Type {
	case TypeTyping:
		if !o.Absent("on") {
			f.On = new(bool)
		}
		return o.Bool(f.On, "on")
	case TypeTransfer:
		if err := o.Filled(&f.Agent, "agent", wire.MaxField); err != nil {
			return err
		}
		return o.Text(&f.Reason, "reason", wire.MaxField)
	case TypeCard:
		return f.card(o)
	case TypeButtons:
		return f.buttons(o)
	case TypeUpdate:
		if err := f.update(o); err != nil {
			return err
		}
	}
	if f.Text == nil && len(f.Parts) == 0 {
		return wire.Refuse(wire.CodeMissingField, "text: absent, expected a string, or parts")
	}
	return nil
}

func (f *FromAgent) card(o wire.Object) *wire.Error {
	if err := o.Missing("card", "an object"); err != nil {
		return err
	}
	f.Card = new(wire.Card)
	if err := o.Struct(f.Card, "card", "an object {header?, elements}"); err != nil {
		return err
	}
	return f.Card.Check()
}

func (f *FromAgent) buttons(o wire.Object) *wire.Error {
	if err := o.Missing("buttons", "rows of {text, value}"); err != nil {
		return err
	}
	if err := o.Struct(&f.Buttons, "buttons", "rows of {text, value}"); err != nil {
		return err
	}
	return wire.ValidateRows(f.Buttons)
}

func (f *FromAgent) update(o wire.Object) *wire.Error {
	const expected = "an object {message_id} or {preview_handle}"
	if err := o.Missing("update", expected); err != nil {
		return err
	}
	f.Update = new(Earlier)
	if err := o.Struct(f.Update, "update", expected); err != nil {
		return err
	}
	if len(f.Update.MessageID) > wire.MaxField || len(f.Update.PreviewHandle) > wire.MaxField {
		return wire.Refuse(wire.CodeTooLarge, "update: found more than %d bytes, which is the limit of an id or handle", wire.MaxField)
	}
	if f.Update.MessageID == "" && f.Update.PreviewHandle == "" {
		return wire.Refuse(wire.CodeMissingField, "update: found neither message_id nor preview_handle, expected one of them")
	}
	return nil
}
