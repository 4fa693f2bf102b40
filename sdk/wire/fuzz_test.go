package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// seed adds the golden frames of the directories, and those of the tables, to the corpus.
func seed(f *testing.F, dirs ...string) {
	f.Helper()
	for _, m := range malformedFrames(f) {
		f.Add([]byte(m.Frame))
	}
	for _, l := range lenientFrames(f) {
		f.Add([]byte(l.Frame))
	}
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(frames, dir, "*.json"))
		if err != nil || len(paths) == 0 {
			f.Fatalf("no frames in %s: %v", dir, err)
		}
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(bytes.TrimSuffix(b, []byte("\n")))
		}
	}
}

// refusals are the codes that DecodeInbound promises.
var refusals = []Code{CodeBadJSON, CodeNotObject, CodeTooDeep, CodeUnknownType, CodeMissingField, CodeWrongType, CodeTooLarge, CodeNotSupported}

func FuzzDecodeInbound(f *testing.F) {
	seed(f, "to_host")
	f.Fuzz(func(t *testing.T, frame []byte) {
		var fast, slow fields
		if scan(string(frame), &fast) {
			if err := decodeSlowly(frame, &slow); err != nil {
				t.Fatalf("scan accepts what the library refuses: %v", err)
			}
			if fast != slow {
				t.Fatalf("scan reads %q, the library %q", fast, slow)
			}
		}
		var rough fields
		if slow = (fields{}); decodeSlowly(frame, &slow) == nil && scanTo(string(frame), &rough, anyDepth) && rough != slow {
			t.Fatalf("a scan of any depth reads %q, the library %q", rough, slow)
		}
		for _, d := range []Dialect{{}, {Caps: everything.Caps}, everything, {V11, CapAudio}, {Protocol: V11}} {
			decodeTwice(t, frame, d)
		}
	})
}

// decodeTwice checks that what d understands of a frame survives being written,
// and that 1.0 understands nothing of 1.1.
func decodeTwice(t *testing.T, frame []byte, d Dialect) {
	t.Helper()
	buffer := bytes.Clone(frame)
	in, err := DecodeInboundAs(buffer, d)
	if err != nil {
		if !slices.Contains(refusals, err.Code) {
			t.Fatalf("code %q is not in the list", err.Code)
		}
		if answer := err.Append(nil); !json.Valid(answer) || !utf8.Valid(answer) || len(answer) > MaxFrame {
			t.Fatalf("the answer is no frame: %s", answer)
		}
		return
	}
	if !utf8.Valid(frame) {
		return // the connection ends before such a frame is decoded
	}
	for _, typo := range Typos(frame) {
		if typo.Found == typo.Meant {
			t.Fatalf("%s: %s is no typo", frame, typo.Found)
		}
	}
	again := in.Append(nil)
	clear(buffer) // the buffer may be used again
	back, err := DecodeInboundAs(again, d)
	if err != nil {
		t.Fatalf("%s became %s: %v", frame, again, err)
	}
	switch in.Type {
	case TypeRegister, TypePing, TypePong, TypeRegisterAck, TypePlatformStatus:
		in.MessageID = "" // answers to these have no use for it
	}
	if in.Type == TypeRegister && len(in.Register.Capabilities) == 0 {
		in.Register.Capabilities = []string{}
	}
	if in.Lenient = 0; back.Lenient != 0 {
		t.Fatalf("%s: what was written is not as the protocol has it: %s", again, back.Lenient.Names())
	}
	if !reflect.DeepEqual(in, back) {
		t.Fatalf("%s\nwas  %+v\nback %+v", frame, in, back)
	}
	if d.Protocol == V10 {
		plain := Inbound{
			Type: in.Type, Register: in.Register, Routing: in.Routing, UserID: in.UserID, UserName: in.UserName, Text: in.Text, Action: in.Action, MessageID: in.MessageID,
		}
		if _, ok := later[in.Type]; ok || !reflect.DeepEqual(*in, plain) {
			t.Fatalf("%s\nis read under 1.0 as %+v", frame, in)
		}
	}
}

// The walk over valid JSON finds what the library does.
func FuzzWalk(f *testing.F) {
	for _, s := range []string{
		`{}`, `{ }`, `[]`, `[ ]`, `{"a":1,"b":[{"c":"}"}],"a":"\\"}`, `[1 , "]" , [[],{}] ,null]`, `{"\u0061" : {"a":true} , "" : -1e3 }`,
		`{"a":{"type":"]"},"type":"text"}`, someParts, string(toHostV11["v11_form_submit"].Later.Values), `{"\ud800":0}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		raw = strings.Trim(raw, " \t\r\n")
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(raw), &object) == nil && object != nil && utf8.ValidString(raw) {
			found := map[string]json.RawMessage{}
			for name, value := range members(raw) {
				found[name] = json.RawMessage(value)
			}
			if !reflect.DeepEqual(found, object) || isEmpty(raw) != (len(object) == 0) {
				t.Fatalf("%s: found %s, the library %s", raw, found, object)
			}
			names := slices.Collect(maps.Keys(object))
			values := make([]string, len(names))
			pick(raw, names, values)
			for i, n := range names {
				if values[i] != string(object[n]) {
					t.Fatalf("%s: %q is %s, the library says %s", raw, n, values[i], object[n])
				}
			}
		}
		var array []json.RawMessage
		if json.Unmarshal([]byte(raw), &array) == nil && array != nil {
			n := 0
			for i, value := range elements(raw) {
				if i != n || value != string(array[i]) {
					t.Fatalf("%s: element %d is %s, the library says %s", raw, i, value, array[n])
				}
				n++
			}
			if n != len(array) || isEmpty(raw) != (n == 0) {
				t.Fatalf("%s: %d elements, the library finds %d", raw, n, len(array))
			}
		}
	})
}

func FuzzDecodeOutbound(f *testing.F) {
	seed(f, "to_adapter")
	f.Fuzz(func(t *testing.T, frame []byte) {
		out, err := DecodeOutbound(frame)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error says nothing")
			}
			return
		}
		if fast, slow := decodeOrdinary(string(frame)), readByLibrary(string(frame)); fast != nil && slow != nil && !reflect.DeepEqual(fast, slow) {
			t.Fatalf("%s\nread as\n%+v, the library says\n%+v", frame, fast, slow)
		}
		if !isType(out.Type) {
			return // of a later protocol
		}
		first := out.encode()
		if !json.Valid(first) {
			t.Fatalf("encoded as %s", first)
		}
		back, err := DecodeOutbound(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second := back.encode(); !bytes.Equal(first, second) {
			t.Fatalf("encoded as\n%s, then as\n%s", first, second)
		}
		switch out.Type {
		case TypeRegisterAck, TypePong, TypeError, TypeMessageAck, TypeUploadAck:
			return
		}
		bare := len(out.Append(nil, Routing{})) - Routing{}.Overhead()
		if anonymous := *out; out.Type != TypeStartTyping && out.Type != TypeStopTyping {
			anonymous.MessageID = ""
			if got := len(anonymous.encode()) + IDOverhead(out.MessageID); got != len(first) {
				t.Fatalf("%d bytes, with the message_id %d are expected", len(first), got)
			}
		}
		if got := len(first) - out.Overhead(); got != bare {
			t.Fatalf("%d bytes beside the routing, %d without any", got, bare)
		}
	})
}

// readByLibrary is what decodeAny reads; nil if it refuses the frame, or may read what
// the fast path ignores: names in another case, and what belongs to other types.
func readByLibrary(frame string) *Outbound {
	if !json.Valid([]byte(frame)) || frame[space(frame, 0)] != '{' {
		return nil
	}
	for name := range members(frame[space(frame, 0):]) {
		if keyIndex(name) < 0 {
			return nil
		}
	}
	out, err := decodeAny([]byte(frame))
	if err != nil {
		return nil
	}
	return out
}

func isType(t Type) bool {
	for _, frames := range []map[string]*Outbound{toAdapter, toAdapterV11} {
		for _, o := range frames {
			if o.Type == t {
				return true
			}
		}
	}
	return false
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "żółć 漢字 👩‍👩‍👧", "\xff", "a\xc3", "\xed\xa0\x80", "\u2028\u2029\ufeff", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString([]byte("x"), s)[1:]
		if len(got) != StringLen(s) {
			t.Fatalf("%d bytes, StringLen says %d", len(got), StringLen(s))
		}
		if !utf8.Valid(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		var back, want string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(std, &want); err != nil {
			t.Fatal(err)
		}
		if back != want {
			t.Fatalf("reads as %q, the library's as %q", back, want)
		}
		if utf8.ValidString(s) && back != s {
			t.Fatalf("%q reads as %q", s, back)
		}
	})
}

func FuzzCard(f *testing.F) {
	for name, o := range toAdapter {
		if o.Type == TypeSendCard {
			b, err := json.Marshal(o.Card)
			if err != nil {
				f.Fatal(name, err)
			}
			f.Add(b)
			f.Add(o.Card.Append(nil))
		}
	}
	f.Add([]byte(`{"elements":[null,{},{"type":"hologram"},{"type":"actions","buttons":[[],null]},{"type":"select","options":null}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var card Card
		if json.Unmarshal(b, &card) != nil {
			return
		}
		if err := card.Validate(); err != nil && !strings.Contains(err.Error(), ": ") {
			t.Fatalf("%v names no field", err)
		}
		for _, both := range []bool{true, false} {
			first := card.append(nil, both)
			if !json.Valid(first) {
				t.Fatalf("encoded as %s", first)
			}
			var back Card
			if err := json.Unmarshal(first, &back); err != nil {
				t.Fatalf("%s: %v", first, err)
			}
			if second := back.append(nil, both); !bytes.Equal(first, second) {
				t.Fatalf("encoded as\n%s, then as\n%s", first, second)
			}
			if (card.Validate() == nil) != (back.Validate() == nil) {
				t.Fatalf("valid as %v, then as %v", card.Validate(), back.Validate())
			}
		}
	})
}
