package hosttest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// AllCaps are the capabilities that there are, as Attach takes them.
var AllCaps = strings.Join(wire.CapNames(), " ")

// AckOK is the answer to a register frame of 1.0 that is taken.
const AckOK = `{"type":"register_ack","ok":true}`

// AckFailed is the answer to one that is refused.
func AckFailed(why string) string {
	return `{"type":"register_ack","ok":false,"error":"` + why + `"}`
}

// Quote is s as JSON.
func Quote(s string) string { return string(wire.AppendString(nil, s)) }

// RegisterFrame is a register frame of 1.0.
func RegisterFrame(token string, caps ...string) string {
	list, err := json.Marshal(strings.Fields(strings.Join(caps, " ")))
	if err != nil {
		panic(err)
	}
	return `{"type":"register","token":` + Quote(token) + `,"platform":"test","capabilities":` + string(list) + `}`
}

// RegisterFrame11 is one of 1.1, with further fields.
func RegisterFrame11(row ledger.Channel, caps string, more ...string) string {
	f := strings.TrimSuffix(RegisterFrame(TokenOf(row.Name), caps), "}")
	return f + `,"protocol":"1.1"` + strings.Join(append([]string{""}, more...), ",") + `}`
}

// Say is a message frame of user u in a conversation.
func Say(conversation, text string) string {
	return `{"type":"message","session_key":"k","conversation_id":` + Quote(conversation) + `,"user_id":"u","text":` + Quote(text) + `,"reply_ctx":"r"}`
}

// Press is a card_action frame of the same.
func Press(conversation, action string) string {
	return `{"type":"card_action","session_key":"k","conversation_id":` + Quote(conversation) + `,"user_id":"u","action":` + Quote(action) + `,"reply_ctx":"r"}`
}

// Routed is a frame of the host that answers Say or Press; rest is its other fields.
func Routed(kind, conversation, rest string) string {
	if rest != "" {
		rest = "," + rest
	}
	return `{"type":"` + kind + `","session_key":"k","conversation_id":` + Quote(conversation) + `,"reply_ctx":"r"` + rest + `}`
}

// Answer is the send frame that answers Say or Press.
func Answer(conversation, text string) string {
	return Routed("send", conversation, `"text":`+Quote(text))
}

// Unasked is a send frame that answers nothing.
func Unasked(conversation, text string) string {
	return `{"type":"send","session_key":"","conversation_id":` + Quote(conversation) + `,"reply_ctx":null,"text":` + Quote(text) + `}`
}

// AckFrame acknowledges a frame of the host: ok if there are no further fields, or if
// they begin with a preview handle.
func AckFrame(id string, more ...string) string {
	return `{"type":"message_ack","message_id":` + Quote(id) + `,"ok":` + strings.Join(append([]string{fmt.Sprint(len(more) == 0 || strings.HasPrefix(more[0], `"preview`))}, more...), ",") + `}`
}
