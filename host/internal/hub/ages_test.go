package hub

import (
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// TestAgesBetweenLooks: a clock that is set after the last look makes nothing
// older, and the next look tells what was made before it.
func TestAgesBetweenLooks(t *testing.T) {
	var set time.Duration
	a := newAges(func() time.Time { return time.Now().Add(set) })
	zero := ledger.MessageID(0).Time()
	idAt := func(at time.Time) ledger.MessageID { return ledger.MessageID(at.Sub(zero).Milliseconds() << 22) }
	before := idAt(time.Now())
	if got := before.Time(); time.Since(got).Abs() > time.Minute {
		t.Fatalf("the id says %v", got)
	}
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		set += by
		if got := a.of(before); got > time.Minute {
			t.Errorf("after %s, not looked at yet: %s old", by, got)
		}
		a.look(func() ledger.MessageID { return idAt(time.Now().Add(max(set, 0) + time.Second)) })
		if got := a.of(before); got.Abs() > time.Minute {
			t.Errorf("after %s: %s old", by, got)
		}
	}
}
