package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func parse(t *testing.T, raw string) []Part {
	t.Helper()
	parts, err := ParseParts([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func TestPartsKeepTheirBytes(t *testing.T) {
	raw := `[{"type":"text","text":"<b> \u00e9 é","x": 1.0 ,"id":"a"},{ "y":12345678901234567890, "type":"hologram","a":1,"a":2},{"type":"vision","data":"AAAA","nested":{"type":"text"}}]`
	parts := parse(t, raw)
	if got := string(AppendParts(nil, parts)); got != raw {
		t.Errorf("got  %s\nwant %s", got, raw)
	}
	if parts[1].Type != "hologram" {
		t.Errorf("unknown type read as %q", parts[1].Type)
	}
	if got := string(parts[1].Raw()); got != `{ "y":12345678901234567890, "type":"hologram","a":1,"a":2}` {
		t.Errorf("Raw() = %s", got)
	}
	marshalled, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(raw)); err != nil {
		t.Fatal(err)
	}
	if want := strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(compact.String()); string(marshalled) != want {
		t.Errorf("marshalled as %s, want %s", marshalled, want)
	}
}

func TestPartsAreOfTheirOwn(t *testing.T) {
	raw := []byte(`[{"type":"text","text":"a"}]`)
	parts, err := ParseParts(raw)
	if err != nil {
		t.Fatal(err)
	}
	clear(raw)
	if got := string(parts[0].Raw()); got != `{"type":"text","text":"a"}` {
		t.Errorf("the part uses the caller's buffer: %q", got)
	}
}

func TestParseParts(t *testing.T) {
	for name, raw := range map[string]string{
		"errNoType": `[{"text":"a"}]`, "errNullType": `[{"type":null}]`, "errEmptyType": `[{"type":""}]`, "errTypeNumber": `[{"type":1}]`,
		"errNull": `[null]`, "errString": `["text"]`, "errObject": `{"type":"text"}`, "errBroken": `[{"type":"text"`,
	} {
		t.Run(name, func(t *testing.T) {
			if parts, err := ParseParts([]byte(raw)); err == nil {
				t.Errorf("accepted as %v", parts)
			} else if !strings.HasPrefix(err.Error(), "parts: ") {
				t.Errorf("error is %q", err)
			}
		})
	}
	for _, raw := range []string{"", "null", "[]"} {
		if parts, err := ParseParts([]byte(raw)); err != nil || len(parts) != 0 {
			t.Errorf("%q: %v, %v", raw, parts, err)
		}
	}
	if got := AppendParts([]byte("x"), nil); string(got) != "x" {
		t.Errorf("no parts are %s", got)
	}
}

func TestRollUp(t *testing.T) {
	for raw, want := range map[string]string{
		`[]`:                           "",
		`[{"type":"text","text":"a"}]`: "a",
		`[{"type":"text","text":" a "},{"type":"markdown","markdown":"no"},{"type":"text","text":""},{"type":"text","text":"b\n"}]`: " a \n\nb\n",
		`[{"type":"hologram","text":"no"}]`:                     "",
		`[{"type":"text","text":1},{"type":"text","text":"b"}]`: "b",
	} {
		if got := RollUp(parse(t, raw)); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
	m := New(NewText("a"), NewCard(&wire.Card{Header: &wire.Header{Title: "t"}}), NewText("b"))
	if m.Text != "a\nb" || m.Role != RoleAgent || m.Status != StatusCompleted || len(m.Parts) != 3 {
		t.Errorf("New: %+v", m)
	}
	if m := Text("a"); m.Text != "a" || m.Parts != nil || m.Role != RoleAgent || m.Status != StatusCompleted {
		t.Errorf("Text: %+v", m)
	}
}

func TestAlone(t *testing.T) {
	for _, text := range []string{"", "a", "<b>\u2028é\x01\"\\\xff"} {
		got, err := json.Marshal(Alone(text))
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(Number([]Part{NewText(text)}))
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal(want, &b)); err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%q: %s, want %s, %v", text, got, want, err)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"none", `[{"type":"a"},{"type":"b","x":{}}]`, `[{"type":"a","id":"p1"},{"type":"b","x":{},"id":"p2"}]`},
		{"some", `[{"id":"mine","type":"a"},{"type":"b"}]`, `[{"id":"mine","type":"a"},{"type":"b","id":"p2"}]`},
		{"taken", `[{"type":"a"},{"id":"p1","type":"b"},{"type":"c"}]`, `[{"type":"a","id":"p4"},{"id":"p1","type":"b"},{"type":"c","id":"p3"}]`},
		{"takenLater", `[{"id":"p2","type":"a"},{"type":"b"},{"id":"p5","type":"c"}]`, `[{"id":"p2","type":"a"},{"type":"b","id":"p8"},{"id":"p5","type":"c"}]`},
		{"empty", `[{"id":"","type":"a"}]`, `[{"id":"","type":"a","id":"p1"}]`},
		{"null", `[{"id":null,"type":"a"}]`, `[{"id":null,"type":"a","id":"p1"}]`},
		{"number", `[{"id":42,"type":"a"}]`, `[{"id":42,"type":"a"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := Number(parse(t, c.in))
			if got := string(AppendParts(nil, parts)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			seen := map[string]bool{}
			for _, p := range parts {
				if id := p.id(); id == "" || seen[id] {
					t.Errorf("id %q of %s is empty or not the only one", id, p.Raw())
				} else {
					seen[id] = true
				}
			}
			if again := string(AppendParts(nil, Number(parts))); again != c.want {
				t.Errorf("numbered again: %s", again)
			}
		})
	}
}

func TestMeta(t *testing.T) {
	var m Meta
	if m.String("a") != "" {
		t.Error("no metadata has a value")
	}
	m = m.With("a", "x\"<\n").With("b", "y")
	if m.String("a") != "x\"<\n" || m.String("b") != "y" {
		t.Errorf("got %q", m)
	}
	m["n"] = json.RawMessage("42")
	if m.String("n") != "" {
		t.Error("a number is a string")
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back Meta
	if err := json.Unmarshal(b, &back); err != nil || back.String("a") != m.String("a") {
		t.Errorf("%s reads as %v, %v", b, back, err)
	}
}

// Each constructor makes a part that reads back as what it was made of.
func TestConstructors(t *testing.T) {
	card := &wire.Card{Header: &wire.Header{Title: "t"}, Elements: []wire.Element{{Type: wire.ElementNote, Text: "<n>"}}}
	rows := [][]wire.Button{{{Text: "a", Value: "b", Style: "primary"}}}
	form := UIPart{UIID: "f", Components: []UIComponent{{Type: "checkbox", Name: "c", Default: json.RawMessage("true")}}, Submit: &UISubmit{"Send"}}

	reads(t, NewText("<a>"), TypeText, TextPart{Text: "<a>"})
	reads(t, NewImage(wire.Image{URL: "u", Path: "p", Caption: "c"}), TypeVision, VisionPart{Kind: VisionOutput, URL: "u", Path: "p", Caption: "c"})
	reads(t, NewFile(wire.File{URL: "u", Path: "p", Filename: "f", Caption: "c"}), TypeFile, FilePart{FileName: "f", URL: "u", Path: "p", Caption: "c"})
	reads(t, NewForm(form), TypeUI, form)

	for _, c := range []struct {
		part    Part
		payload string
		to      any
		want    any
	}{
		{NewCard(card), PayloadCard, &wire.Card{}, card},
		{NewButtons("x", rows), PayloadButtons, &Offer{}, &Offer{"x", rows}},
	} {
		custom, err := As[CustomPart](c.part)
		if err != nil || c.part.Type != TypeCustom || custom.PayloadType != c.payload {
			t.Errorf("%s: %+v, %v", c.payload, custom, err)
			continue
		}
		if err := json.Unmarshal(custom.Data, c.to); err != nil || !reflect.DeepEqual(c.to, c.want) {
			t.Errorf("%s: %+v, %v", c.payload, c.to, err)
		}
	}
}

func reads[T View](t *testing.T, p Part, typ string, want T) {
	t.Helper()
	got, err := As[T](p)
	if err != nil || !reflect.DeepEqual(got, want) || p.Type != typ {
		t.Errorf("%s: %+v, %v, want %+v", p.Type, got, err, want)
	}
	var back Part
	if err := json.Unmarshal(p.Raw(), &back); err != nil || back.Type != typ {
		t.Errorf("%s: %v", p.Raw(), err)
	}
}

func TestAsNamesThePart(t *testing.T) {
	_, err := As[TextPart](parse(t, `[{"type":"text","text":[]}]`)[0])
	if err == nil || !strings.HasPrefix(err.Error(), "text part: ") || !strings.Contains(err.Error(), "text") {
		t.Errorf("error is %v", err)
	}
}
