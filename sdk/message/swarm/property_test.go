package swarm

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/message/internal/convtest"
)

// some is an array of up to two elements.
func some(t *rapid.T, label string, element func(*rapid.T) json.RawMessage) json.RawMessage {
	all := make([]json.RawMessage, rapid.IntRange(0, 2).Draw(t, label))
	for i := range all {
		all[i] = element(t)
	}
	return convtest.Encode(t, all)
}

func toolCall(t *rapid.T) json.RawMessage {
	function := map[string]json.RawMessage{}
	convtest.Field(t, function, "name", convtest.SomeText(t))
	convtest.Field(t, function, "arguments", `"{}"`, `"{\"a\":1}"`, `" {\"a\" : \"<b>\"}"`, `"{\"a\":"`, `{"a":1}`, `"\"x\""`)
	convtest.More(t, function)
	call := map[string]json.RawMessage{}
	convtest.Field(t, call, "id", `"call_1"`, `"call_2"`)
	convtest.Field(t, call, "type", `"function"`)
	convtest.Field(t, call, "function", string(convtest.Encode(t, function)))
	convtest.More(t, call)
	return convtest.Encode(t, call)
}

func travelling(t *rapid.T) json.RawMessage {
	p := map[string]json.RawMessage{}
	convtest.Field(t, p, "type", `"file"`, `"vision"`, `"ui"`, `"ui_submit"`, `"hologram"`, `"text"`, `"citation"`)
	convtest.Field(t, p, "url", `"u"`, `""`)
	convtest.More(t, p)
	return convtest.Encode(t, p)
}

func payload(t *rapid.T) string {
	all := map[string]json.RawMessage{}
	convtest.Field(t, all, payloadParts, string(some(t, "parts", travelling)))
	convtest.More(t, all)
	return string(convtest.Encode(t, all))
}

func image(t *rapid.T) json.RawMessage {
	return json.RawMessage(convtest.Pick(t, "image", `"AAAA"`, `"iVBORw0KGgo="`, `"\/9j\/4AAQSkZJRg=="`, `"aGVsbG8="`))
}

func swarmMessage(t *rapid.T) string {
	all := map[string]json.RawMessage{"role": json.RawMessage(convtest.Pick(t, "role", `"user"`, `"assistant"`, `"tool"`, `"tool"`, `"system"`, `"resque"`, `"flush"`, `"developer"`, `"oracle"`, `""`))}
	for _, name := range []string{"content", "agentName", "mode", "tool_call_id"} {
		switch rapid.IntRange(0, 9).Draw(t, name) {
		case 0, 1:
		case 2:
			all[name] = json.RawMessage("null")
		default:
			all[name] = json.RawMessage(convtest.SomeText(t))
		}
	}
	if convtest.OneIn(t, 3, "images") {
		all["images"] = some(t, "imageCount", image)
	}
	if convtest.OneIn(t, 3, "calls") {
		all["tool_calls"] = some(t, "callCount", toolCall)
	}
	switch rapid.IntRange(0, 5).Draw(t, "payload") {
	case 0, 1:
		all["payload"] = json.RawMessage(payload(t))
	case 2:
		all["payload"] = json.RawMessage(convtest.Pick(t, "payload", convtest.Odd...))
	}
	convtest.More(t, all)
	return string(convtest.Encode(t, all))
}

func TestSwarmReturns(t *testing.T) {
	t.Parallel()
	n, silent := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		raw := swarmMessage(t)
		m, err := Parse([]byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		carried, _ := unpack(m.Payload)
		if m.Content != nil || len(m.Images)+len(m.ToolCalls)+len(carried) > 0 {
			returns(t, raw)
			return
		}
		silent++
		if _, err := m.Canonical(); !errors.Is(err, message.ErrNoContent) {
			t.Fatalf("%s: %v", raw, err)
		}
	})
	t.Logf("%d messages there and back, %d of them with nothing to say", n, silent)
}

// carried says by the table of the specification which parts a swarm has; a
// result of a tool is looked at by who calls.
func carried(p message.Part, payload json.RawMessage) bool {
	var own map[string]json.RawMessage
	room := payload == nil || json.Unmarshal(payload, &own) == nil && own[payloadParts] == nil
	view, err := p.View()
	switch v := view.(type) {
	case message.TextPart, message.ToolCallPart:
		return true
	case message.VisionPart:
		return v.Data != "" || v.URL != "" && room
	case message.FilePart:
		return v.URL != "" && room
	case message.UIPart, message.UISubmitPart:
		return room
	}
	return errors.Is(err, message.ErrUnknownType) && room
}

func TestFromTellsLosses(t *testing.T) {
	t.Parallel()
	n, parts, lost := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		m := convtest.AnyMessage(t, kept, `{"absent":["content","mode"]}`, `{"rest":{"mood":1,"tool_call_id":"1"}}`, `{"rest":{"content":5}}`, `"tool"`, `{"bridge.parts":[{"type":"file","url":"u"}]}`)
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
		lost += convtest.Told(t, &m, losses, func(p message.Part) bool {
			return p.Type == message.TypeToolResult && out.Role == RoleTool && out.ToolCallID != nil || carried(p, m.Meta["payload"])
		}, func(_ message.Part, text string) bool { return strings.Contains(*out.Content, text) })
	})
	t.Logf("%d messages of %d parts, %d of which are told as losses", n, parts, lost)
}

func FuzzParse(f *testing.F) {
	for _, g := range convtest.Files[golden](f) {
		f.Add([]byte(g.Swarm))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil || !utf8.Valid(b) {
			return
		}
		if _, err := m.Canonical(); err == nil {
			returns(t, string(b))
		}
	})
}
