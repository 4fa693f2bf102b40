package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// seed adds the golden frames of the directories to the corpus.
func seed(f *testing.F, dirs ...string) {
	f.Helper()
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.json"))
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
	seed(f, "to_host", "malformed", "lenient")
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
		kept := bytes.Clone(frame)
		in, err := DecodeInbound(frame)
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
		again := in.Append(nil)
		clear(frame) // the buffer may be used again
		back, err := DecodeInbound(again)
		if err != nil {
			t.Fatalf("%s became %s: %v", kept, again, err)
		}
		if in.Type != TypeMessage && in.Type != TypeCardAction {
			in.MessageID = "" // answers to other types have no use for it
		}
		if in.Type == TypeRegister && len(in.Capabilities) == 0 {
			in.Capabilities = []string{}
		}
		if !reflect.DeepEqual(in, back) {
			t.Fatalf("%s\nwas  %+v\nback %+v", kept, in, back)
		}
	})
}

func FuzzDecodeOutbound(f *testing.F) {
	seed(f, "to_adapter", "lenient")
	f.Fuzz(func(t *testing.T, frame []byte) {
		out, err := DecodeOutbound(frame)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error says nothing")
			}
			return
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
		case TypeRegisterAck, TypePong, TypeError:
			return
		}
		bare := len(out.Append(nil, Routing{})) - Routing{}.Overhead()
		if got := len(first) - out.Overhead(); got != bare {
			t.Fatalf("%d bytes beside the routing, %d without any", got, bare)
		}
	})
}

func isType(t Type) bool {
	for _, o := range toAdapter {
		if o.Type == t {
			return true
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
		first := card.Append(nil)
		if !json.Valid(first) {
			t.Fatalf("encoded as %s", first)
		}
		var back Card
		if err := json.Unmarshal(first, &back); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second := back.Append(nil); !bytes.Equal(first, second) {
			t.Fatalf("encoded as\n%s, then as\n%s", first, second)
		}
		if (card.Validate() == nil) != (back.Validate() == nil) {
			t.Fatalf("valid as %v, then as %v", card.Validate(), back.Validate())
		}
	})
}
