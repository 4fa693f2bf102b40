package message

import (
	"encoding/json"
	"testing"
)

func TestEdit(t *testing.T) {
	for _, c := range []struct{ name, raw, url, at, without string }{
		{"replaced", `{ "url" : "a", "type":"vision","x":1.50 }`, "a", `{"type":"vision","x":1.50,"url":"b"}`, `{"type":"vision","x":1.50}`},
		{"added", `{"type":"file"}`, "", `{"type":"file","url":"b"}`, `{"type":"file"}`},
		{"repeated", `{"url":1,"type":"audio-input","\u0075rl":"a"}`, "a", `{"type":"audio-input","url":"b"}`, `{"type":"audio-input"}`},
		{"nested stays", `{"type":"audio-output","data":{"url":"x"},"url":null}`, "", `{"type":"audio-output","data":{"url":"x"},"url":"b"}`, `{"type":"audio-output","data":{"url":"x"}}`},
		{"citation has none", `{"type":"citation","url":"a"}`, "", `{"type":"citation","url":"b"}`, `{"type":"citation"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p Part
			if err := json.Unmarshal([]byte(c.raw), &p); err != nil {
				t.Fatal(err)
			}
			if got := p.Address(); got != c.url {
				t.Errorf("Address: %q, want %q", got, c.url)
			}
			if got := string(p.At("b").Raw()); got != c.at {
				t.Errorf("At: %s, want %s", got, c.at)
			}
			if got := string(p.Without("url", "absent").Raw()); got != c.without {
				t.Errorf("Without: %s, want %s", got, c.without)
			}
			if string(p.Raw()) != c.raw {
				t.Errorf("the part itself became %s", p.Raw())
			}
		})
	}
	untouched := NewText("a")
	if got := untouched.Without("url"); string(got.Raw()) != string(untouched.Raw()) {
		t.Errorf("Without changed %s", got.Raw())
	}
}

func TestNamed(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"file","path":"/a/b.txt"}`:               `{"type":"file","path":"/a/b.txt","fileName":"b.txt"}`,
		`{"type":"file","fileName":"","path":"/a/b.txt"}`: `{"type":"file","path":"/a/b.txt","fileName":"b.txt"}`,
		`{"type":"file","fileName":"c","path":"/b.txt"}`:  `{"type":"file","fileName":"c","path":"/b.txt"}`,
		`{"type":"vision","path":"/a/b.png"}`:             `{"type":"vision","path":"/a/b.png"}`,
	} {
		var p Part
		if err := json.Unmarshal([]byte(raw), &p); err != nil {
			t.Fatal(err)
		}
		if got := string(p.Named("b.txt").Raw()); got != want {
			t.Errorf("%s became %s, want %s", raw, got, want)
		}
	}
}
