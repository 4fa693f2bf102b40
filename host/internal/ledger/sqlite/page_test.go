package sqlite

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// A page ends by its bytes too, and where it ends the next one goes on; what is
// larger than a page goes alone.
func TestPageEndsByBytes(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	conv := recalled(t, s, chain, "r")
	large := strings.Repeat("x", ledger.PageBytes/4)
	for range 10 {
		if err := commit(s, &ledger.Unit{Conversation: conv, In: &ledger.Row{State: ledger.Handled, Text: large}}); err != nil {
			t.Fatal(err)
		}
	}
	seen, pages := 0, 0
	for before := ledger.MessageID(0); ; pages++ {
		page, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, before, 500)
		if err != nil {
			t.Fatal(err)
		}
		if seen += len(page); !ledger.PageFull(page, 500) {
			break
		}
		if len(page) > 5 {
			t.Errorf("a page has %d messages", len(page))
		}
		before = page[len(page)-1].ID
	}
	if seen != 10 || pages < 2 {
		t.Errorf("%d messages in %d full pages", seen, pages)
	}
}

// What is read for the queue, for recovery and of the audit log ends by its bytes too,
// and nothing is left out.
func TestReadersEndByBytes(t *testing.T) {
	s := opened(t)
	row, chain := newChannel(t, s, "a")
	conv := recalled(t, s, chain, "r")
	large := strings.Repeat("x", ledger.PageBytes/4)
	for range 10 {
		u := &ledger.Unit{Conversation: conv, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Queued, Text: large}}}
		if err := commit(s, u); err != nil {
			t.Fatal(err)
		}
		if err := commit(s, &ledger.Unit{Conversation: conv, In: &ledger.Row{State: ledger.Received, Text: large}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Note(t.Context(), ledger.Change{Action: "test", Detail: json.RawMessage(`"` + large + `"`)}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for after := ledger.MessageID(0); ; {
		page, err := s.Pending(t.Context(), row.Key, after, 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		if len(page) > 4 {
			t.Errorf("%d queued messages at once", len(page))
		}
		n += len(page)
		after = page[len(page)-1].ID
	}
	if n != 10 {
		t.Errorf("%d queued messages", n)
	}
	if open, err := s.Unanswered(t.Context()); err != nil || len(open) != 10 {
		t.Errorf("%d unanswered messages: %v", len(open), err)
	}
	for name, read := range map[string]func(at int64) ([]ledger.Change, error){
		"newest first": func(at int64) ([]ledger.Change, error) {
			return s.Audit(t.Context(), ledger.AuditQuery{Action: "test"}, at, 500)
		},
		"oldest first": func(at int64) ([]ledger.Change, error) {
			return s.AuditAfter(t.Context(), ledger.AuditQuery{Action: "test"}, at, 500)
		},
	} {
		n := 0
		for at, more := int64(0), true; more; {
			page, err := read(at)
			if err != nil || len(page) == 0 || len(page) > 4 {
				t.Fatalf("%s: a page of %d changes: %v", name, len(page), err)
			}
			n, at, more = n+len(page), page[len(page)-1].ID, ledger.PageFull(page, 500)
		}
		if n != 10 {
			t.Errorf("%s: %d changes", name, n)
		}
	}
}
