package message

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

func TestReadable(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for raw, want := range map[string]string{
		`{"a":[1]}`: AsIs, `"[[["`: AsIs, deep(MaxDepth): AsIs, deep(MaxDepth + 1): AsJSON, deep(9_999): AsJSON,
		``: AsBase64, `{`: AsBase64, deep(20_000): AsBase64, "\"\xff\"": AsBase64, `{"a":1}}`: AsBase64,
	} {
		if _, how := Readable([]byte(raw)); how != want {
			t.Errorf("%.40s: as %q, expected %q", raw, how, want)
		}
	}
}

// What Readable and ReadMeta give, every reader takes, and none of it is lost.
func FuzzReadable(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, "{\"a\":\"\xff\"}", `[`, "", `{"a":"\"[["}`, `null`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		value, how := Readable(raw)
		if !json.Valid(value) || depth(value) > MaxDepth {
			t.Fatalf("%q is given as %q, which is not readable", raw, value)
		}
		var given string
		switch how {
		case AsIs:
			given = string(value)
		case AsJSON:
			_ = json.Unmarshal(value, &given)
		case AsBase64:
			_ = json.Unmarshal(value, &given)
			b, _ := base64.StdEncoding.DecodeString(given)
			given = string(b)
		}
		if given != string(raw) {
			t.Errorf("%q came back as %q (%s)", raw, given, how)
		}
		meta, odd, err := ReadMeta(raw)
		if _, merr := json.Marshal(meta); merr != nil || meta.CheckDepth() != nil || err != nil && len(meta)+len(odd) > 0 {
			t.Errorf("%q: %v, %v", meta, merr, err)
		}
		if parts, err := ReadParts(raw); err == nil {
			if _, how := Readable(AppendParts(nil, parts)); len(parts) > 0 && how == AsBase64 {
				t.Errorf("parts %q are not readable", raw)
			}
		}
	})
}
