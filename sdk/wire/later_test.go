package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestNegotiate(t *testing.T) {
	for asked, want := range map[string]Protocol{
		"": V10, "1.0": V10, "1": V10, "0": V10, "0.9": V10, "01.00": V10, "1.0.7": V10, "00000000000000000000001.0": V10,
		"1.1": V11, "1.2": V11, "1.10": V11, "01.01": V11, "1.1.0": V11, "2": V11, "2.0": V11, "10.0": V11, "1.99999999999999999999999": V11,
		"abc": V10, "1.1-beta": V10, "v1.1": V10, " 1.1": V10, "1,1": V10, "1.": V10, ".1": V10, "1.1.": V10, "-2": V10, "2.x": V10, "１.１": V10, ".": V10,
	} {
		if got := Negotiate(asked); got != want {
			t.Errorf("Negotiate(%q) = %v, want %v", asked, got, want)
		}
	}
	for _, p := range []Protocol{V10, V11} {
		if Negotiate(p.String()) != p {
			t.Errorf("%v is acknowledged as %v", p, Negotiate(p.String()))
		}
	}
}

func TestCapsOfProtocols(t *testing.T) {
	v10 := strings.Fields("text card buttons image file typing update_message reply_to_message")
	v11 := append(slices.Clone(v10), strings.Fields("ack parts stream delete_message reaction audio form")...)
	if got := CapsV10.Names(); !slices.Equal(got, v10) {
		t.Errorf("CapsV10 = %v", got)
	}
	if got := CapNamesFor("1.0"); !slices.Equal(got, v10) {
		t.Errorf("1.0: %v", got)
	}
	if got := CapNamesFor("1.1"); !slices.Equal(got, v11) {
		t.Errorf("1.1: %v", got)
	}
	for i, c := range []Caps{CapAck, CapParts, CapStream, CapDeleteMessage, CapReaction, CapAudio, CapForm} {
		if c.String() != v11[len(v10)+i] {
			t.Errorf("%s is %v", v11[len(v10)+i], c)
		}
	}
	names := []string{"form", "card", "hologram", "ack", "form"}
	for protocol, want := range map[string]struct {
		set     Caps
		unknown []string
	}{
		"":    {CapCard, []string{"form", "hologram", "ack", "form"}},
		"1.0": {CapCard, []string{"form", "hologram", "ack", "form"}},
		"1.1": {CapCard | CapAck | CapForm, []string{"hologram"}},
		"2.0": {CapCard | CapAck | CapForm, []string{"hologram"}},
	} {
		set, unknown := ParseCapsFor(protocol, names)
		if set != want.set || !slices.Equal(unknown, want.unknown) {
			t.Errorf("%q: %v, %q", protocol, set, unknown)
		}
	}
}

func TestErrorMessagesV11(t *testing.T) {
	for frame, want := range map[string]string{
		`{}`:                                    "missing_field: type: absent, expected register, message, card_action, ping, message_ack, message_edit, message_delete, reaction, form_submit, upload or platform_status",
		`{"type":"x"}`:                          `unknown_type: type: found "x", expected message, card_action, ping, message_ack, message_edit, message_delete, reaction, form_submit, upload or platform_status`,
		`{"type":"message"}`:                    "missing_field: text: absent, expected a string, or parts or attachments",
		`{"type":"message","text":null}`:        "wrong_type: text: found null, expected a string, or parts or attachments",
		`{"type":"message","parts":"a"}`:        "wrong_type: parts: found a string, expected an array of objects",
		`{"type":"message","parts":[1]}`:        "wrong_type: parts[0]: found a number, expected an object",
		`{"type":"message","parts":[{}]}`:       "wrong_type: parts[0].type: found nothing, expected a string",
		`{"type":"message","attachments":[{}]}`: "missing_field: attachments[0]: found neither attachment_id nor url, expected one of them",
		`{"type":"message","attachments":[{"size_bytes":1.0}]}`:                                       "wrong_type: attachments[0].size_bytes: found 1.0, expected an integer from 0 to 9007199254740991",
		`{"type":"message_delete"}`:                                                                   "missing_field: message_id: absent, expected a string",
		`{"type":"message_delete","message_id":""}`:                                                   "missing_field: message_id: found an empty string, expected one with content",
		`{"type":"message","text":"a","message_id":7}`:                                                "wrong_type: message_id: found a number, expected a string",
		`{"type":"message_ack","message_id":"a"}`:                                                     "missing_field: ok: absent, expected a boolean",
		`{"type":"message_ack","message_id":"a","ok":"yes"}`:                                          "wrong_type: ok: found a string, expected a boolean",
		`{"type":"upload","name":"a","mime_type":"b"}`:                                                "missing_field: size_bytes: absent, expected an integer",
		`{"type":"form_submit","ui_id":"u","values":[]}`:                                              "wrong_type: values: found an array, expected an object",
		`{"type":"register","protocol":"1.1","profile":1}`:                                            "wrong_type: profile: found a number, expected an object",
		`{"type":"register","protocol":"1.1","profile":{"parallel":` + strings.Repeat("9", 99) + `}}`: "wrong_type: profile.parallel: found " + strings.Repeat("9", 32) + ", expected an integer from 0 to 100000",
		`{"type":"register","protocol":"1.1","profile":{"markdown":"md"}}`:                            `wrong_type: profile.markdown: found "md", expected none, basic or full`,
		`{"type":"message","text":"a","cursor":"` + strings.Repeat("x", 5000) + `"}`:                  "too_large: cursor: found 5000 bytes, at most 4096 are allowed",
	} {
		if _, err := DecodeInboundAs([]byte(frame), everything); err == nil || err.Error() != want {
			t.Errorf("%.60s: got %v, want %s", frame, err, want)
		}
	}
	if _, err := DecodeInboundAs([]byte(`{"type":"reaction"}`), Dialect{Protocol: V11}); err == nil ||
		err.Error() != `not_supported: type: "reaction" needs reaction, which this session has not negotiated` {
		t.Error(err)
	}
}

// Each frame of 1.1 needs its capability, and 1.1 itself.
func TestDialects(t *testing.T) {
	for name, in := range toHostV11 {
		needs, ok := later[in.Type]
		if !ok {
			continue
		}
		frame := in.Append(nil)
		for _, c := range []struct {
			d    Dialect
			want bool
		}{
			{Dialect{}, false},
			{Dialect{V10, everything.Caps}, false},
			{Dialect{V11, everything.Caps &^ needs}, needs == 0},
			{Dialect{V11, CapText | needs}, true},
		} {
			_, err := DecodeInboundAs(frame, c.d)
			if (err == nil) != c.want || err != nil && err.Code != CodeNotSupported {
				t.Errorf("%s under %v with %v: %v", name, c.d.Protocol, c.d.Caps, err)
			}
		}
	}
}

// The golden frames of 1.0 say the same under 1.1.
func TestV10UnderV11(t *testing.T) {
	for name, want := range toHost {
		if got, err := DecodeInboundAs(want.Append(nil), everything); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// The limits that are checked are those of the tags, which the REST API reads.
func TestProfileLimits(t *testing.T) {
	typ := reflect.TypeFor[Profile]()
	read := func(name, value string) *Error {
		_, err := DecodeInbound(fmt.Appendf(nil, `{"type":"register","protocol":"1.1","profile":{%q:%s}}`, name, value))
		return err
	}
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != profileKeys[i] {
			t.Errorf("key %d is %s, the field %s", i, profileKeys[i], name)
		}
		if values := field.Tag.Get("enum"); values != "" {
			for _, v := range strings.Split(values, ",") {
				if err := read(name, strconv.Quote(v)); err != nil {
					t.Error(err)
				}
			}
			continue
		}
		most, err := strconv.Atoi(field.Tag.Get("maximum"))
		if err != nil || field.Tag.Get("minimum") != "0" {
			t.Fatalf("%s: %v", name, err)
		}
		if err := read(name, strconv.Itoa(most)); err != nil {
			t.Error(err)
		}
		if err := read(name, strconv.Itoa(most+1)); err == nil || err.Code != CodeWrongType {
			t.Errorf("%s may be larger than %d: %v", name, most, err)
		}
	}
}

// A card for an adapter of 1.1 has each key once, in lower case.
func TestCardPlain(t *testing.T) {
	card := toAdapter["send_card"].Card
	var both, plain map[string]any
	if err := json.Unmarshal(card.Append(nil), &both); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(card.AppendPlain(nil), &plain); err != nil {
		t.Fatal(err)
	}
	for _, e := range both["elements"].([]any) {
		for key := range e.(map[string]any) {
			if key != strings.ToLower(key) {
				delete(e.(map[string]any), key)
			}
		}
	}
	if !reflect.DeepEqual(both, plain) {
		t.Errorf("got %v, want %v", plain, both)
	}
}

func BenchmarkDecodeInboundV11(b *testing.B) {
	for _, name := range []string{"v11_message", "v11_message_ack"} {
		frame := toHostV11[name].Append(nil)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				if _, err := DecodeInboundAs(frame, everything); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
