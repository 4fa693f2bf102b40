package agui

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(800) // small messages, many of them
	leaks.Main(m)
}

// check is rapid.Check with n inputs, unless -rapid.checks says how many.
func check(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		before := f.DefValue
		if err := f.Value.Set(strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(before) }) // it was that before
	}
	rapid.Check(t, property)
}

// Generators of AG-UI messages: mostly well formed, with every field now and
// then absent, null, empty or of another type. They are made once: rapid is
// slow where they are made for each draw.
var (
	genText = rapid.SampledFrom([]string{
		"", "a", "two\nlines", " space ", "帮我", "<b>&", `"quoted\"`, "\x00", "{\"a\": 1}", "null", "agui", "long é long é long é",
	})
	genName = rapid.SampledFrom([]string{
		"x", "agui", "id", "type", "metadata", "role", "text", "Url", "mimeType", "source", "encryptedValue", "", "帮", "data", "kind", "status",
	})
	genNumber  = rapid.SampledFrom([]string{"0", "-1.50", "12345678901234567890", "1e400"})
	genLeaf    = genAny(nil)
	genAny1    = genAny(genLeaf)
	genAny2    = genAny(genAny1)
	genFurther = rapid.MapOfN(genName, genAny2, 1, 3)

	genMime      = rapid.SampledFrom([]string{"image/png", "IMAGE/JPEG", "audio/ogg", "video/mp4", "application/pdf", "odd"})
	genType      = rapid.SampledFrom([]string{"text", "text", "binary", "binary", "image", "audio", "video", "document", "hologram", "file", "tool-call"})
	genFrom      = rapid.SampledFrom([]string{"url", "data", "ref"})
	genArguments = rapid.SampledFrom([]string{`{"city": "Paris"}`, `{"a":1,"a":2}`, ` [1]`, `"text"`, `{"half`, `{"h":"<"}`, `1.0`, "", "{}", "null"})
	genContents  = rapid.SliceOfN(rapid.Custom(drawContent), 1, 3)
	genCalls     = rapid.SliceOfN(rapid.Custom(drawCall), 1, 2)
	genRole      = rapid.SampledFrom([]string{
		"user", "user", "user", "assistant", "assistant", "tool", "tool", "system", "developer", "activity", "reasoning", "critic", "agent",
	})
	genMeta    = rapid.MapOfN(rapid.SampledFrom([]string{"run_id", "stage", "tool_name", "agui", "role", "notice", "payload", ""}), genAny1, 0, 3)
	genMessage = rapid.Custom(drawMessage)
	genStore   = rapid.Bool()
	dice       = rapid.IntRange(0, 19)
)

// genAny is any JSON value, with values of inner in it.
func genAny(inner *rapid.Generator[any]) *rapid.Generator[any] {
	most := 4
	var array *rapid.Generator[[]any]
	var object *rapid.Generator[map[string]any]
	if inner != nil {
		most, array, object = 6, rapid.SliceOfN(inner, 0, 3), rapid.MapOfN(genName, inner, 0, 3)
	}
	kind := rapid.IntRange(0, most)
	return rapid.Custom(func(t *rapid.T) any {
		switch kind.Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return true
		case 2:
			return json.Number(genNumber.Draw(t, "number"))
		case 3, 4:
			return genText.Draw(t, "text")
		case 5:
			return array.Draw(t, "array")
		}
		return object.Draw(t, "object")
	})
}

// field sets a field: often, as it should be; else to anything or not at all.
func field(t *rapid.T, o map[string]any, name string, value any) {
	switch n := dice.Draw(t, name); n {
	case 0:
	case 1:
		o[name] = nil
	case 2:
		o[name] = ""
	case 3:
		o[name] = genAny1.Draw(t, "odd "+name)
	default:
		o[name] = value
	}
}

// one reports one case of n.
func one(t *rapid.T, n int, what string) bool { return dice.Draw(t, what) < 20/n }

// further adds fields that nobody knows, now and then.
func further(t *rapid.T, o map[string]any) {
	if !one(t, 5, "further") {
		return
	}
	for name, v := range genFurther.Draw(t, "fields") {
		if _, ok := o[name]; !ok {
			o[name] = v
		}
	}
}

func drawContent(t *rapid.T) map[string]any {
	typ := genType.Draw(t, "type")
	o := map[string]any{"type": typ}
	switch {
	case typ == "text":
		field(t, o, "text", genText.Draw(t, "text"))
	case typ == "binary":
		field(t, o, "mimeType", genMime.Draw(t, "mime"))
		for _, name := range []string{"url", "data", "id", "filename"} {
			if one(t, 2, "has "+name) {
				field(t, o, name, genText.Draw(t, name))
			}
		}
	case newer(typ):
		source := map[string]any{"type": genFrom.Draw(t, "from")}
		field(t, source, "value", genText.Draw(t, "value"))
		field(t, source, "mimeType", genMime.Draw(t, "mime"))
		further(t, source)
		field(t, o, "source", source)
	}
	further(t, o)
	return o
}

func drawCall(t *rapid.T) map[string]any {
	function, o := map[string]any{}, map[string]any{}
	field(t, function, "name", "f")
	field(t, function, "arguments", genArguments.Draw(t, "arguments"))
	further(t, function)
	field(t, o, "id", "call_1")
	field(t, o, "type", "function")
	field(t, o, "function", function)
	further(t, o)
	return o
}

// drawMessage is a message of AG-UI that Parse takes.
func drawMessage(t *rapid.T) []byte {
	role := genRole.Draw(t, "role")
	o := map[string]any{"role": role}
	field(t, o, "id", "msg-1")
	switch n := dice.Draw(t, "content"); {
	case n == 0:
	case n == 1:
		o["content"] = nil
	case n == 2:
		o["content"] = []any{}
	case n < 8:
		o["content"] = genText.Draw(t, "text")
	case n < 10:
		o["content"] = genFurther.Draw(t, "object")
	default:
		o["content"] = genContents.Draw(t, "contents")
	}
	switch dice.Draw(t, "calls") {
	case 0:
		o["toolCalls"] = nil
	case 1:
		o["toolCalls"] = []any{}
	case 2, 3, 4, 5, 6, 7:
		o["toolCalls"] = genCalls.Draw(t, "toolCalls")
	}
	for _, name := range []string{"name", "toolCallId", "error"} {
		if role == "tool" || one(t, 10, "has "+name) {
			field(t, o, name, genText.Draw(t, name))
		}
	}
	if one(t, 4, "meta") {
		field(t, o, "metadata", genMeta.Draw(t, "metadata"))
	}
	further(t, o)
	var raw bytes.Buffer
	e := json.NewEncoder(&raw) // as we write it, which makes comparing quick
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(raw.Bytes())
}

// Generators of canonical messages.
var (
	genSample    = samplers(func([]message.Loss) bool { return true })
	genSaid      = samplers(func(lost []message.Loss) bool { return len(lost) == 0 })
	genPartType  = rapid.SampledFrom(append(message.Types(), "hologram", ""))
	genCount     = rapid.IntRange(0, len(genSample))
	genSide      = rapid.SampledFrom([]message.Role{"user", "agent", "agent", ""})
	genHostMeta  = rapid.MapOfN(rapid.SampledFrom([]string{"run_id", "role", "text", "payload", "preview_handle", "agui", "x"}), genAny2, 0, 2)
	genHostRole  = rapid.SampledFrom([]string{"tool", "system", "resque", "user", "assistant", "activity"})
	genCanonical = rapid.Custom(drawCanonical)
)

// samplers draw those samples that want says yes to: one for each place in the
// message, which is in what the samples say.
func samplers(want func([]message.Loss) bool) (out [4]*rapid.Generator[message.Part]) {
	for i := range out {
		all := slices.DeleteFunc(samples(fmt.Sprintf("mark%d.", i)), func(p message.Part) bool {
			m := message.Message{Role: message.RoleAgent, Parts: []message.Part{p}}
			_, lost := From(&m)
			return !want(lost)
		})
		out[i] = rapid.SampledFrom(all)
	}
	return out
}

func drawPart(t *rapid.T, place int) message.Part {
	if !one(t, 10, "odd") {
		return genSample[place].Draw(t, "part")
	}
	o := map[string]any{"type": genPartType.Draw(t, "type")}
	for _, name := range []string{"id", "text", "url", "data", "payloadType", "toolCallId", "toolName", "input", "output", "error", markKey, "mimeType"} {
		if one(t, 3, "has "+name) {
			o[name] = genAny2.Draw(t, name)
		}
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var p message.Part
	if p.UnmarshalJSON(raw) != nil {
		return message.Part{Type: "none"} // without bytes
	}
	return p
}

// drawCanonical is a message of the host, with parts of every type.
func drawCanonical(t *rapid.T) message.Message {
	m := message.Message{ID: genText.Draw(t, "id"), Role: genSide.Draw(t, "role")}
	said := one(t, 3, "said")
	for i := range genCount.Draw(t, "parts") {
		if said {
			m.Parts = append(m.Parts, genSaid[i].Draw(t, "part"))
		} else {
			m.Parts = append(m.Parts, drawPart(t, i))
		}
	}
	if m.Text = message.RollUp(m.Parts); len(m.Parts) == 0 {
		m.Text = genText.Draw(t, "text")
	}
	if one(t, 4, "meta") {
		for name, v := range genHostMeta.Draw(t, "metadata") {
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			set(&m, name, raw)
		}
	}
	if one(t, 5, "roles") {
		m.Meta = m.Meta.With(message.MetaRole, genHostRole.Draw(t, "meta role"))
	}
	if one(t, 2, "numbered") {
		m.Parts = message.Number(m.Parts)
	}
	return m
}
