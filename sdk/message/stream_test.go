package message

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

func TestComplete(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"none":       {`[{"type":"text","text":"a"}]`, `[{"type":"text","text":"a"}]`},
		"one run":    {`[{"type":"text-delta","delta":"a"},{"type":"text-delta","delta":"b"}]`, `[{"type":"text","text":"ab"}]`},
		"two runs":   {`[{"type":"text-delta","delta":"a"},{"type":"x"},{"type":"text-delta","delta":"b"}]`, `[{"type":"text","text":"a"},{"type":"x"},{"type":"text","text":"b"}]`},
		"by id":      {`[{"type":"text-delta","id":"1","delta":"a"},{"type":"text-delta","id":"2","delta":"x"},{"type":"text-delta","id":"1","delta":"b"}]`, `[{"type":"text","id":"1","text":"ab"},{"type":"text","id":"2","text":"x"}]`},
		"id and run": {`[{"type":"text-delta","delta":"a"},{"type":"text-delta","id":"2","delta":"x"},{"type":"text-delta","delta":"b"}]`, `[{"type":"text","text":"ab"},{"type":"text","id":"2","text":"x"}]`},
		"malformed":  {`[{"type":"text-delta","delta":1}]`, `[{"type":"text-delta","delta":1}]`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(AppendParts(nil, Complete(parse(t, c.in)))); got != c.want {
				t.Errorf("found    %s\nexpected %s", got, c.want)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	for name, c := range map[string]struct{ have, next, want string }{
		"append":     {`[{"type":"a"}]`, `[{"type":"a"}]`, `[{"type":"a"},{"type":"a"}]`},
		"same id":    {`[{"type":"a","id":"1","v":1},{"type":"b"}]`, `[{"type":"a","id":"1","v":2}]`, `[{"type":"a","id":"1","v":2},{"type":"b"}]`},
		"other type": {`[{"type":"a","id":"1"}]`, `[{"type":"b","id":"1"}]`, `[{"type":"a","id":"1"},{"type":"b","id":"1"}]`},
		"deltas":     {`[{"type":"text-delta","id":"1","delta":"a"}]`, `[{"type":"text-delta","id":"1","delta":"b"}]`, `[{"type":"text-delta","id":"1","delta":"a"},{"type":"text-delta","id":"1","delta":"b"}]`},
		"transcript": {
			`[{"type":"transcript","id":"p1","role":"user","text":"hel","interim":true},{"type":"transcript","role":"agent","text":"x","interim":true}]`,
			`[{"type":"transcript","role":"user","text":"hello","interim":false}]`,
			`[{"type":"transcript","role":"user","text":"hello","interim":false,"id":"p1"},{"type":"transcript","role":"agent","text":"x","interim":true}]`,
		},
		"transcript by id": {
			`[{"type":"transcript","id":"t","role":"user","text":"hel","interim":true}]`, `[{"type":"transcript","id":"t","role":"user","text":"hello","interim":false}]`,
			`[{"type":"transcript","id":"t","role":"user","text":"hello","interim":false}]`,
		},
		"transcript after a final": {
			`[{"type":"transcript","role":"user","text":"one","interim":false}]`, `[{"type":"transcript","role":"user","text":"two","interim":true}]`,
			`[{"type":"transcript","role":"user","text":"one","interim":false},{"type":"transcript","role":"user","text":"two","interim":true}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(AppendParts(nil, Merge(parse(t, c.have), parse(t, c.next)...))); got != c.want {
				t.Errorf("found    %s\nexpected %s", got, c.want)
			}
		})
	}
}

func TestContent(t *testing.T) {
	for name, c := range map[string]struct{ in, text, parts, meta string }{
		"text":           {`{"text":"a"}`, "a", ``, ""},
		"empty text":     {`{"text":""}`, "", ``, ""},
		"parts":          {`{"parts":[{"type":"text","text":"a"},{"type":"x"},{"type":"text","text":"b"}]}`, "a\nb", `[{"type":"text","text":"a"},{"type":"x"},{"type":"text","text":"b"}]`, ""},
		"both agree":     {`{"text":"a","parts":[{"type":"text","text":"a"}]}`, "a", `[{"type":"text","text":"a"}]`, ""},
		"both differ":    {`{"text":"b","parts":[{"type":"text","text":"a"}]}`, "a", `[{"type":"text","text":"a"}]`, "b"},
		"images":         {`{"text":"a","images":[{"base64":"iVBORw0KGgo="}]}`, "a", `[{"type":"text","text":"a"},{"type":"vision","kind":"input","mimeType":"image/png","data":"iVBORw0KGgo="}]`, ""},
		"images alone":   {`{"images":[{"base64":"AAAA","mediaType":"image/gif"}]}`, "", `[{"type":"vision","kind":"input","mimeType":"image/gif","data":"AAAA"}]`, ""},
		"parts win over": {`{"images":[{"base64":"AAAA","mediaType":"image/gif"}],"parts":[{"type":"x"}]}`, "", `[{"type":"x"}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var in Content
			if err := json.Unmarshal([]byte(c.in), &in); err != nil {
				t.Fatal(err)
			}
			m, err := in.Message(RoleUser)
			if err != nil {
				t.Fatal(err)
			}
			if m.Text != c.text || string(AppendParts(nil, m.Parts)) != c.parts || m.Meta.String(MetaText) != c.meta {
				t.Errorf("%q, %s, %s", m.Text, AppendParts(nil, m.Parts), m.Meta)
			}
			if want := c.meta; want != "" && m.Given() != want || want == "" && m.Given() != c.text {
				t.Errorf("given %q", m.Given())
			}
		})
	}
	if _, err := (Content{}).Message(RoleUser); !errors.Is(err, ErrNoContent) {
		t.Errorf("neither text nor parts: %v", err)
	}
	if _, err := (Content{Images: []Picture{{Base64: "%"}}}).Message(RoleUser); err == nil {
		t.Error("an image that is no base64 is taken")
	}
}

// A plain text message has no parts until somebody asks.
func TestPlainTextAllocatesNoPart(t *testing.T) {
	given := "hello"
	c := Content{Text: &given}
	var m Message
	if n := testing.AllocsPerRun(100, func() { m, _ = c.Message(RoleUser) }); n != 0 || m.Parts != nil {
		t.Errorf("%v allocations, parts %v", n, m.Parts)
	}
	if all := m.All(); len(all) != 1 || all[0].Type != TypeText || all[0].id() == "" {
		t.Errorf("asked for, they are %s", AppendParts(nil, all))
	}
}

func FuzzParts(f *testing.F) {
	for _, p := range golden[[]Part](f, "parts.json") {
		f.Add([]byte("[" + string(p.Raw()) + "]"))
	}
	f.Add(AppendParts(nil, Alone("Hello, \u00e9\ufffd")))
	f.Add([]byte(`[{"type":"text","text":"","id":"p1"}]`))
	f.Add([]byte("[{\"type\":\"text\",\"text\":\"\t\",\"id\":\"p1\"}]"))
	f.Fuzz(func(t *testing.T, in []byte) {
		parts, err := ParseParts(in)
		if err != nil {
			return
		}
		kept := string(AppendParts(nil, parts))
		var want []Part // by the library
		if err := json.Unmarshal(in, &want); len(in) > 0 && (err != nil || !reflect.DeepEqual(parts, want)) {
			t.Fatalf("%q: read %s, the library reads %s, %v", in, kept, AppendParts(nil, want), err)
		}
		for _, p := range parts {
			_, _ = p.View()
			if text, err := As[TextPart](p); err == nil && p.Plain() != text.Text {
				t.Fatalf("%s: its text is %q", p.Raw(), p.Plain())
			}
		}
		again, err := ParseParts([]byte(kept))
		if len(parts) > 0 && (err != nil || string(AppendParts(nil, again)) != kept) {
			t.Fatalf("%s came back as %s, %v", kept, AppendParts(nil, again), err)
		}
		_ = RollUp(parts)
		admitted, warnings, err := Admit(parts, HostLimits())
		if err == nil && Validate(admitted, HostLimits()).Over() != nil {
			t.Fatalf("admitted over the limits, with %v", warnings)
		}
		done := Number(Complete(Merge(nil, admitted...)))
		if _, err := ParseParts(AppendParts(nil, done)); err != nil {
			t.Fatal(err)
		}
	})
}
