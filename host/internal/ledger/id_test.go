package ledger

import (
	"testing"
	"time"
)

func TestIDs(t *testing.T) {
	now := time.UnixMilli(idEpoch + 5)
	g := IDs{Now: func() time.Time { return now }}
	a := g.Next()
	now = now.Add(-time.Hour)
	if b := g.Next(); b <= a {
		t.Errorf("the clock went back and so did the id: %s after %s", b, a)
	}
	for _, id := range []MessageID{0, 1, a, 1<<63 - 1} {
		if got, err := ParseMessageID(id.String()); err != nil || got != id {
			t.Errorf("%d → %s → %d, %v", id, id, got, err)
		}
	}
	for _, bad := range []string{"", "x", "zzzzzzzzzzzzz", "000000000000i", "00000000000000"} {
		if _, err := ParseMessageID(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
