package bridge_test

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// A form reaches an adapter of protocol 1.0 as questions or buttons; what comes
// back is kept as the form filled in.
func TestFormAnswered(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("form")
	c := h.attach(t, row, "text", "buttons")
	submitted := func(want string) {
		t.Helper()
		entries := h.history(row)
		var last ledger.Entry
		for _, e := range entries {
			if e.Direction == ledger.In && e.ID > last.ID {
				last = e
			}
		}
		if string(last.Parts) != want {
			t.Errorf("kept as %q with parts %s, want %s", last.Text, last.Parts, want)
		}
	}

	c.send(say("c", "!form"))
	c.want(routed("send", "c", echoFormText))
	c.send(say("c", "1. Ann\n2. blue"))
	c.want(answer("c", "echo: 1. Ann\n2. blue"))
	submitted(`[{"type":"ui_submit","uiId":"echo-form","values":{"colour":"blue","name":"Ann"},"id":"p1"}]`)

	// The host may be another one when the answer comes.
	c.send(say("d", "!form"))
	c.want(routed("send", "d", echoFormText))
	h = h.again()
	c = h.attach(t, row, "text", "buttons")
	c.send(say("d", "Bob\nred"))
	c.want(answer("d", "echo: Bob\nred"))
	submitted(`[{"type":"ui_submit","uiId":"echo-form","values":{"colour":"red","name":"Bob"},"id":"p1"}]`)

	// What is no answer stays what it is; a command stays a command.
	c.send(say("d", "who are you?"))
	c.want(answer("d", "echo: who are you?"))
	submitted("")

	form := message.New(message.NewForm(message.UIPart{UIID: "size", Components: []message.UIComponent{
		{Type: message.UIRadio, Name: "size", Label: "Which size?", Options: []message.UIOption{{Value: "s", Label: "Small"}, {Value: "l", Label: "Large"}}},
	}}))
	for conversation, reply := range map[string]struct{ frame, text string }{
		"pressed": {press("pressed", "ui:size:size:l"), "size: l"}, "typed": {say("typed", "large"), "large"}, "number": {say("number", "2"), "2"},
	} {
		if _, err := h.hub.Send(t.Context(), row, hub.Outgoing{Conversation: conversation, Message: form}); err != nil {
			t.Fatal(err)
		}
		c.want(`{"type":"send_buttons","session_key":"","conversation_id":` + quote(conversation) + `,"reply_ctx":null,"text":"Which size?","buttons":[[{"text":"Small","value":"ui:size:size:s"},{"text":"Large","value":"ui:size:size:l"}]]}`)
		c.send(reply.frame)
		c.want(answer(conversation, "echo: "+reply.text))
		submitted(`[{"type":"ui_submit","uiId":"size","values":{"size":"l"},"id":"p1"}]`)
	}
}
