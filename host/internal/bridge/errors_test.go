package bridge_test

import (
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
)

// Every refusal is answered, names its field, and the connection lives on.
func TestErrors(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("errors")
	c := h.Attach(t, row)
	long := strings.Repeat("x", 4097)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct{ name, frame, code, ref, named string }{
		{"text that is no JSON", `hello`, "bad_json", "", "frame"},
		{"cut off", `{"type":"message","message_id":"m1"`, "bad_json", "", "frame"},
		{"empty", ``, "bad_json", "", "empty"},
		{"byte order mark", "\ufeff" + hosttest.Say("c", "x"), "bad_json", "", "byte order mark"},
		{"trailing bytes", hosttest.Say("c", "x") + "x", "bad_json", "", "frame"},
		{"two objects", hosttest.Say("c", "x") + hosttest.Say("c", "y"), "bad_json", "", "frame"},
		{"unknown escape", `{"type":"message","text":"\q"}`, "bad_json", "", "frame"},
		{"control character", "{\"type\":\"message\",\"text\":\"a\nb\"}", "bad_json", "", "frame"},
		{"trailing comma", `{"type":"ping",}`, "bad_json", "", "frame"},

		{"array", `[{"type":"ping"}]`, "not_object", "", "an array"},
		{"string", `"ping"`, "not_object", "", "a string"},
		{"number", ` 5`, "not_object", "", "a number"},
		{"boolean", `true`, "not_object", "", "a boolean"},
		{"null", `null`, "not_object", "", "null"},

		{"unknown type", `{"type":"hello"}`, "unknown_type", "", `"hello"`},
		{"unknown type with id", `{"message_id":"m1","type":"Message"}`, "unknown_type", "m1", `"Message"`},
		{"type of the host", `{"type":"send","text":"x"}`, "unknown_type", "", `"send"`},
		{"empty type", `{"type":""}`, "unknown_type", "", "type"},

		{"no type", `{}`, "missing_field", "", "type"},
		{"type is null", `{"type":null,"message_id":"m1"}`, "missing_field", "m1", "type"},
		{"Type is not type", `{"Type":"message","text":"x"}`, "missing_field", "", "type"},
		{"card_action without action", `{"type":"card_action","text":"x","message_id":"m1"}`, "missing_field", "m1", "action"},

		{"type is a number", `{"type":5}`, "wrong_type", "", "type"},
		{"text is a number", `{"type":"message","text":5,"message_id":"m1"}`, "wrong_type", "m1", "text"},
		{"text is an object", `{"type":"message","text":{"x":1}}`, "wrong_type", "", "text"},
		{"action is a boolean", `{"type":"card_action","action":true}`, "wrong_type", "", "action"},
		{"action is null", `{"type":"card_action","action":null}`, "wrong_type", "", "action"},
		{"an id that is none is no ref", `{"type":"message","text":5,"message_id":7}`, "wrong_type", "", "text"},

		{"too deep", `{"type":"message","text":"x","reply_ctx":` + deep(10_001) + `}`, "too_deep", "", "10000"},
		{"too deep behind an id", `{"message_id":"m1","type":"message","text":"x","reply_ctx":` + deep(10_001) + `}`, "too_deep", "m1", "10000"},
		{"too deep before an id", `{"type":"message","text":"x","reply_ctx":` + deep(10_001) + `, "message_id" : "m\u0031" }`, "too_deep", "m1", "10000"},
		{"too deep with an id within", `{"type":"ping","x":{"message_id":"m1","x":` + deep(10_001) + `}}`, "too_deep", "", "10000"},
		{"too deep with an id that is none", `{"message_id":7,"type":"ping","x":` + deep(10_001) + `}`, "too_deep", "", "10000"},
		{"too deep with two ids", `{"message_id":"m0","x":` + deep(10_001) + `,"message_id":"m1"}`, "too_deep", "m1", "10000"},
		{"too deep and cut off", `{"message_id":"m1","x":` + deep(10_001), "too_deep", "", "10000"},
		{"too deep where nobody looks", `{"type":"ping","x":` + deep(10_001) + `}`, "too_deep", "", "10000"},

		{"session_key too long", `{"type":"message","text":"x","session_key":"` + long + `","message_id":"m1"}`, "too_large", "m1", "session_key"},
		{"conversation_id too long", `{"type":"message","text":"x","conversation_id":"` + long + `"}`, "too_large", "", "conversation_id"},
		{"user_id too long", `{"type":"message","text":"x","user_id":"` + long + `"}`, "too_large", "", "user_id"},
		{"user_name too long", `{"type":"card_action","action":"x","user_name":"` + long + `"}`, "too_large", "", "user_name"},
		{"an id too long is no ref", `{"type":"message","text":5,"message_id":"` + long + `"}`, "wrong_type", "", "text"},
		{"too long in bytes, not letters", `{"type":"message","text":"x","user_id":"` + strings.Repeat("ü", 2049) + `"}`, "too_large", "", "4096"},

		{"message_ack", `{"type":"message_ack","message_id":"m1","ok":true}`, "not_supported", "m1", "message_ack"},
		{"reaction", `{"type":"reaction","emoji":"x"}`, "not_supported", "", "reaction"},
		{"message_delete", `{"type":"message_delete","message_id":"m1"}`, "not_supported", "m1", "message_delete"},
		{"message_edit", `{"type":"message_edit","text":"x"}`, "not_supported", "", "message_edit"},
		{"form_submit", `{"type":"form_submit"}`, "not_supported", "", "form_submit"},
		{"upload", `{"type":"upload"}`, "not_supported", "", "upload"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.Send(tt.frame)
			c.WantError(tt.code, tt.ref, tt.named)
			c.Quiet()
		})
	}
	if n := len(h.History(row)); n != 0 {
		t.Errorf("%d messages are stored, want none", n)
	}
	t.Run("just within", func(t *testing.T) {
		id := long[1:]
		c.Send(`{"type":"message","text":"x","session_key":"` + id + `","conversation_id":"` + id + `","user_id":"` + id + `","user_name":"` + id + `","message_id":"` + id + `"}`)
		c.Want(`{"type":"send","session_key":"` + id + `","conversation_id":"` + id + `","reply_ctx":null,"text":"echo: x"}`)
		c.Send(`{"type":"message","text":"x","conversation_id":"c","reply_ctx":` + deep(9_999) + `}`)
		c.Want(`{"type":"send","session_key":"","conversation_id":"c","reply_ctx":` + deep(9_999) + `,"text":"echo: x"}`)
	})
}
