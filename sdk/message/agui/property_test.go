package agui

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// stored is the message as it comes out of the host's database: with an id,
// numbered parts, and all JSON written anew.
func stored(t rapid.TB, c message.Message) message.Message {
	t.Helper()
	if c.ID == "" {
		c.ID = "made by the host"
	}
	c.Parts = message.Number(c.Parts)
	if raw := encode(t, c.Parts); len(c.Parts) > 0 {
		c.Parts = parts(t, string(raw))
	}
	raw := encode(t, c.Meta)
	c.Meta = nil
	if err := json.Unmarshal(raw, &c.Meta); err != nil {
		t.Fatal(err)
	}
	return c
}

// identity checks that a message that Parse takes comes back as it was, whether
// or not it was in the database; false if it has no content.
func identity(t rapid.TB, raw []byte, store bool) bool {
	t.Helper()
	m, err := Parse(raw)
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	c, err := m.Canonical()
	if errors.Is(err, message.ErrNoContent) {
		return false
	}
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if store {
		c = stored(t, c)
	} else if again := write(t, m); !same(t, again, raw) {
		t.Fatalf("written as %s, was %s", again, raw)
	}
	sameBack(t, &c, raw)
	return true
}

func TestPropertyIdentity(t *testing.T) {
	checks, empty := 0, 0
	check(t, 10_000, func(t *rapid.T) {
		checks++
		if !identity(t, genMessage.Draw(t, "message"), genStore.Draw(t, "store")) {
			empty++
		}
	})
	t.Logf("%d messages came back as they were, %d had no content", checks-empty, empty)
	if checks-empty < checks*3/4 {
		t.Error("too few had content")
	}
}

func TestPropertyFrom(t *testing.T) {
	checks, losses, whole := 0, 0, 0
	check(t, 4_000, func(t *rapid.T) {
		checks++
		m := genCanonical.Draw(t, "message")
		before := message.Message{ID: m.ID, Role: m.Role, Text: m.Text, Parts: slices.Clone(m.Parts), Meta: maps.Clone(m.Meta)}
		out, lost := From(&m)
		if !reflect.DeepEqual(m, before) {
			t.Fatalf("the message was changed to %v", m)
		}
		raw := encode(t, out)
		if again := mustParse(t, string(raw)); !same(t, write(t, again), raw) {
			t.Fatalf("%s read as %s", raw, encode(t, again))
		}
		reported, gone := map[int]bool{}, map[int]bool{}
		for _, l := range lost {
			if l.Part < -1 || l.Part >= max(len(m.Parts), 1) || l.From == "" || l.Reason == "" {
				t.Fatalf("loss %+v", l)
			}
			reported[l.Part] = true
			gone[l.Part] = gone[l.Part] || l.To == message.LossNone
		}
		for i, p := range m.Parts {
			if mark := fmt.Sprintf("mark%d.", i); !gone[i] && strings.Contains(string(p.Raw()), mark) && !strings.Contains(string(raw), mark) {
				t.Fatalf("%s is missing in %s", p.Raw(), raw)
			}
			if gone[i] && p.Plain() != "" {
				t.Fatalf("nothing stands for %s", p.Raw())
			}
			if _, unknown := viewOf(p); unknown && !reported[i] {
				t.Fatalf("%s is not reported: %v", p.Raw(), lost)
			}
		}
		losses += len(lost)
		if len(lost) == 0 && comesBack(t, m, out) {
			whole++
		}
	})
	t.Logf("%d messages, %d losses, %d came back whole", checks, losses, whole)
	if whole < checks/10 {
		t.Error("too few came back whole")
	}
}

// viewOf reads a part; true if there is no struct of its type.
func viewOf(p message.Part) (message.View, bool) {
	v, err := p.View()
	return v, errors.Is(err, message.ErrUnknownType)
}

// comesBack checks that a message of which nothing was lost is the same again:
// contents first, then calls, and a text of several parts as one.
func comesBack(t rapid.TB, m message.Message, out Message) bool {
	t.Helper()
	c, err := out.Canonical()
	if errors.Is(err, message.ErrNoContent) && m.Meta[markKey] != nil {
		return false // something else than we keep stood there
	}
	if err != nil {
		t.Fatalf("%v in %s", err, encode(t, out))
	}
	if c.Text != m.Text && !hasDelta(m.Parts) {
		t.Fatalf("text %q came back as %q", m.Text, c.Text)
	}
	want, got := essence(t, m), essence(t, c)
	if len(want) == 0 || m.Meta[markKey] != nil {
		return false
	}
	for i := range min(len(got), len(want)) { // what a part must have and this one had not
		for _, name := range []string{"kind", "status"} {
			if _, ok := want[i][name]; !ok {
				delete(got[i], name)
			}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("came back as %v\nwant         %v\nby way of %s", got, want, encode(t, out))
	}
	return true
}

func hasDelta(all []message.Part) bool {
	return strings.Contains(string(message.AppendParts(nil, all)), message.TypeTextDelta)
}

// essence is all of a message's parts that is neither text, which was compared,
// nor of the conversion.
func essence(t rapid.TB, m message.Message) []map[string]any {
	var contents, calls []map[string]any
	for _, p := range m.Parts {
		if p.Type == message.TypeText || p.Type == message.TypeTextDelta {
			continue
		}
		o, ok := decode(t, p.Raw()).(map[string]any)
		if !ok {
			t.Fatalf("%s is no object", p.Raw())
		}
		for name, v := range o {
			if name == "id" || name == "mimeType" || name == markKey || v == nil || v == "" {
				delete(o, name)
			}
		}
		if p.Type == message.TypeToolCall || o["payloadType"] == PayloadCall {
			calls = append(calls, o)
		} else {
			contents = append(contents, o)
		}
	}
	return append(contents, calls...)
}

func TestPropertyRun(t *testing.T) {
	checks := 0
	check(t, 500, func(t *rapid.T) {
		checks++
		run := map[string]any{"threadId": "t", "runId": "r"}
		var messages []json.RawMessage
		for range rapid.IntRange(0, 3).Draw(t, "messages") {
			raw := genMessage.Draw(t, "message")
			if _, err := mustParse(t, string(raw)).Canonical(); err == nil {
				messages = append(messages, raw)
			}
		}
		run["messages"] = append([]json.RawMessage{}, messages...)
		for _, name := range []string{"state", "tools", "context", "forwardedProps", "parentRunId"} {
			field(t, run, name, genAny1.Draw(t, name))
		}
		raw := encode(t, run)
		r, err := ParseRun(raw)
		if err != nil {
			t.Fatal(err)
		}
		ms, err := r.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		for i := range ms {
			ms[i] = stored(t, ms[i])
		}
		back, losses := FromRun(r.ThreadID, ms)
		back.More = r.More
		if len(ms) == 0 { // nothing to keep them with
			back.RunID, back.ForwardedProps = r.RunID, r.ForwardedProps
		}
		if got := encode(t, back); !same(t, got, raw) {
			t.Fatalf("came back as %s\nwant         %s", got, raw)
		}
		for i, lost := range losses {
			if len(lost) > 0 {
				t.Fatalf("messages[%d] lost %v", i, lost)
			}
		}
	})
	t.Logf("%d runs", checks)
}

func FuzzParse(f *testing.F) {
	for _, raw := range []string{
		`{"id":"1","role":"user","content":"hello"}`, `{"role":"tool","toolCallId":"c","content":[1],"error":""}`, `{"role":"x","content":{}}`,
		`{"role":"user","content":[{"type":"text","text":"a","x":1},{"type":"image","source":{"type":"url","value":"u"}}],"metadata":{}}`,
		`{"role":"assistant","content":null,"toolCalls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{ }"}},{}]}`,
		`{"role":"user","content":[{"type":"binary","mimeType":"image/png","data":"AAAA"},{"type":"binary","id":"1","url":"\ud800"}]}`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := Parse(raw); err == nil {
			identity(t, raw, false)
			identity(t, raw, true)
		}
	})
}
