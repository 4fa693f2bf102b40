package wire

import (
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/protocol"
)

func malformedFrames(t testing.TB) (rows []protocol.Malformed) {
	t.Helper()
	all, err := protocol.MalformedFrames()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Direction == protocol.AdapterToHost {
			rows = append(rows, m)
		}
	}
	if len(rows) < 100 {
		t.Fatalf("the table has %d malformed frames of an adapter", len(rows))
	}
	return rows
}

func lenientFrames(t testing.TB) []protocol.Lenient {
	t.Helper()
	rows, err := protocol.LenientFrames()
	if err != nil || len(rows) < 60 {
		t.Fatalf("the table has %d lenient frames: %v", len(rows), err)
	}
	return rows
}

// Each row of a table has a name of its own.
func TestTables(t *testing.T) {
	var seen []string
	for _, m := range malformedFrames(t) {
		seen = append(seen, "malformed "+m.Name)
	}
	for _, l := range lenientFrames(t) {
		seen = append(seen, "lenient "+l.Name)
	}
	slices.Sort(seen)
	if n := len(seen); len(slices.Compact(seen)) != n {
		t.Error("a name is there twice")
	}
}

func TestMalformed(t *testing.T) {
	for _, m := range malformedFrames(t) {
		t.Run(m.Name, func(t *testing.T) { checkMalformed(t, m, dialectOf(t, m.Session)) })
	}
}

func checkMalformed(t *testing.T, m protocol.Malformed, d Dialect) {
	t.Helper()
	in, err := DecodeInboundAs([]byte(m.Frame), d)
	if err == nil {
		t.Fatalf("accepted as %+v", in)
	}
	if string(err.Code) != m.Code || err.Ref != m.Ref {
		t.Errorf("got code %s, ref %q (%s), want %s, %q", err.Code, err.Ref, err.Message, m.Code, m.Ref)
	}
	if !strings.HasPrefix(err.Message, m.Field+": ") {
		t.Errorf("message %q does not name %s", err.Message, m.Field)
	}
	if err.Code != CodeBadJSON && err.Code != CodeTooDeep && !strings.Contains(err.Message, "expected") &&
		!strings.Contains(err.Message, "allowed") && !strings.Contains(err.Message, "needs") {
		t.Errorf("message %q does not say what is allowed", err.Message)
	}
}

// What is malformed whatever the session has negotiated, is so under 1.1 too.
func TestMalformedUnderBoth(t *testing.T) {
	onlyV10 := []string{"unknown_type", "not_supported"} // the types of 1.1 are others
	for _, m := range malformedFrames(t) {
		if m.Protocol == V10.String() && !slices.Contains(onlyV10, m.Code) {
			t.Run(m.Name, func(t *testing.T) { checkMalformed(t, m, everything) })
		}
	}
}

func TestLenient(t *testing.T) {
	for _, l := range lenientFrames(t) {
		t.Run(l.Name, func(t *testing.T) {
			checkLenient(t, l, dialectOf(t, l.Session), func(o *Outbound) {
				if l.Protocol == V10.String() {
					o.MessageID = "" // a field unknown to 1.0
				} else {
					o.Plain = true
				}
			})
		})
	}
}

// What 1.0 understands, 1.1 does too, but for fields that only 1.1 knows and
// that are none: to ignore such an id or cursor would lose or repeat messages; and
// but for what adapters of 1.0 in the field get wrong (see Lenient).
func TestLenientUnderBoth(t *testing.T) {
	refused := map[string]string{
		"number_message_id": "message_id", "long_message_id": "message_id", "unknown_fields": "cursor",
		"number_ids": "session_key", "boolean_ids": "session_key", "other_ids": "session_key", "no_text": "text", "null_text": "text",
	}
	for _, l := range lenientFrames(t) {
		if l.Direction != protocol.AdapterToHost || l.Protocol != V10.String() {
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			if refused[l.Name] == "" {
				checkLenient(t, l, everything, nil)
				return
			}
			in, err := DecodeInboundAs([]byte(l.Frame), everything)
			if err == nil || !strings.HasPrefix(err.Message, refused[l.Name]+": ") {
				t.Errorf("%+v, %v", in, err)
			}
		})
	}
}

func checkLenient(t *testing.T, l protocol.Lenient, d Dialect, as func(*Outbound)) {
	t.Helper()
	var got []byte
	if l.Direction == protocol.AdapterToHost {
		in, err := DecodeInboundAs([]byte(l.Frame), d)
		if err != nil {
			t.Fatal(err)
		}
		got = in.Append(nil)
	} else {
		out, err := DecodeOutbound([]byte(l.Frame))
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

// dialectOf is that of a session with a frame of a table.
func dialectOf(t *testing.T, s protocol.Session) Dialect {
	t.Helper()
	switch {
	case s.Protocol == V10.String():
		return Dialect{}
	case s.Capabilities == nil:
		return everything
	}
	caps, unknown := ParseCapsFor(s.Protocol, *s.Capabilities)
	if len(unknown) > 0 {
		t.Fatalf("capabilities %q", unknown)
	}
	return Dialect{V11, Effective(caps, 0)}
}
