package bridge_test

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// An adapter of 1.0 whose ids are numbers, and whose text may be absent, is understood;
// the operator is told which fields are wrong, once a connection. 1.1 is strict.
func TestLenient(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	row := h.Channel("c", func(c *ledger.Channel) { c.Users = []string{"42", "true"} })
	c := h.Attach(t, row)
	c.Send(`{"type":"message","session_key":7,"conversation_id":-100123,"user_id":42,"user_name":1.50,"text":"hi"}`)
	c.Want(`{"type":"send","session_key":"7","conversation_id":"-100123","reply_ctx":null,"text":"echo: hi"}`)
	c.Send(`{"type":"message","conversation_id":-100123,"user_id":true,"user_name":{},"text":"again"}`)
	c.Want(`{"type":"send","session_key":"","conversation_id":"-100123","reply_ctx":null,"text":"echo: again"}`)
	c.Send(`{"type":"card_action","conversation_id":"c","user_id":42,"action":"press"}`)
	c.Want(hosttest.Unasked("c", "echo: press"))
	c.Send(`{"type":"message","conversation_id":"c","user_id":"42"}`)
	c.Want(hosttest.Unasked("c", "echo: "))

	const told = "adapter breaks the protocol: what is no string is read as one, or as absent, and a text that is absent as empty channel=c fields="
	for fields, n := range map[string]int{"[session_key conversation_id user_id user_name]": 1, "[text]": 1, "": 2} {
		if got := h.Log.Count(told + fields); got != n {
			t.Errorf("the log names %s %d times, want %d", fields, got, n)
		}
	}
	type frame struct{ Direction, Verdict, Code string }
	var lenient []string
	for _, f := range hosttest.Call[struct{ Frames []frame }](h, "GET", "/channels/c/frames", "", 200).Frames {
		if f.Verdict == "lenient" {
			lenient = append(lenient, f.Code)
		}
	}
	if len(lenient) != 2 || lenient[0] != "session_key" || lenient[1] != "text" {
		t.Errorf("the frames that are shown as lenient name %q", lenient)
	}

	strict := h.Attach11(t, row, "")
	for field, frame := range map[string]string{
		"user_id": `{"type":"message","text":"x","user_id":42}`, "conversation_id": `{"type":"message","text":"x","conversation_id":true}`,
	} {
		strict.Send(frame)
		strict.WantError("wrong_type", "", field)
	}
	strict.Send(`{"type":"message"}`)
	strict.WantError("missing_field", "", "text")
}
