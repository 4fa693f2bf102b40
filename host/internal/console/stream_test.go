package console

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestStreamReader: events arrive whole, however the API cuts its writes.
func TestStreamReader(t *testing.T) {
	text := ": pontoon\n\nid: 7\nevent: message.created\ndata: {\"a\":\ndata: 1}\n\ndata: x\n\n"
	want := []event{{}, {ID: "7", Name: "message.created", Data: "{\"a\":\n1}"}, {Data: "x"}}
	for size := 1; size <= len(text); size++ {
		var got []event
		s := &streamReader{status: 200, each: func(e event) error { got = append(got, e); return nil }}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := s.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Fatalf("writes of %d bytes: got %q", size, got)
		}
	}
}

// TestStreamReaderEnds: what each refuses ends the stream, and so does an event
// without end.
func TestStreamReaderEnds(t *testing.T) {
	gone := errors.New("gone")
	s := &streamReader{status: 200, each: func(event) error { return gone }}
	if _, err := s.Write([]byte("data: x\n\n")); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	s = &streamReader{status: 200, each: func(event) error { return nil }}
	var err error
	for i := 0; i < 20 && err == nil; i++ {
		_, err = s.Write([]byte(strings.Repeat("x", 1<<20)))
	}
	if !errors.Is(err, errEvent) {
		t.Errorf("got %v", err)
	}
}

// TestSender: a line end in the data can't end the event or begin another field.
func TestSender(t *testing.T) {
	w := httptest.NewRecorder()
	if err := newSender(w).send(event{Name: "log", Data: "a\r\n\nevent: b"}); err != nil {
		t.Fatal(err)
	}
	if got, want := w.Body.String(), "event: log\ndata: a\ndata: \ndata: event: b\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzStreamReader: whatever the API writes, in whatever pieces, is read alike.
func FuzzStreamReader(f *testing.F) {
	f.Add("id: 1\ndata: x\n\n", 3)
	f.Add(": a\n\n\n\ndata", 1)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		read := func(pieces ...string) (got []event) {
			s := &streamReader{status: 200, each: func(e event) error { got = append(got, e); return nil }}
			for _, p := range pieces {
				if _, err := s.Write([]byte(p)); err != nil {
					t.Fatal(err)
				}
			}
			return got
		}
		cut = max(0, min(cut, len(text)))
		one, two := read(text), read(text[:cut], text[cut:])
		if len(one) != len(two) {
			t.Fatalf("%d events whole, %d in two pieces", len(one), len(two))
		}
		for i := range one {
			if one[i] != two[i] {
				t.Fatalf("event %d: %q whole, %q in two pieces", i, one[i], two[i])
			}
		}
	})
}
