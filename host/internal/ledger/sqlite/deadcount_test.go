package sqlite

import (
	"database/sql"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// fillDead writes n messages of a channel that ended in a state, beside the host.
func fillDead(t *testing.T, d *sql.DB, channel, first, n int64, direction ledger.Direction, state ledger.State, reason any) {
	t.Helper()
	put(t, d, `WITH RECURSIVE i(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n + 1 < ?)
		INSERT INTO message (id, channel, conversation, prev, prev_channel, direction, state, turn, reply_to, text, reason)
		SELECT ? + n, ?, 1, 0, 0, ?, ?, 0, 0, 'a message of some length, as people write them', ? FROM i`, n, first, channel, direction, state, reason)
}

// Dead letters are counted by channel and reason, all of them; and past the bound
// it is said that there are more.
func TestCountDead(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	d, err := sql.Open("sqlite", "file:"+filepath.Join(dir, File)+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	count := func() ledger.DeadCounts {
		t.Helper()
		s.deadCounter.until = time.Time{} // it may have taken long here
		got, err := s.CountDead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := count(); got.Total() != 0 || !got.Whole {
		t.Errorf("of nothing: %+v", got)
	}
	fillDead(t, d, 1, 1, 700, ledger.Out, ledger.Failed, string(ledger.ReasonRejected))
	fillDead(t, d, 1, 1001, 30, ledger.Out, ledger.Expired, string(ledger.ReasonTTL))
	fillDead(t, d, 2, 2001, 5, ledger.In, ledger.Failed, string(ledger.ReasonAgentAway))
	fillDead(t, d, 2, 3001, 9, ledger.In, ledger.Failed, string(ledger.ReasonRejected)) // who may not speak: no dead letters
	fillDead(t, d, 2, 4001, 40, ledger.Out, ledger.Delivered, nil)
	want := map[ledger.Dying]int64{
		{Channel: 1, Reason: ledger.ReasonRejected}: 700, {Channel: 1, Reason: ledger.ReasonTTL}: 30, {Channel: 2, Reason: ledger.ReasonAgentAway}: 5,
	}
	if got := count(); !maps.Equal(got.Of, want) || !got.Whole || got.ByChannel()[1] != 730 {
		t.Errorf("got %+v, want %v", got, want)
	}
	fillDead(t, d, 2, 10_001, 900, ledger.Out, ledger.Failed, string(ledger.ReasonRetriesExhausted))
	s.deadCounter.most = 1000
	got := count()
	if got.Whole || got.ByChannel()[2] < 900 || got.Total() >= 1000 {
		t.Errorf("past the bound: %+v", got)
	}

	// What took long holds for a while.
	s.deadCounter.found, s.deadCounter.until = got, time.Now().Add(time.Hour)
	put(t, d, "DELETE FROM message")
	if again, err := s.CountDead(t.Context()); err != nil || again.Total() != s.deadCounter.found.Total() {
		t.Errorf("it was counted anew: %+v, %v", again, err)
	}
	if got := count(); got.Total() != 0 || !got.Whole {
		t.Errorf("of nothing again: %+v", got)
	}
}
