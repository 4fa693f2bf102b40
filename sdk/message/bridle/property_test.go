package bridle

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// checks is how many messages each property sees.
const checks = "10000"

// odd values are put where something else is expected.
var odd = []string{`null`, `42`, `1.0`, `1e400`, `""`, `"x"`, `"<&>\u2028\ud83d\ude00"`, `true`, `[]`, `{}`, `["a",null]`, `{"type":"image","base64":"AAAA"}`}

// names are keys that mean something somewhere, and some that don't.
var names = []string{"id", "ID", "bridle", "path", "Path", "Type", "kind", "data", "Data", "fileName", "mimeType", "url", "URL", "text", "name", "caption",
	"base64", "mediaType", "width", "sizeBytes", "title", "metadata", "noText", "mood", "", "ключ"}

func pick(t *rapid.T, label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(t, label)
}

func oneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(1, n).Draw(t, label) == n }

// someText is a JSON string.
func someText(t *rapid.T) string {
	if !oneIn(t, 4, "drawn") {
		return pick(t, "text", `""`, `"a"`, `"b"`, `"a\nb"`, `" a "`, `"\u00e9<b>"`)
	}
	return string(quote(rapid.StringN(0, 8, 24).Draw(t, "text")))
}

var (
	base64s    = []string{`"AAAA"`, `"iVBORw0KGgo="`, `"\/9j\/4AAQSkZJRg=="`, `"!"`}
	mediaTypes = []string{`"image/png"`, `"image/jpeg"`, `"application/pdf"`, `"text/html"`, `""`}
	addresses  = []string{`"https://cdn.example.com/a.png"`, `"u"`, `"%"`, `""`}
)

// field sets a key to one of the values, as a rule.
func field(t *rapid.T, all map[string]json.RawMessage, name string, values ...string) {
	switch rapid.IntRange(0, 9).Draw(t, name) {
	case 0:
	case 1:
		all[name] = json.RawMessage(pick(t, name, odd...))
	default:
		all[name] = json.RawMessage(pick(t, name, values...))
	}
}

// more adds keys that do not belong there.
func more(t *rapid.T, all map[string]json.RawMessage) {
	if !oneIn(t, 4, "more") {
		return
	}
	for range rapid.IntRange(1, 3).Draw(t, "keys") {
		name := pick(t, "name", names...)
		if _, ok := all[name]; !ok {
			all[name] = json.RawMessage(pick(t, "value", odd...))
		}
	}
}

func bridlePart(t *rapid.T) map[string]json.RawMessage {
	typ := pick(t, "type", TypeText, TypeText, TypeImage, TypeImage, TypeFile, TypeFile, TypeUI, TypeUISubmit, "hologram", "Text", "vision", "citation", "custom", "tool-call", "text-delta")
	p := map[string]json.RawMessage{"type": quote(typ)}
	switch typ {
	case TypeText:
		field(t, p, "text", someText(t))
	case TypeImage:
		field(t, p, "base64", base64s...)
		field(t, p, "mediaType", mediaTypes...)
	case TypeFile, "vision":
		field(t, p, "url", addresses...)
		field(t, p, "name", someText(t))
		field(t, p, "mimeType", mediaTypes...)
	case TypeUI, TypeUISubmit:
		field(t, p, "uiId", someText(t))
		field(t, p, "components", `[{"type":"heading","text":"h"}]`)
		field(t, p, "values", `{"a":"b","c":true,"d":["e"]}`)
	}
	more(t, p)
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
	p := map[string]json.RawMessage{"base64": json.RawMessage(pick(t, "base64", base64s[:3]...))}
	field(t, p, "mediaType", mediaTypes...)
	more(t, p)
	return p
}

func bridleMessage(t *rapid.T) string {
	all := map[string]json.RawMessage{}
	if !oneIn(t, 3, "noText") {
		all["text"] = json.RawMessage(pick(t, "text", someText(t), someText(t), someText(t), "null"))
	}
	if oneIn(t, 2, "parts") {
		all["parts"] = list(t, "partCount", bridlePart)
	}
	if oneIn(t, 3, "images") {
		all["images"] = list(t, "imageCount", olderPicture)
	}
	if oneIn(t, 4, "agentId") {
		all["agentId"] = json.RawMessage(pick(t, "agentId", someText(t), "null"))
	}
	more(t, all)
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

// samples has a part of each type that the host knows, and some that it doesn't.
var samples = func() []message.Part {
	parts, err := message.ParseParts([]byte("[" + strings.ReplaceAll(strings.TrimSpace(sampleParts), "\n", ",") + "]"))
	if err != nil {
		panic(err)
	}
	return parts
}()

const sampleParts = `
{"type":"text","text":"a"}
{"type":"text-delta","delta":"a"}
{"type":"markdown","markdown":"*a*"}
{"type":"citation","title":"t","url":"u","snippet":"s"}
{"type":"suggestion-chips","chips":[{"label":"Yes","value":"y"}]}
{"type":"product-carousel","products":[{"title":"Shoe"}]}
{"type":"order-summary","orderId":"o","items":[{"name":"Shoe"}],"subtotal":1,"total":{"amount":2}}
{"type":"custom","payloadType":"bridge.card","data":{"header":{"title":"T"},"elements":[{"type":"note","text":"n"}]}}
{"type":"custom","payloadType":"bridge.buttons","data":{"text":"Choose","buttons":[[{"text":"A","value":"a"}]]}}
{"type":"custom","payloadType":"mine","data":{"text":"x"}}
{"type":"tool-call","toolCallId":"1","toolName":"f","input":{"a":1},"status":"requested"}
{"type":"tool-result","toolCallId":"1","toolName":"f","output":{"b":2}}
{"type":"file","fileName":"n","mimeType":"m","sizeBytes":1,"url":"u"}
{"type":"file","fileName":"n","path":"/p"}
{"type":"agent-transfer","status":"queued","reason":"r"}
{"type":"diagnostic","category":"c","message":"m","timestamp":"t"}
{"type":"end-session","reason":"completed","message":"Bye"}
{"type":"error","code":"c","message":"m","userMessage":"u"}
{"type":"audio-input","mimeType":"m","status":"completed","url":"u"}
{"type":"audio-output","mimeType":"m","status":"completed"}
{"type":"transcript","role":"user","text":"a","interim":false}
{"type":"audio-cue","cue":"barge-in"}
{"type":"vision","kind":"input","mimeType":"image/png","data":"AAAA","caption":"c"}
{"type":"vision","kind":"output","mimeType":"image/png","url":"https://x/y.png"}
{"type":"vision","kind":"output","mimeType":"","altText":"a"}
{"type":"memory-approval","operation":"save","payload":{"text":"t"},"status":"pending"}
{"type":"memory-recall-result","query":"q","entries":[{"text":"t"}]}
{"type":"sentiment-signal","category":"c","score":1,"confidence":1,"polarity":"p","source":"s","latencyMs":1}
{"type":"intent-signal","intent":"i","score":1,"confidence":1,"source":"s","latencyMs":1}
{"type":"computer-use-surface","sessionId":"s","state":"s","streamUrl":"u","actionLog":[]}
{"type":"a2ui-surface","surfaceId":"s","state":"s","components":[]}
{"type":"ui","uiId":"f","components":[{"type":"input","name":"n"}]}
{"type":"ui_submit","uiId":"f","values":{"n":"v"}}
{"type":"hologram","angle":1}
{"type":"image","angle":1}`

// anyPart is a sample, as a rule with other fields.
func anyPart(t *rapid.T) message.Part {
	sample := rapid.SampledFrom(samples).Draw(t, "sample")
	if oneIn(t, 3, "asItIs") {
		return sample
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(sample.Raw(), &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, ok := all[name]; ok && oneIn(t, 8, "other") {
			all[name] = json.RawMessage(pick(t, "value", odd...))
		}
	}
	more(t, all)
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var p message.Part
	if err := p.UnmarshalJSON(raw); err != nil {
		return sample // it has no type that is a string
	}
	return p
}

func anyMessage(t *rapid.T) message.Message {
	m := message.Message{Role: rapid.SampledFrom([]message.Role{message.RoleUser, message.RoleAgent, ""}).Draw(t, "role"), Text: pick(t, "text", "", "a", "other")}
	for range rapid.IntRange(0, 2).Draw(t, "parts") {
		m.Parts = append(m.Parts, anyPart(t))
	}
	if oneIn(t, 2, "rolledUp") {
		m.Text = message.RollUp(m.Parts)
	}
	for _, key := range []string{kept, "agentName", "text", "role", "mode", "payload", "run_id"} {
		if oneIn(t, 6, key) {
			if m.Meta == nil {
				m.Meta = message.Meta{}
			}
			values := append([]string{`{"noText":true}`, `{"images":true,"rest":{"mood":1,"images":[{"base64":"AAAA"}]}}`, `{"rest":{"text":5}}`}, odd...)
			m.Meta[key] = json.RawMessage(pick(t, key, values...))
		}
	}
	return m
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
		m := anyMessage(t)
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
		for i, p := range m.Parts {
			parts++
			plain := p.Plain()
			var found *message.Loss
			for j := range losses {
				if losses[j].Part == i {
					found = &losses[j]
				}
			}
			switch {
			case found != nil:
				lost++
				if found.From != p.Type || found.Reason == "" || found.To == "" {
					t.Fatalf("%s: %+v", p.Raw(), found)
				}
				if found.To == message.LossNone && plain != "" {
					t.Fatalf("%s has a text, which is lost", p.Raw())
				}
				if found.To == message.LossText && plain != "" && p.Type != message.TypeVision && p.Type != message.TypeFile && !shows(out, plain) {
					t.Fatalf("%s: the text is not in %+v", p.Raw(), out)
				}
			case !carried(p):
				t.Fatalf("%s is lost in silence: %+v", p.Raw(), out)
			}
		}
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
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		f.Fatal("no golden files", err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		var g golden
		if err := json.Unmarshal(b, &g); err != nil {
			f.Fatal(err)
		}
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
