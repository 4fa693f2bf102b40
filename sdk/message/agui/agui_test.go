package agui

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

var update = flag.Bool("update", false, "write the golden files anew")

// decode reads JSON for comparison: names sorted, numbers as they are.
func decode(t rapid.TB, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

// same reports the same JSON, whatever the order of names.
func same(t rapid.TB, a, b []byte) bool {
	t.Helper()
	return bytes.Equal(a, b) || reflect.DeepEqual(decode(t, a), decode(t, b))
}

func encode(t rapid.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// write is encode without a second look at what MarshalJSON gives.
func write(t rapid.TB, m Message) []byte {
	t.Helper()
	raw, err := m.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func mustParse(t rapid.TB, raw string) Message {
	t.Helper()
	m, err := Parse([]byte(raw))
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return m
}

func canonical(t rapid.TB, raw string) message.Message {
	t.Helper()
	c, err := mustParse(t, raw).Canonical()
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return c
}

func parts(t rapid.TB, raw string) []message.Part {
	t.Helper()
	all, err := message.ParseParts([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sameBack checks that a canonical message goes back as want, without losses.
func sameBack(t rapid.TB, c *message.Message, want []byte) {
	t.Helper()
	back, losses := From(c)
	if got := write(t, back); !same(t, got, want) {
		t.Fatalf("came back as %s\nwant         %s\nmetadata %s\nparts %s", got, want, encode(t, c.Meta), message.AppendParts(nil, c.Parts))
	}
	if len(losses) > 0 {
		t.Fatalf("losses %v of %s", losses, want)
	}
}

func golden(t *testing.T, name string, v any) {
	t.Helper()
	var got bytes.Buffer
	e := json.NewEncoder(&got)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s: got %s\nwant %s", file, got.Bytes(), want)
	}
}

// envelope shows a canonical message in a golden file.
func envelope(c message.Message) message.Envelope {
	return message.Envelope{ID: c.ID, Role: c.Role, Status: c.Status, Parts: c.All(), Metadata: c.Meta}
}

func TestGoldenRun(t *testing.T) {
	raw, err := os.ReadFile("testdata/run.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRun(raw)
	if err != nil {
		t.Fatal(err)
	}
	ms, err := r.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if p := message.Validate(ms[0].Parts, message.HostLimits()); p != nil {
		t.Error(p)
	}
	golden(t, "run.canonical.json", envelope(ms[0]))
	back, losses := FromRun(r.ThreadID, ms)
	if got := encode(t, back); !same(t, got, raw) || losses[0] != nil {
		t.Errorf("came back as %s, losses %v", got, losses)
	}
	// The history is the same message with another address, and what the run said.
	v, err := message.As[message.VisionPart](ms[0].Parts[1])
	if err != nil {
		t.Fatal(err)
	}
	v.URL = strings.Replace(v.URL, "xxx", "yyy", 2)
	ms[0].Parts[1] = message.Of(v)
	delete(ms[0].Meta, MetaPayload)
	got, _ := From(&ms[0])
	golden(t, "history.json", got)
}

func TestGoldenMessages(t *testing.T) {
	raw, err := os.ReadFile("testdata/messages.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	var out []message.Envelope
	for _, one := range all {
		c := canonical(t, string(one))
		sameBack(t, &c, one)
		if p := message.Validate(c.Parts, message.HostLimits()); p != nil {
			t.Errorf("%s: %v", one, p)
		}
		out = append(out, envelope(c))
	}
	golden(t, "messages.canonical.json", out)
}

func TestParseErrors(t *testing.T) {
	for raw, want := range map[string]string{
		``: "agui: message: unexpected end", `null`: "agui: message: found null, expected an object", `[]`: "agui: message: found an array",
		`{}`: "agui: role: found nothing", `{"role":""}`: "agui: role: found an empty string", `{"role":1}`: "agui: role: found a number",
		`{"Role":"user"}`:             "agui: role: found nothing",
		`{"role":"user","content":1}`: "agui: content: found a number", `{"role":"user","content":true}`: "agui: content: found a boolean",
		`{"role":"user","content":["a"]}`:  "agui: content[0]: found a string, expected an object",
		`{"role":"user","content":[null]}`: "agui: content[0]: found null", `{"role":"user","content":[{"type":"text"},{}]}`: "agui: content[1].type: found nothing",
		`{"role":"user","content":[{"type":null}]}`: "agui: content[0].type: found null",
		`{"role":"user","toolCalls":{}}`:            "agui: toolCalls: found an object", `{"role":"user","toolCalls":[[]]}`: "agui: toolCalls[0]: found an array",
	} {
		if m, err := Parse([]byte(raw)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", raw, m, err, want)
		}
	}
}

func TestNoContent(t *testing.T) {
	for _, raw := range []string{
		`{"role":"user"}`, `{"role":"user","content":null}`, `{"role":"user","content":[]}`, `{"role":"assistant"}`,
		`{"role":"assistant","toolCalls":[]}`, `{"role":"assistant","content":null,"toolCalls":null}`, `{"role":"activity"}`,
	} {
		if _, err := mustParse(t, raw).Canonical(); !errors.Is(err, message.ErrNoContent) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for name, m := range map[string]Message{
		"broken content": {Role: RoleUser, Content: []byte(`{`)}, "broken text": {Role: RoleUser, Content: []byte(`"a`)},
		"broken call": {Role: RoleUser, ToolCalls: []json.RawMessage{[]byte(`{`)}}, "broken field": {Role: RoleUser, Content: []byte(`""`), More: map[string]json.RawMessage{"x": nil}},
	} {
		if c, err := m.Canonical(); err == nil {
			t.Errorf("%s: %v", name, c)
		}
	}
}

func TestPlainTextHasNoParts(t *testing.T) {
	c := canonical(t, `{"id":"1","role":"user","content":"hello"}`)
	if c.Parts != nil || c.Meta != nil || c.Text != "hello" || c.Role != message.RoleUser || c.ID != "1" || c.Status != message.StatusCompleted {
		t.Errorf("%+v", c)
	}
}

func TestHostMetadataIsNotAClients(t *testing.T) {
	raw := `{"role":"user","content":"x","metadata":{"notice":true,"action":"a","agui":{},"role":"system","payload":1,"run_id":"r","stage":"s",` +
		`"user_message_attachments":{"bucket":"b","path":"p"}}}`
	c := canonical(t, raw)
	sameBack(t, &c, []byte(raw))
	for name := range c.Meta {
		if name != markKey && name != "run_id" && name != "stage" {
			t.Errorf("a client set %s", name)
		}
	}
	c.Meta[message.MetaAttachments] = json.RawMessage(`{"bucket":"of the host"}`)
	if back, _ := From(&c); strings.Contains(string(encode(t, back)), "of the host") {
		t.Errorf("a client is told %s", encode(t, back))
	}
}
