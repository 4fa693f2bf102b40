package sqlite

import (
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
