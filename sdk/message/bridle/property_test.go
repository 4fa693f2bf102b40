package bridle

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/message/internal/convtest"
)

var (
	base64s    = []string{`"AAAA"`, `"iVBORw0KGgo="`, `"\/9j\/4AAQSkZJRg=="`, `"!"`}
	mediaTypes = []string{`"image/png"`, `"image/jpeg"`, `"application/pdf"`, `"text/html"`, `""`}
	addresses  = []string{`"https://cdn.example.com/a.png"`, `"u"`, `"%"`, `""`}
)

func bridlePart(t *rapid.T) map[string]json.RawMessage {
	typ := convtest.Pick(t, "type", TypeText, TypeText, TypeImage, TypeImage, TypeFile, TypeFile, TypeUI, TypeUISubmit, "hologram", "Text", "vision", "citation", "custom", "tool-call", "text-delta")
	p := map[string]json.RawMessage{"type": quote(typ)}
	switch typ {
	case TypeText:
		convtest.Field(t, p, "text", convtest.SomeText(t))
	case TypeImage:
		convtest.Field(t, p, "base64", base64s...)
		convtest.Field(t, p, "mediaType", mediaTypes...)
	case TypeFile, "vision":
		convtest.Field(t, p, "url", addresses...)
		convtest.Field(t, p, "name", convtest.SomeText(t))
		convtest.Field(t, p, "mimeType", mediaTypes...)
	case TypeUI, TypeUISubmit:
		convtest.Field(t, p, "uiId", convtest.SomeText(t))
		convtest.Field(t, p, "components", `[{"type":"heading","text":"h"}]`)
		convtest.Field(t, p, "values", `{"a":"b","c":true,"d":["e"]}`)
	}
	convtest.More(t, p)
	return p
}

func list(t *rapid.T, label string, element func(*rapid.T) map[string]json.RawMessage) json.RawMessage {
	all := make([]map[string]json.RawMessage, rapid.IntRange(0, 3).Draw(t, label))
	for i := range all {
		all[i] = element(t)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// olderPicture is an image that the older form takes.
func olderPicture(t *rapid.T) map[string]json.RawMessage {
	p := map[string]json.RawMessage{"base64": json.RawMessage(convtest.Pick(t, "base64", base64s[:3]...))}
	convtest.Field(t, p, "mediaType", mediaTypes...)
	convtest.More(t, p)
	return p
}

func bridleMessage(t *rapid.T) string {
	all := map[string]json.RawMessage{}
	if !convtest.OneIn(t, 3, "noText") {
		all["text"] = json.RawMessage(convtest.Pick(t, "text", convtest.SomeText(t), convtest.SomeText(t), convtest.SomeText(t), "null"))
	}
	if convtest.OneIn(t, 2, "parts") {
		all["parts"] = list(t, "partCount", bridlePart)
	}
	if convtest.OneIn(t, 3, "images") {
		all["images"] = list(t, "imageCount", olderPicture)
	}
	if convtest.OneIn(t, 4, "agentId") {
		all["agentId"] = json.RawMessage(convtest.Pick(t, "agentId", convtest.SomeText(t), "null"))
	}
	convtest.More(t, all)
	if id, ok := all["agentId"]; ok && id[0] != '"' && id[0] != 'n' {
		delete(all, "agentId")
	}
	if s, ok := all["text"]; ok && s[0] != '"' && s[0] != 'n' {
		delete(all, "text")
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// says reports whether a message has anything to say.
func says(raw string) bool {
	var m map[string]json.RawMessage
	var parts, images []json.RawMessage
	if json.Unmarshal([]byte(raw), &m) != nil {
		return false
	}
	_ = json.Unmarshal(m["parts"], &parts)   // if absent there are none
	_ = json.Unmarshal(m["images"], &images) // likewise
	return len(parts)+len(images) > 0 || m["text"] != nil && string(m["text"]) != "null"
}

func TestBridleReturns(t *testing.T) {
	t.Parallel()
	n, silent := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		raw := bridleMessage(t)
		side := rapid.SampledFrom([]Side{Browser, Agent}).Draw(t, "side")
		if says(raw) {
			returns(t, raw, side)
			return
		}
		silent++
		m, err := Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Canonical(); !errors.Is(err, message.ErrNoContent) {
			t.Fatalf("%s: %v", raw, err)
		}
	})
	t.Logf("%d messages there and back, %d of them with nothing to say", n, silent)
}

// carried says by the table of the specification which parts Bridle has.
func carried(p message.Part) bool {
	var all map[string]json.RawMessage
	if json.Unmarshal(p.Raw(), &all) != nil {
		return false
	}
	has := func(name string) bool {
		var s string
		return json.Unmarshal(all[name], &s) == nil && s != ""
	}
	var rest struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(all[kept], &rest) // not there, as a rule
	switch p.Type {
	case message.TypeText, message.TypeUI, message.TypeUISubmit:
		return true
	case message.TypeVision:
		return has("data") || has("url") || rest.Type == p.Type
	case message.TypeFile:
		return has("url") || rest.Type == p.Type
	}
	_, err := p.View()
	return errors.Is(err, message.ErrUnknownType) || rest.Type == p.Type
}

func TestFromTellsLosses(t *testing.T) {
	t.Parallel()
	n, parts, lost := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		m := convtest.AnyMessage(t, kept, `{"noText":true}`, `{"images":true,"rest":{"mood":1,"images":[{"base64":"AAAA"}]}}`, `{"rest":{"text":5}}`)
		out, losses := From(&m)
		if _, ok := m.Meta[kept]; ok || n%10 == 0 { // else there is nothing foreign in it
			raw, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse(raw); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
		}
		parts += len(m.Parts)
		lost += convtest.Told(t, &m, losses, carried, func(p message.Part, text string) bool {
			return p.Type == message.TypeFile || shows(out, text)
		})
	})
	t.Logf("%d messages of %d parts, %d of which are told as losses", n, parts, lost)
}

func shows(m Message, text string) bool {
	for _, p := range m.Parts {
		if p.Type() == TypeText && p.String("text") == text {
			return true
		}
	}
	return len(m.Parts) == 0 && m.Text != nil && *m.Text == text // the older form
}

func FuzzParse(f *testing.F) {
	for _, g := range convtest.Files[golden](f) {
		f.Add([]byte(g.Bridle), g.Side == Agent)
	}
	f.Fuzz(func(t *testing.T, b []byte, agent bool) {
		m, err := Parse(b)
		if err != nil || !utf8.Valid(b) {
			return
		}
		side := Browser
		if m.Side = side; agent {
			side, m.Side = Agent, Agent
		}
		if _, err := m.Canonical(); err == nil {
			returns(t, string(b), side)
		}
	})
}
