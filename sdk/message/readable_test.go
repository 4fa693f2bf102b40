package message

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestReadable(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for raw, want := range map[string]string{
		`{"a":[1]}`: AsIs, `"[[["`: AsIs, deep(MaxDepth): AsIs, deep(MaxDepth + 1): AsJSON, deep(9_999): AsJSON,
		strings.Repeat("9", 300): AsIs, strings.Repeat("9", 400): AsJSON, strings.Repeat("1", 5_000): AsJSON, `"` + strings.Repeat("1", 5_000) + `"`: AsIs,
		`{"a":[-1.5e3,1e308,-1e-999999]}`: AsIs, `1e309`: AsJSON, `{"a":[0,{"b":-1e999999}]}`: AsJSON, `0.` + strings.Repeat("1", MaxNumber): AsJSON,
		``: AsBase64, `{`: AsBase64, deep(20_000): AsBase64, "\"\xff\"": AsBase64, `{"a":1}}`: AsBase64,
	} {
		if _, how := Readable([]byte(raw)); how != want {
			t.Errorf("%.40s: as %q, expected %q", raw, how, want)
		}
	}
}

// strict is why the usual parsers fail at valid JSON: Go's, which wants a float64,
// Python's, which takes 4,300 digits, and those that recurse.
func strict(raw []byte) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for levels := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case json.Delim:
			if levels++; token == '}' || token == ']' {
				levels -= 2
			}
			if levels > MaxDepth {
				return errors.New("too deep")
			}
		case json.Number:
			if len(token) > 4_300 {
				return errors.New("too many digits")
			}
		}
	}
}

// What Readable and ReadMeta give, every reader takes, and none of it is lost.
func FuzzReadable(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, "{\"a\":\"\xff\"}", `{"a":1e999,"b":[` + strings.Repeat("7", 5_000) + `]}`, `[`, "", `{"a":"\"[["}`, `null`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		value, how := Readable(raw)
		if !json.Valid(value) || strict(value) != nil {
			t.Fatalf("%q is given as %q, which is not readable: %v", raw, value, strict(value))
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
		if _, merr := json.Marshal(meta); merr != nil || meta.Check() != nil || err != nil && len(meta)+len(odd) > 0 {
			t.Errorf("%q: %v, %v", meta, merr, err)
		}
		if parts, err := ReadParts(raw); err == nil {
			if _, how := Readable(AppendParts(nil, parts)); len(parts) > 0 && how == AsBase64 {
				t.Errorf("parts %q are not readable", raw)
			}
		}
	})
}
