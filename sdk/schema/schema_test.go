package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/protocol"
)

// What is checked in is what the Go types say.
func TestFresh(t *testing.T) {
	made := Generate()
	found, err := fs.Glob(protocol.Schemas(), "*.json")
	if err != nil || len(found) != len(made) {
		t.Errorf("%d files, %d generated: %v, %v", len(found), len(made), found, err)
	}
	for name, want := range made {
		if got, err := fs.ReadFile(protocol.Schemas(), name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not fresh (make generate): %v", name, err)
		}
	}
}

// validator is another library's reading of the files.
func validator(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for file, content := range Generate() {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("file:///"+file, withoutID(doc)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile("file:///" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// withoutID leaves the address to where the file is.
func withoutID(doc any) any {
	delete(doc.(map[string]any), "$id")
	return doc
}

func validate(t *testing.T, s *jsonschema.Schema, raw []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return s.Validate(v)
}

func read(t *testing.T, path string, v any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestParts(t *testing.T) {
	part, whole := validator(t, "part.json"), validator(t, "message.json")
	var good []json.RawMessage
	read(t, "../message/testdata/parts.json", &good)
	for _, raw := range good {
		if err := validate(t, part, raw); err != nil {
			t.Errorf("refused: %s\n%v", raw, err)
		}
	}
	var bad []struct {
		Part    json.RawMessage
		Problem message.Problem
	}
	read(t, "../message/testdata/bad.json", &bad)
	refused := 0
	for _, c := range bad {
		if strings.HasSuffix(c.Problem.Found, " again") {
			continue // no schema can say that names differ
		}
		if validate(t, part, c.Part) == nil {
			t.Errorf("%s is taken, although %v", c.Part, c.Problem)
		}
		refused++
		envelope := fmt.Sprintf(`{"id":"1","role":"agent","status":"completed","createdAt":"2026-11-20T10:00:00.000Z","sessionId":"s","turnIndex":0,"parts":[%s]}`, c.Part)
		if validate(t, whole, []byte(envelope)) == nil {
			t.Errorf("a message with %s is taken", c.Part)
		}
	}
	if refused < 20 {
		t.Errorf("only %d bad parts tried", refused)
	}
	t.Logf("%d parts taken, %d refused", len(good), refused)
}

func TestMessage(t *testing.T) {
	whole := validator(t, "message.json")
	const rest = `"id":"1","createdAt":"2026-11-20T10:00:00.000Z","sessionId":"s","turnIndex":0,"parts":[{"type":"hologram"}]`
	for name, raw := range map[string]string{
		"ok":          `{"role":"user","status":"pending",` + rest + `,"metadata":{"a":1},"rawResponse":{"events":[]},"responseId":"r","x":1}`,
		"errRole":     `{"role":"robot","status":"pending",` + rest + `}`,
		"errStatus":   `{"role":"user",` + rest + `}`,
		"errParts":    `{"role":"user","status":"pending",` + strings.Replace(rest, `{"type":"hologram"}`, `{}`, 1) + `}`,
		"errEvents":   `{"role":"user","status":"pending",` + rest + `,"rawResponse":{}}`,
		"errTime":     `{"role":"user","status":"pending",` + strings.Replace(rest, "T10", " at 10", 1) + `}`,
		"errMetadata": `{"role":"user","status":"pending",` + rest + `,"metadata":[]}`,
	} {
		if err := validate(t, whole, []byte(raw)); (err == nil) != (name == "ok") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the host refuses, the schema refuses, as far as a schema can.
func TestMalformed(t *testing.T) {
	beyond := map[string]string{ // name, or what it begins with: why no schema can say it
		"v11_unnegotiated_":    "what was negotiated is another frame's",
		"later_message_delete": "and so is the protocol", "later_form_submit": "likewise", "later_reaction": "likewise",
		"message_long_user_id": "bytes are counted, not characters",
	}
	schemas := map[string]*jsonschema.Schema{
		protocol.AdapterToHost: validator(t, "frame-to-host.json"), protocol.AgentToHost: validator(t, "agent-frame-to-host.json"),
	}
	rows, err := protocol.MalformedFrames()
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, m := range rows {
		if !json.Valid([]byte(m.Frame)) {
			continue
		}
		excused := false
		for name := range beyond {
			excused = excused || strings.HasPrefix(m.Name, name)
		}
		switch err := validate(t, schemas[m.Direction], []byte(m.Frame)); {
		case err != nil:
			refused++
		case !excused:
			t.Errorf("%s is taken: %.200s", m.Name, m.Frame)
		}
	}
	if refused < 90 {
		t.Errorf("only %d malformed frames were refused", refused)
	}
}

// Generators of types find a closed list of frames, each with the type that tells it apart.
func TestUnion(t *testing.T) {
	for name, content := range Generate() {
		if !strings.Contains(name, "frame-") {
			continue
		}
		var s struct {
			OneOf []struct {
				Ref string `json:"$ref"`
			}
			Discriminator struct {
				PropertyName string
				Mapping      map[string]string
			}
			Defs map[string]struct {
				Required   []string
				Properties map[string]struct{ Const string }
			} `json:"$defs"`
		}
		if err := json.Unmarshal(content, &s); err != nil {
			t.Fatal(err)
		}
		if len(s.OneOf) != len(s.Defs) || s.Discriminator.PropertyName != "type" || len(s.Discriminator.Mapping) < 7 {
			t.Errorf("%s: %d cases of %d, discriminated by %+v", name, len(s.OneOf), len(s.Defs), s.Discriminator)
		}
		for typ, ref := range s.Discriminator.Mapping {
			def := s.Defs[strings.TrimPrefix(ref, "#/$defs/")]
			if def.Properties["type"].Const != typ || len(def.Required) == 0 || def.Required[0] != "type" {
				t.Errorf("%s: %s is %+v", name, typ, def)
			}
		}
	}
}

// The golden frames of packages wire and agentwire, which their codecs read and writes.
func TestFrames(t *testing.T) {
	for dir, schema := range map[string]string{
		"frames/to_host": "frame-to-host.json", "frames/to_adapter": "frame-to-adapter.json",
		"agent_frames/to_host": "agent-frame-to-host.json", "agent_frames/to_agent": "agent-frame-to-agent.json",
	} {
		s := validator(t, schema)
		names, err := filepath.Glob("../protocol/" + dir + "/*.json")
		if err != nil || len(names) < 10 {
			t.Fatalf("%d golden frames: %v", len(names), err)
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(t, s, raw); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	toHost := validator(t, "frame-to-host.json")
	for name, raw := range map[string]string{
		"errType": `{"type":"hologram"}`, "errNoType": `{}`, "errNoText": `{"type":"message"}`, "errText": `{"type":"message","text":1}`,
		"errCapabilities": `{"type":"register","capabilities":[1]}`, "errMetadata": `{"type":"register","metadata":"a"}`, "errAction": `{"type":"card_action","text":"a"}`,
	} {
		if validate(t, toHost, []byte(raw)) == nil {
			t.Errorf("%s: %s is taken", name, raw)
		}
	}
	ofAgent := validator(t, "agent-frame-to-host.json")
	for name, raw := range map[string]string{
		"errType": `{"type":"turn"}`, "errNoText": `{"type":"message","turn_id":"t"}`, "errNoPlace": `{"type":"message","text":"a"}`,
		"errHalfAPlace": `{"type":"message","text":"a","channel":"c"}`, "errPart": `{"type":"message","turn_id":"t","parts":[{}]}`,
		"errNoCard": `{"type":"card","turn_id":"t"}`, "errNoAgent": `{"type":"transfer","turn_id":"t"}`, "errNoTurn": `{"type":"turn_end"}`,
	} {
		if validate(t, ofAgent, []byte(raw)) == nil {
			t.Errorf("%s: %s is taken", name, raw)
		}
	}
}
