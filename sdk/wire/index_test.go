package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The files of a session of protocol 1.0 are listed in index.json, those of 1.1
// in v11_index.json: who knows of 1.0 alone reads the first one only.
const (
	indexV10 = "index.json"
	indexV11 = "v11_index.json"
)

type malformed struct {
	File  string `json:"file"`
	Code  Code   `json:"code"`
	Field string `json:"field"`         // what the message must name first
	Ref   string `json:"ref,omitempty"` // the error frame's ref

	Capabilities *[]string `json:"capabilities,omitempty"` // 1.1: of the session; absent = all
}

func TestMalformed(t *testing.T) {
	var seen []string
	for _, m := range readIndex[malformed](t, "malformed", indexV10) {
		seen = append(seen, strings.TrimSuffix(m.File, ".json"))
		t.Run(m.File, func(t *testing.T) { m.check(t, Dialect{}) })
	}
	for _, m := range readIndex[malformed](t, "malformed", indexV11) {
		seen = append(seen, strings.TrimSuffix(m.File, ".json"))
		t.Run(m.File, func(t *testing.T) { m.check(t, dialectWith(t, m.Capabilities)) })
	}
	checkNames(t, "malformed", seen)
}

func (m malformed) check(t *testing.T, d Dialect) {
	in, err := DecodeInboundAs(readFrame(t, "malformed", m.File), d)
	if err == nil {
		t.Fatalf("accepted as %+v", in)
	}
	if err.Code != m.Code || err.Ref != m.Ref {
		t.Errorf("got code %s, ref %q (%s), want %s, %q", err.Code, err.Ref, err.Message, m.Code, m.Ref)
	}
	if !strings.HasPrefix(err.Message, m.Field+": ") {
		t.Errorf("message %q does not name %s", err.Message, m.Field)
	}
	if m.Code != CodeBadJSON && m.Code != CodeTooDeep && !strings.Contains(err.Message, "expected") &&
		!strings.Contains(err.Message, "allowed") && !strings.Contains(err.Message, "needs") {
		t.Errorf("message %q does not say what is allowed", err.Message)
	}
}

// What is malformed whatever the session has negotiated, is so under 1.1 too.
func TestMalformedUnderBoth(t *testing.T) {
	onlyV10 := []string{"unknown_type", "not_supported"} // the types of 1.1 are others
	for _, m := range readIndex[malformed](t, "malformed", indexV10) {
		if !slices.Contains(onlyV10, string(m.Code)) {
			t.Run(m.File, func(t *testing.T) { m.check(t, everything) })
		}
	}
}

type lenient struct {
	File  string `json:"file"`
	To    string `json:"to"`    // host or adapter
	Means string `json:"means"` // the same frame, in canonical form

	Capabilities *[]string `json:"capabilities,omitempty"` // 1.1: of the session; absent = all
}

func TestLenient(t *testing.T) {
	var seen []string
	for _, l := range readIndex[lenient](t, "lenient", indexV10) {
		seen = append(seen, strings.TrimSuffix(l.File, ".json"))
		t.Run(l.File, func(t *testing.T) {
			l.check(t, Dialect{}, func(o *Outbound) { o.MessageID = "" }) // a field unknown to 1.0
		})
	}
	for _, l := range readIndex[lenient](t, "lenient", indexV11) {
		seen = append(seen, strings.TrimSuffix(l.File, ".json"))
		t.Run(l.File, func(t *testing.T) {
			l.check(t, dialectWith(t, l.Capabilities), func(o *Outbound) { o.Plain = true })
		})
	}
	checkNames(t, "lenient", seen)
}

// What 1.0 understands, 1.1 does too, but for fields that only 1.1 knows and
// that are none: to ignore such an id or cursor would lose or repeat messages.
func TestLenientUnderBoth(t *testing.T) {
	refused := map[string]string{"number_message_id.json": "message_id", "long_message_id.json": "message_id", "unknown_fields.json": "cursor"}
	for _, l := range readIndex[lenient](t, "lenient", indexV10) {
		if l.To != "host" {
			continue
		}
		t.Run(l.File, func(t *testing.T) {
			if refused[l.File] == "" {
				l.check(t, everything, nil)
				return
			}
			in, err := DecodeInboundAs(readFrame(t, "lenient", l.File), everything)
			if err == nil || !strings.HasPrefix(err.Message, refused[l.File]+": ") {
				t.Errorf("%+v, %v", in, err)
			}
		})
	}
}

func (l lenient) check(t *testing.T, d Dialect, as func(*Outbound)) {
	frame := readFrame(t, "lenient", l.File)
	var got []byte
	if l.To == "host" {
		in, err := DecodeInboundAs(frame, d)
		if err != nil {
			t.Fatal(err)
		}
		got = in.Append(nil)
	} else {
		out, err := DecodeOutbound(frame)
		if err != nil {
			t.Fatal(err)
		}
		as(out)
		got = out.encode()
	}
	if string(got) != l.Means {
		t.Errorf("got  %s\nwant %s", got, l.Means)
	}
}

func dialectWith(t *testing.T, names *[]string) Dialect {
	t.Helper()
	if names == nil {
		return everything
	}
	caps, unknown := ParseCapsFor("1.1", *names)
	if len(unknown) > 0 {
		t.Fatalf("capabilities %q", unknown)
	}
	return Dialect{V11, Effective(caps, 0)}
}

func readIndex[T any](t *testing.T, dir, name string) (index []T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", dir, name))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&index); err != nil {
		t.Fatal(err)
	}
	return index
}

func readFrame(t *testing.T, dir, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b, []byte("\n"))
}
