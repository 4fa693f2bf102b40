package sqlite

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// A clock that is set ahead counts once it has stood for a day, one that is set
// back at once.
func TestAlmanac(t *testing.T) {
	var log bytes.Buffer
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	wall, gone := start, time.Duration(0)
	a := newAlmanac(slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return wall })
	a.clock.Steady = func() time.Duration { return gone }
	pass := func(d time.Duration) { wall, gone = wall.Add(d), gone+d }
	want := func(what string, at time.Time) {
		t.Helper()
		if got := a.today(); !got.Equal(at) {
			t.Errorf("%s: %s, want %s", what, got, at)
		}
	}
	want("start", start)
	pass(time.Hour)
	want("an hour later", wall)
	wall = wall.Add(30 * time.Second)
	want("kept right", wall)
	right := wall
	wall = wall.Add(30 * 24 * time.Hour)
	want("set ahead", right)
	pass(23 * time.Hour)
	want("almost a day later", right.Add(23*time.Hour))
	if n := strings.Count(log.String(), "set ahead"); n != 1 {
		t.Errorf("said %d times: %s", n, log.String())
	}
	wall = right.Add(23 * time.Hour)
	want("set right again", wall)
	wall = wall.Add(48 * time.Hour)
	want("set ahead again", wall.Add(-48*time.Hour))
	pass(24 * time.Hour)
	want("a day later", wall)
	wall = wall.Add(-100 * time.Hour)
	want("set back", wall)
	pass(time.Minute)
	want("and on", wall)
}

// A clock that is set ahead while the host runs deletes nothing.
func TestRetentionDoubtsClock(t *testing.T) {
	s, now, log := swept(t, t.TempDir(), Options{})
	s.broom.days.clock.Steady = func() time.Duration { return 0 }
	row, chain := newChannel(t, s, "a")
	row.Retention = 1
	if _, err := s.UpdateChannel(t.Context(), row, ledger.Change{Actor: "test", Action: "channel.update"}); err != nil {
		t.Fatal(err)
	}
	pour(t, s, recalled(t, s, chain, "c"), 0, 3)
	*now = now.Add(48 * time.Hour)
	if err := s.broom.sweepOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, s, chain); len(got) != 3 || !strings.Contains(log.String(), "set ahead") {
		t.Errorf("left: %v; log: %s", got, log)
	}
	goesBy(s, now)
	s.broom.days.trusted = s.broom.days.clock.Drift()
	*now = now.Add(48 * time.Hour)
	if err := s.broom.sweepOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, s, chain); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}
