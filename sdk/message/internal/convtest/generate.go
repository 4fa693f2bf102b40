package convtest

import (
	"encoding/json"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// checks is how many messages each property sees.
const checks = "10000"

// Odd values are put where something else is expected.
var Odd = []string{`null`, `42`, `1.0`, `1e400`, `""`, `"x"`, `"<&>\u2028\ud83d\ude00"`, `true`, `[]`, `{}`, `["a",null]`, `{"type":"image","base64":"AAAA"}`}

// names are keys that mean something somewhere, and some that don't.
var names = []string{"id", "ID", "bridle", "swarm", "path", "Path", "Type", "kind", "data", "Data", "fileName", "mimeType", "url", "URL", "text", "name", "caption",
	"base64", "mediaType", "width", "sizeBytes", "title", "metadata", "noText", "mood", "", "ключ"}

// Pick draws one of the values.
func Pick(t *rapid.T, label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(t, label)
}

// OneIn is true once in n times.
func OneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(1, n).Draw(t, label) == n }

// SomeText is a JSON string.
func SomeText(t *rapid.T) string {
	if !OneIn(t, 4, "drawn") {
		return Pick(t, "text", `""`, `"a"`, `"b"`, `"a\nb"`, `" a "`, `"\u00e9<b>"`)
	}
	return string(wire.AppendString(nil, rapid.StringN(0, 8, 24).Draw(t, "text")))
}

// Field sets a key to one of the values, as a rule.
func Field(t *rapid.T, all map[string]json.RawMessage, name string, values ...string) {
	switch rapid.IntRange(0, 9).Draw(t, name) {
	case 0:
	case 1:
		all[name] = json.RawMessage(Pick(t, name, Odd...))
	default:
		all[name] = json.RawMessage(Pick(t, name, values...))
	}
}

// More adds keys that do not belong there.
func More(t *rapid.T, all map[string]json.RawMessage) {
	if !OneIn(t, 4, "more") {
		return
	}
	for range rapid.IntRange(1, 3).Draw(t, "keys") {
		name := Pick(t, "name", names...)
		if _, ok := all[name]; !ok {
			all[name] = json.RawMessage(Pick(t, "value", Odd...))
		}
	}
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
	if OneIn(t, 3, "asItIs") {
		return sample
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(sample.Raw(), &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, ok := all[name]; ok && OneIn(t, 8, "other") {
			all[name] = json.RawMessage(Pick(t, "value", Odd...))
		}
	}
	More(t, all)
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

// AnyMessage is a message of the host. meta are values for its metadata,
// beside odd ones; kept is the key that the conversion uses there.
func AnyMessage(t *rapid.T, kept string, meta ...string) message.Message {
	m := message.Message{Role: rapid.SampledFrom([]message.Role{message.RoleUser, message.RoleAgent, ""}).Draw(t, "role"), Text: Pick(t, "text", "", "a", "other")}
	for range rapid.IntRange(0, 2).Draw(t, "parts") {
		m.Parts = append(m.Parts, anyPart(t))
	}
	if OneIn(t, 2, "rolledUp") {
		m.Text = message.RollUp(m.Parts)
	}
	for _, key := range []string{kept, "agentName", "text", "role", "mode", "payload", "run_id"} {
		if OneIn(t, 6, key) {
			if m.Meta == nil {
				m.Meta = message.Meta{}
			}
			m.Meta[key] = json.RawMessage(Pick(t, key, append(slices.Clone(meta), Odd...)...))
		}
	}
	return m
}

// Told wants each part of the message carried over, or told of as a loss whose
// text is shown, and says how many were.
func Told(t *rapid.T, m *message.Message, losses []message.Loss, carried func(message.Part) bool, shown func(p message.Part, text string) bool) (lost int) {
	for i, p := range m.Parts {
		at := slices.IndexFunc(losses, func(l message.Loss) bool { return l.Part == i })
		if at < 0 {
			if !carried(p) {
				t.Fatalf("%s is lost in silence", p.Raw())
			}
			continue
		}
		lost++
		found, plain := losses[at], p.Plain()
		if found.From != p.Type || found.Reason == "" || found.To == "" {
			t.Fatalf("%s: %+v", p.Raw(), found)
		}
		if found.To == message.LossNone && plain != "" {
			t.Fatalf("%s has a text, which is lost", p.Raw())
		}
		if found.To == message.LossText && plain != "" && p.Type != message.TypeVision && !shown(p, plain) {
			t.Fatalf("%s: the text is not shown", p.Raw())
		}
	}
	return lost
}
