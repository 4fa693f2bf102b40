package hub_test

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// A form reaches an adapter of protocol 1.0 as questions or buttons; what comes
// back is kept as the form filled in.
func TestFormAnswered(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("form")
	c := h.Attach(t, row, "text", "buttons")
	submitted := func(want string) {
		t.Helper()
		entries := h.History(row)
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

	c.Send(hosttest.Say("c", "!form"))
	c.Want(hosttest.Routed("send", "c", echoFormText))
	c.Send(hosttest.Say("c", "1. Ann\n2. blue"))
	c.Want(hosttest.Answer("c", "echo: 1. Ann\n2. blue"))
	submitted(`[{"type":"ui_submit","uiId":"echo-form","values":{"colour":"blue","name":"Ann"},"id":"p1"}]`)

	// The host may be another one when the answer comes.
	c.Send(hosttest.Say("d", "!form"))
	c.Want(hosttest.Routed("send", "d", echoFormText))
	h = h.Again()
	c = h.Attach(t, row, "text", "buttons")
	c.Send(hosttest.Say("d", "Bob\nred"))
	c.Want(hosttest.Answer("d", "echo: Bob\nred"))
	submitted(`[{"type":"ui_submit","uiId":"echo-form","values":{"colour":"red","name":"Bob"},"id":"p1"}]`)

	// What is no answer stays what it is; a command stays a command.
	c.Send(hosttest.Say("d", "who are you?"))
	c.Want(hosttest.Answer("d", "echo: who are you?"))
	submitted("")

	form := message.New(message.NewForm(message.UIPart{UIID: "size", Components: []message.UIComponent{
		{Type: message.UIRadio, Name: "size", Label: "Which size?", Options: []message.UIOption{{Value: "s", Label: "Small"}, {Value: "l", Label: "Large"}}},
	}}))
	for conversation, reply := range map[string]struct{ frame, text string }{
		"pressed": {hosttest.Press("pressed", "ui:size:size:l"), "size: l"}, "typed": {hosttest.Say("typed", "large"), "large"}, "number": {hosttest.Say("number", "2"), "2"},
	} {
		if _, err := h.Hub.Send(t.Context(), row, hub.Outgoing{Conversation: conversation, Message: form}); err != nil {
			t.Fatal(err)
		}
		c.Want(`{"type":"send_buttons","session_key":"","conversation_id":` + hosttest.Quote(conversation) + `,"reply_ctx":null,"text":"Which size?","buttons":[[{"text":"Small","value":"ui:size:size:s"},{"text":"Large","value":"ui:size:size:l"}]]}`)
		c.Send(reply.frame)
		c.Want(hosttest.Answer(conversation, "echo: "+reply.text))
		submitted(`[{"type":"ui_submit","uiId":"size","values":{"size":"l"},"id":"p1"}]`)
	}
}
