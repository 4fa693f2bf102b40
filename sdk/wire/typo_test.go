package wire

import (
	"fmt"
	"testing"
)

func TestTypos(t *testing.T) {
	for frame, want := range map[string]string{
		` {"type":"message","conversationId":"c","userid":1,"txet":"a","Text":"b"}`:                          "[{conversationId conversation_id} {userid user_id} {Text text}]",
		`{"type":"register","capabilitie":[],"profile":{"max_txt":1,"maxText":2,"max_text":3,"colour":4}}`:   "[{capabilitie capabilities} {profile.max_txt profile.max_text} {profile.maxText profile.max_text}]",
		`{"type":"register","profile":[],"protcol":"1.1","metadata":{"capabilitie":1}}`:                      "[{protcol protocol}]",
		`{"type":"ping","id":7,"v":1,"":0,"ключ":1,"nonce":2}`:                                               "[]",
		`{"type":"message","te\u0078t":"a","mesage_id":"1","message_di":"2","messageid_":"3","message_i":4}`: "[{mesage_id message_id} {message_di message_id} {messageid_ message_id} {message_i message_id}]",
	} {
		if got := fmt.Sprint(pairs(Typos([]byte(frame)))); got != want {
			t.Errorf("%s: %s, want %s", frame, got, want)
		}
	}
	for name := range toHostV11 {
		if got := Typos(toHostV11[name].Append(nil)); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// pairs are typos without their sentence.
func pairs(all []Typo) (out []struct{ Found, Meant string }) {
	for _, x := range all {
		out = append(out, struct{ Found, Meant string }(x))
	}
	return out
}
