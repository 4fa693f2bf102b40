package sqlite

import (
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
)

func minuteOfChannel(key int64, at time.Time, received int64, took time.Duration) tally.Minute {
	m := tally.Minute{Channel: key, At: at, Received: received, Sent: 1, Failed: 2, Refused: 3, Queue: received}
	m.Latency.Observe(&tally.Delays, int64(took))
	return m
}

func TestMinutes(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 3, 4, 12, 0, 30, 0, time.UTC)
	var passed atomic.Int64 // the index asks for the time, too
	clock := Options{Now: func() time.Time { return now.Add(time.Duration(passed.Load())) }}
	s, err := Open(t.Context(), dir, clock)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	c, _ := newChannel(t, s, "a")
	at := now.Truncate(time.Minute)
	all := minuteOfChannel(tally.AllChannels, at, 5, time.Second)
	one := minuteOfChannel(c.Key, at, 4, time.Second)
	if err := s.SaveMinutes(t.Context(), []tally.Minute{all, one, minuteOfChannel(c.Key+1, at, 9, 0)}); err != nil {
		t.Fatal(err)
	}
	// The rest of a minute that was written before counts too, also after a restart.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), dir, clock); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveMinutes(t.Context(), []tally.Minute{minuteOfChannel(c.Key, at, 3, time.Minute)}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Minutes(t.Context(), c.Key, at, at.Add(time.Minute))
	if err != nil || len(got) != 1 {
		t.Fatalf("read %+v, %v", got, err)
	}
	if m := got[0]; m.Received != 7 || m.Sent != 2 || m.Failed != 4 || m.Refused != 6 || m.Queue != 4 || m.Latency.Total() != 2 || !m.At.Equal(at) {
		t.Errorf("read %+v", m)
	}
	if got, err := s.Minutes(t.Context(), tally.AllChannels, at, at.Add(time.Minute)); err != nil || !reflect.DeepEqual(got, []tally.Minute{all}) {
		t.Errorf("of all: %+v, %v", got, err)
	}
	for name, span := range map[string][2]time.Time{"before": {at.Add(-time.Hour), at}, "behind": {at.Add(time.Minute), at.Add(time.Hour)}} {
		if got, err := s.Minutes(t.Context(), c.Key, span[0], span[1]); err != nil || len(got) != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := s.Minutes(t.Context(), c.Key+1, at, at.Add(time.Minute)); err != nil || len(got) != 0 {
		t.Errorf("of a channel that is not there: %+v, %v", got, err)
	}

	// What is too old goes, and what a deleted channel left.
	passed.Store(int64(tally.KeepMinutes + time.Minute))
	later := clock.Now()
	if err := s.SaveMinutes(t.Context(), []tally.Minute{minuteOfChannel(c.Key, later, 1, 0)}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Minutes(t.Context(), c.Key, at, at.Add(time.Minute)); err != nil || len(got) != 0 {
		t.Errorf("two days later: %+v, %v", got, err)
	}
	if err := s.DeleteChannel(t.Context(), c, ledger.Change{Actor: "test", Action: "channel.delete"}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Minutes(t.Context(), c.Key, later.Add(-time.Hour), later.Add(time.Hour)); err != nil || len(got) != 0 {
		t.Errorf("of a deleted channel: %+v, %v", got, err)
	}
}

// TestMinutesOfManyChannels: more rows than one transaction takes are all written,
// and all go.
func TestMinutesOfManyChannels(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 30, 0, time.UTC)
	var passed atomic.Int64
	s, err := Open(t.Context(), t.TempDir(), Options{Now: func() time.Time { return now.Add(time.Duration(passed.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	const n = 2*minuteStep + 1
	var all []tally.Minute
	for i := range n {
		all = append(all, minuteOfChannel(tally.AllChannels, now.Add(-time.Duration(i)*time.Minute), int64(i), 0))
	}
	if err := s.SaveMinutes(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Minutes(t.Context(), tally.AllChannels, now.Add(-n*time.Minute), now.Add(time.Minute)); err != nil || len(got) != n {
		t.Errorf("%d rows, %v, want %d", len(got), err, n)
	}
	passed.Store(int64(tally.KeepMinutes + time.Hour))
	if err := s.SaveMinutes(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Minutes(t.Context(), tally.AllChannels, time.Unix(0, 0), now.Add(tally.KeepMinutes+time.Hour)); err != nil || len(got) != 0 {
		t.Errorf("%d rows stay, %v", len(got), err)
	}
}

func TestSizes(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer func() { _ = s.Close() }()
	newChannel(t, s, "a")
	z := s.Sizes()
	if z.Database == 0 || z.WAL == 0 || z.Space.Free == 0 || z.Space.Total < z.Space.Free {
		t.Errorf("in %s: %+v", filepath.Base(dir), z)
	}
	if busy, most := s.Reading(); busy != 0 || most != readers {
		t.Errorf("%d of %d read", busy, most)
	}
}
