package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDecodeInboundKeepsNothingOfTheBuffer(t *testing.T) {
	frame := []byte(`{"type":"message","session_key":"s","user_id":"u","text":"Hello","reply_ctx":{"a":1}}`)
	in, err := DecodeInbound(frame)
	if err != nil {
		t.Fatal(err)
	}
	clear(frame)
	if in.Text != "Hello" || in.SessionKey != "s" || in.ReplyCtx != `{"a":1}` {
		t.Errorf("the frame's buffer is still in use: %+v", in)
	}
}

// What an ordinary frame holds is read without the library.
func TestScanTakesOrdinaryFrames(t *testing.T) {
	for _, frames := range []map[string]*Inbound{toHost, toHostV11} {
		for name, in := range frames {
			var f fields
			if frame := string(in.Append(nil)); !scan(frame, &f) {
				t.Errorf("%s: scan leaves %s to the library", name, frame)
			}
		}
	}
}

func TestErrorMessages(t *testing.T) {
	for frame, want := range map[string]string{
		`{"type":"card_action"}`:                         "missing_field: action: absent, expected a string",
		`{"type":"card_action","action":null}`:           "wrong_type: action: found null, expected a string",
		`{"type":"message","text":["a"]}`:                "wrong_type: text: found an array, expected a string",
		`{"type":"message","text":true}`:                 "wrong_type: text: found a boolean, expected a string",
		`{"type":"message","text":-1}`:                   "wrong_type: text: found a number, expected a string",
		`{"type":"register","capabilities":["text",{}]}`: "wrong_type: capabilities[1]: found an object, expected a string",
		`{"type":"register","capabilities":1}`:           "wrong_type: capabilities: found a number, expected an array of strings",
		`{"type":"register","metadata":"x"}`:             "wrong_type: metadata: found a string, expected an object",
		`[]`:                                             "not_object: frame: found an array, expected a JSON object",
		`null`:                                           "not_object: frame: found null, expected a JSON object",
		``:                                               "bad_json: frame: empty, expected a JSON object",
		"\ufeff{}":                                       "bad_json: frame: starts with a byte order mark, expected '{'",
		`{"type":"ping"`:                                 "bad_json: frame: unexpected end of JSON input at byte 14",
		`{}`:                                             "missing_field: type: absent, expected register, message, card_action or ping",
		`{"type":"x"}`:                                   `unknown_type: type: found "x", expected message, card_action or ping`,
		`{"type":"reaction"}`:                            `not_supported: type: "reaction" needs reaction, which this session has not negotiated`,
		`{"type":"message","text":"a","user_name":"` + strings.Repeat("x", 5000) + `"}`: "too_large: user_name: found 5000 bytes, at most 4096 are allowed",
	} {
		_, err := DecodeInbound([]byte(frame))
		if err == nil || err.Error() != want {
			t.Errorf("%.60s: got %v, want %s", frame, err, want)
		}
	}
}

// A giant token is for the gate to refuse: the frame is a register frame.
func TestGiantToken(t *testing.T) {
	in, err := DecodeInbound([]byte(`{"type":"register","token":"` + strings.Repeat("x", MaxField+1) + `"}`))
	if err != nil || len(in.Register.Token) != MaxField+1 {
		t.Errorf("got %+v, %v", in, err)
	}
}

func TestDecodeOutboundErrors(t *testing.T) {
	for _, frame := range []string{
		``, `[]`, `{"type":"send","text":1}`, `{"type":"send_card"}`, `{"type":"send_card","card":null}`,
		`{"type":"send_image"}`, `{"type":"send_file","file":null}`, `{"type":"send_buttons","buttons":["a"]}`,
		`{"type":"send_parts","text":"a"}`, `{"type":"stream","parts":null}`, `{"type":"stream_end","parts":{}}`, `{"type":"send_parts","parts":"a"}`,
		`{"type":"send_audio"}`, `{"type":"send_audio","audio":"a"}`, `{"type":"send_form","ui":null}`, `{"type":"send_form","ui":[]}`,
		`{"type":"send_reaction","emoji":1}`, `{"type":"register_ack","ok":true,"protocol":"1.1","limits":1}`, `{"type":"message_ack","ok":1}`, `{"type":"upload_ack","url":1}`,
	} {
		if out, err := DecodeOutbound([]byte(frame)); err == nil {
			t.Errorf("%s: accepted as %+v", frame, out)
		}
	}
}

// No frame is larger than its routing's overhead and its content allow.
func TestOverhead(t *testing.T) {
	routes := []Routing{{}, routing, {SessionKey: "\x00\"ż\xff", ConversationID: "c", ReplyCtx: `{"a":[1]}`}, {ReplyCtx: "null"}}
	for _, r := range routes {
		empty := Frame{Type: TypeUpdateMessage}
		if got, want := len(empty.Append(nil, r)), r.Overhead()+len(`"preview_handle":"",`); got != want {
			t.Errorf("update_message takes %d bytes, overhead says %d", got, want)
		}
		for _, o := range toAdapter {
			f := Frame{Type: o.Type, Text: "a\n\x01ż"}
			f.MessageID = "01h/2"
			switch f.Type {
			case TypeSend, TypeStartTyping, TypeStopTyping:
				if got := len(f.Append(nil, r)); got > r.Overhead()+IDOverhead(f.MessageID)+StringLen(f.Text)-2 {
					t.Errorf("%s takes %d bytes, overhead %d", f.Type, got, r.Overhead())
				}
			}
		}
	}
}

func TestValidate(t *testing.T) {
	label := Button{Text: "a", Value: "b"}
	for _, c := range []struct {
		name string
		card Card
		want string // "" = valid
	}{
		{"ok", *toAdapter["send_card"].Card, ""},
		{"okHeaderOnly", Card{Header: &Header{Title: "a"}}, ""},
		{"errEmpty", Card{}, "card: "},
		{"errType", Card{Elements: []Element{{Type: "divider"}, {Type: "hologram"}}}, "card.elements[1].type: "},
		{"errNoRows", Card{Elements: []Element{{Type: ElementActions}}}, "card.elements[0].buttons: "},
		{"errEmptyRow", Card{Elements: []Element{{Type: ElementActions, Buttons: [][]Button{{label}, {}}}}}, "card.elements[0].buttons[1]: "},
		{"errNoLabel", Card{Elements: []Element{{Type: ElementActions, Buttons: [][]Button{{label, {Value: "x"}}}}}}, "card.elements[0].buttons[0][1].text: "},
		{"errItemLabel", Card{Elements: []Element{{Type: ElementListItem, Button: &Button{}}}}, "card.elements[0].button.text: "},
		{"errNoOptions", Card{Elements: []Element{{Type: ElementSelect}}}, "card.elements[0].options: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.card.Validate()
			if c.want == "" && err != nil {
				t.Fatal(err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got %v, want %s…", err, c.want)
			}
		})
	}
}

func TestCaps(t *testing.T) {
	names := CapNames()
	if want := strings.Fields("text card buttons image file typing update_message reply_to_message"); !slices.Equal(names, want) {
		t.Errorf("CapNames() = %v, want %v", names, want)
	}
	names[0] = "changed"
	if CapNames()[0] != "text" {
		t.Error("CapNames gives away its own slice")
	}
	set, unknown := ParseCaps([]string{"card", "Card", "reaction", "card", "reaction", ""})
	if set != CapCard || !reflect.DeepEqual(unknown, []string{"Card", "reaction", "reaction", ""}) {
		t.Errorf("ParseCaps: %v, %v", set, unknown)
	}
	for _, n := range CapNames() {
		c, _ := ParseCaps([]string{n})
		if got := c.Names(); len(got) != 1 || got[0] != n || c.String() != n {
			t.Errorf("%s: %v", n, got)
		}
	}
	if n := Caps(0).Names(); n == nil || len(n) != 0 {
		t.Errorf("no capabilities: %#v", n)
	}
	for _, c := range []struct{ declared, allow, want Caps }{
		{0, 0, CapText},
		{CapCard | CapImage, 0, CapText | CapCard | CapImage},
		{CapCard | CapImage, CapCard, CapText | CapCard},
		{CapImage, CapCard, CapText},
		{CapCard, CapText, CapText},
	} {
		if got := Effective(c.declared, c.allow); got != c.want {
			t.Errorf("Effective(%v, %v) = %v, want %v", c.declared, c.allow, got, c.want)
		}
	}
	if s := CapText | CapCard; !s.Has(CapText) || !s.Has(CapText|CapCard) || s.Has(CapCard|CapImage) {
		t.Error("Has asks for less or more than every member")
	}
}

func TestReconnect(t *testing.T) {
	for code, want := range map[CloseCode]bool{
		CloseNormal: true, CloseDraining: true, CloseInvalidUTF8: true, CloseRefused: true, CloseTooLarge: true, CloseOverload: true,
		CloseReplaced: false, CloseRevoked: false, CloseTooSlow: true, 4999: false,
	} {
		if code.Reconnect() != want {
			t.Errorf("%d: Reconnect() = %v", code, !want)
		}
	}
}

func benchFrame() []byte {
	return []byte(`{"type":"message","session_key":"wechat:gid42:user123","conversation_id":"gid42","user_id":"user123","user_name":"Alice","text":"Hello, how are you today?","reply_ctx":{"id":"wx-msg-001","thread":7}}`)
}

func BenchmarkDecodeInbound(b *testing.B) {
	escaped := []byte(`{"type":"message","session_key":"wechat:gid42:user123","conversation_id":"gid42","user_id":"user123","user_name":"Alice","text":"Hello,\nhow are \"you\" today?","reply_ctx":"wx-msg-001"}`)
	for name, frame := range map[string][]byte{"plain": benchFrame(), "escaped": escaped} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				if _, err := DecodeInbound(frame); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFrameAppend(b *testing.B) {
	for _, name := range []string{"send", "send_card"} {
		o := toAdapter[name]
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				buf = o.Append(buf[:0], o.Routing)
			}
			if !utf8.Valid(buf) {
				b.Fatal("not UTF-8")
			}
		})
	}
}
