// Package convtest is what the tests of conversions between message models have
// in common: golden files, generated messages, and what must hold of both.
package convtest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

var update = flag.Bool("update", false, "write what is found into the golden files")

// Main is TestMain: every property sees so many messages, and no goroutine is left.
func Main(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	leaks.Main(m)
}

// Canonical is what conversions set of a message, as golden files have it.
type Canonical struct {
	Role     message.Role    `json:"role"`
	Text     string          `json:"text"`
	Parts    json.RawMessage `json:"parts,omitempty"`
	Metadata message.Meta    `json:"metadata,omitempty"`
}

// Golden runs a test of every golden file of testdata. read takes the file's
// content and converts it; found is where the file keeps the host's message. Of
// the file named odd (without .json) not all is valid.
func Golden[F any](t *testing.T, odd string, read func(testing.TB, *F) message.Message, found func(*F) *Canonical) {
	for _, path := range paths(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			file := load[F](t, path)
			m := read(t, file)
			got := Canonical{m.Role, m.Text, message.AppendParts(nil, m.Parts), m.Meta}
			if *update {
				*found(file) = got
				write(t, path, file)
				return
			}
			if got, want := Normal(t, got), Normal(t, *found(file)); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if p := message.Validate(m.Parts, message.HostLimits()); len(p) > 0 && name != odd {
				t.Error(p)
			}
		})
	}
}

// Files are what the golden files hold: seeds of a fuzz test.
func Files[F any](t testing.TB) []*F {
	t.Helper()
	var all []*F
	for _, path := range paths(t) {
		all = append(all, load[F](t, path))
	}
	return all
}

func paths(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/*.json")
	if err != nil || len(all) == 0 {
		t.Fatal("no golden files", err)
	}
	return all
}

func load[F any](t testing.TB, path string) *F {
	t.Helper()
	file := new(F)
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func write(t testing.TB, path string, v any) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Normal is JSON in one form: no space, sorted keys, one spelling of strings.
func Normal(t TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var all any
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	if b, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TB is what tests, fuzz tests and property tests have in common.
type TB interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// Stored is what is left of a message that went through the host: its parts have
// ids, and all of it was written and read.
func Stored(t TB, m message.Message) message.Message {
	t.Helper()
	if len(m.Parts)+len(m.Meta) == 0 {
		return m
	}
	e := message.Envelope{Parts: message.Number(append([]message.Part(nil), m.Parts...)), Metadata: m.Meta}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	e = message.Envelope{}
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	m.Parts, m.Meta = e.Parts, e.Metadata
	return m
}

// CameBack wants back, which was made of stored, to be raw again.
func CameBack(t TB, back any, raw string, stored message.Message) {
	t.Helper()
	written, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) == raw {
		return // as it is for what is sorted already
	}
	if got, want := Normal(t, json.RawMessage(written)), Normal(t, json.RawMessage(raw)); got != want {
		t.Fatalf("came back otherwise\ngot  %s\nwant %s\nby   %s %s", got, want, message.AppendParts(nil, stored.Parts), Normal(t, stored.Meta))
	}
}

// Encode is v as JSON.
func Encode(t TB, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
