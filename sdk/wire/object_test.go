package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// What the fast path reads, the library reads the same.
func FuzzReadObject(f *testing.F) {
	golden, err := filepath.Glob("../protocol/agent_frames/*/*.json")
	if err != nil || len(golden) == 0 {
		f.Fatalf("golden frames: %v, %v", golden, err)
	}
	for _, name := range golden {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	for _, s := range []string{
		"", "null", "{}", " { } ", `{"a":1}`, `{"a":1,"a":"2"}`, `{"a":1,}`, `{,"a":1}`, `{"a" : [1, {"b":"}"}] , "c":null}`, `{"a":01}`, `{"a":"\q"}`,
		`{"a\u0062":1}`, `{"a":1}}`, `{"a":1} x`, `{"a":tru}`, `{"a":"x`, `{"a":{"b":[}}`, `["a"]`, `{"a":"\"","b":-1.5e3}`, `{"a":1 "b":2}`, "{\"a\":\"\t\"}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := readOrdinary(s)
		if got == nil || !utf8.ValidString(s) { // which the transport refuses
			return
		}
		var want map[string]json.RawMessage
		err := json.Unmarshal([]byte(s), &want)
		same := err == nil
		for _, m := range got {
			same = same && got.raw(m.name) == string(want[m.name])
		}
		for name, raw := range want {
			same = same && got.raw(name) == string(raw)
		}
		if !same {
			t.Errorf("%q: read %q, the library reads %q, %v", s, got, want, err)
		}
	})
}

func TestReadObjectIsFast(t *testing.T) {
	if o := readOrdinary(`{"type":"message","turn_id":"04hqk3m2p8001","text":"Sunny.\n","parts":[{"type":"text","text":"Sunny."}],"more":true}`); len(o) != 5 {
		t.Errorf("an ordinary frame is read as %q", o)
	}
}
