package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// swept opens a store with a clock that the test moves, and sweeps nothing by
// itself. Its log is in the buffer.
func swept(t *testing.T, dir string, o Options) (s *Store, now *time.Time, log *bytes.Buffer) {
	t.Helper()
	log, now = new(bytes.Buffer), new(time.Time)
	*now = time.Now()
	o.Now, o.Log = func() time.Time { return *now }, slog.New(slog.NewTextHandler(log, nil))
	s, err := Open(t.Context(), blank.Dir(t, dir), o)
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	goesBy(s, now)
	t.Cleanup(func() { _ = s.Close() })
	return s, now, log
}

// goesBy lets time pass by the test's clock: it was not set ahead.
func goesBy(s *Store, now *time.Time) {
	began := *now
	s.broom.days.clock.Steady = func() time.Duration { return now.Sub(began) }
}

// pour commits n messages of a kilobyte, named by their number.
func pour(t *testing.T, s *Store, c *ledger.Conversation, from, n int) {
	t.Helper()
	pad := strings.Repeat("x", 1000)
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		s.Append(&ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: fmt.Sprintf("%d %s", from+i, pad)}}}, func(r ledger.Result) {
			if r.Err != nil {
				t.Error(r.Err)
			}
			wg.Done()
		})
	}
	wg.Wait()
}

func numbers(t *testing.T, s *Store, chain *ledger.Tail) []string {
	t.Helper()
	all, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	out := texts(all)
	for i := range out {
		out[i], _, _ = strings.Cut(out[i], " ")
	}
	return out
}

// bytesOf are attachments of which only the size counts.
type bytesOf int64

func (b bytesOf) Bytes() int64  { return int64(b) }
func (bytesOf) Remove([]string) {}

func TestStorageLimitDeletesTheOldest(t *testing.T) {
	const limit = 2 << 20
	s, now, log := swept(t, t.TempDir(), Options{MaxBytes: limit})
	_, a := newChannel(t, s, "a")
	_, b := newChannel(t, s, "b")
	pour(t, s, recalled(t, s, a, "c"), 0, 400)
	*now = now.Add(time.Minute)
	pour(t, s, recalled(t, s, b, "c"), 400, 400)
	*now = now.Add(time.Minute)
	pour(t, s, recalled(t, s, a, "c2"), 800, 400)
	*now = now.Add(time.Hour)
	pour(t, s, recalled(t, s, b, "young"), 1200, 50)

	if err := s.broom.sweepOver(t.Context()); err != nil || log.Len() > 0 {
		t.Fatalf("below the limit: %v\n%s", err, log)
	}
	s.SetFiles(bytesOf(1 << 20))
	if err := s.broom.sweepOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	used, err := s.broom.used(t.Context())
	if err != nil || used > limit-limit/sizeRoom || used < limit/2 {
		t.Fatalf("uses %d bytes, %v, expected somewhat less than %d", used, err, limit)
	}
	left := append(numbers(t, s, b), numbers(t, s, a)...)
	if want := 1250 - len(left); !slices.Contains(left, fmt.Sprint(want)) || slices.Contains(left, fmt.Sprint(want-1)) || len(left) < 300 || len(left) > 1000 {
		t.Fatalf("%d messages are left: %v, expected the newest", len(left), left)
	}
	if !strings.Contains(log.String(), `why="storage was over its limit"`) || !strings.Contains(log.String(), fmt.Sprint("count=", 1250-len(left))) {
		t.Errorf("logged: %s", log)
	}
	if gone, err := s.NewestGone(t.Context()); err != nil || gone == 0 {
		t.Errorf("newest that is gone: %v, %v", gone, err)
	}

	// What is too young to go stays, whatever the limit says; that is told, now and then.
	s.SetFiles(bytesOf(limit))
	log.Reset()
	for range 3 {
		if err := s.broom.sweepOver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := append(numbers(t, s, b), numbers(t, s, a)...); len(got) != 50 || got[49] != "1200" {
		t.Errorf("left %v, expected the 50 young ones", got)
	}
	if n := strings.Count(log.String(), "nothing is left"); n != 1 {
		t.Errorf("warned %d times, expected once:\n%s", n, log)
	}
	*now = now.Add(2 * time.Hour)
	if err := s.broom.sweepOver(t.Context()); err != nil || len(numbers(t, s, b)) != 0 {
		t.Errorf("left %v, %v", numbers(t, s, b), err)
	}
}

// The pages of deleted messages are written again: the file does not grow.
func TestFreedPagesAreReused(t *testing.T) {
	s, now, _ := swept(t, t.TempDir(), Options{})
	ch, chain := newChannel(t, s, "a")
	ch.Retention = 1
	if _, err := s.UpdateChannel(t.Context(), ch, ledger.Change{}); err != nil {
		t.Fatal(err)
	}
	c := recalled(t, s, chain, "c")
	pages := func() (n int) {
		if err := s.readDB.QueryRow("PRAGMA page_count").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var first int
	for i := range 5 {
		pour(t, s, c, i*500, 500)
		*now = now.Add(25 * time.Hour)
		if err := s.broom.sweepOld(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := numbers(t, s, chain); len(got) != 0 {
			t.Fatalf("left: %v", got)
		}
		if i == 0 {
			first = pages()
		}
	}
	if now := pages(); now > first+first/10 {
		t.Errorf("%d pages after five rounds, %d after one", now, first)
	}
}

func TestWhatIsUnfinishedBlocksItsChannelAlone(t *testing.T) {
	s, now, log := swept(t, t.TempDir(), Options{MaxBytes: 1})
	_, a := newChannel(t, s, "a")
	_, b := newChannel(t, s, "b")
	ca := recalled(t, s, a, "c")
	pour(t, s, ca, 0, 3)
	stuck := &ledger.Unit{Conversation: ca, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Queued, Text: "stuck"}}}
	if err := commit(s, stuck); err != nil {
		t.Fatal(err)
	}
	pour(t, s, ca, 3, 2)
	pour(t, s, recalled(t, s, b, "c"), 5, 5)
	*now = now.Add(time.Hour)
	if err := s.broom.sweepOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, s, a); !slices.Equal(got, []string{"4", "3", "stuck"}) || len(numbers(t, s, b)) != 0 {
		t.Fatalf("left %v and %v\n%s", got, numbers(t, s, b), log)
	}
	if err := commit(s, &ledger.Unit{Conversation: ca, Settle: []ledger.Settlement{{ID: stuck.Out[0].ID, State: ledger.Failed, Reason: ledger.ReasonRejected}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.broom.sweepOver(t.Context()); err != nil || len(numbers(t, s, a)) != 0 {
		t.Errorf("left %v, %v", numbers(t, s, a), err)
	}

	// Somebody who saw it as a dead letter before asks for it again.
	err := commit(s, &ledger.Unit{Conversation: ca, Settle: []ledger.Settlement{{ID: stuck.Out[0].ID, State: ledger.Queued, Life: []ledger.Life{{What: "replayed"}}}}})
	if !errors.Is(err, ledger.ErrRemoved) {
		t.Errorf("a deleted message is queued: %v", err)
	}
	if n, err := s.CountPending(t.Context(), a.Channel); n != 0 || err != nil {
		t.Errorf("%d wait, %v", n, err)
	}
}

// A conversation goes with its last message, unless somebody chose something in it.
func TestEmptyConversations(t *testing.T) {
	dir := t.TempDir()
	s, now, _ := swept(t, dir, Options{MaxBytes: 1})
	_, chain := newChannel(t, s, "a")
	muted := ledger.Settings{Muted: true}
	for _, u := range []*ledger.Unit{
		{Conversation: recalled(t, s, chain, "plain"), In: &ledger.Row{Text: "x"}, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: "y"}}},
		{Conversation: recalled(t, s, chain, "muted"), In: &ledger.Row{Text: "x"}, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: "y", Offers: true}}, Set: &muted},
	} {
		if err := commit(s, u); err != nil {
			t.Fatal(err)
		}
	}
	*now = now.Add(time.Hour)
	if err := s.broom.sweepOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := s.Conversations(t.Context(), []int64{chain.Channel}, 0, 10)
	if err != nil || len(all) != 1 || all[0].Key != "muted" {
		t.Fatalf("conversations: %+v, %v", all, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// The clock is wrong now: ids ascend all the same.
	last := all[0].Newest
	s, err = Open(t.Context(), dir, Options{Now: func() time.Time { return now.Add(-100 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if chain, err = s.Own(t.Context(), chain.Channel); err != nil {
		t.Fatal(err)
	}
	r, err := s.Conversation(t.Context(), chain, "muted")
	if err != nil || !r.Muted || r.Offer != nil || r.Latest != (ledger.Origin{}) {
		t.Fatalf("recalled %+v, %v", r, err)
	}
	u := &ledger.Unit{Conversation: r.Conversation, In: &ledger.Row{Text: "again"}}
	if err := commit(s, u); err != nil || u.In.ID <= last {
		t.Errorf("id %s after %s, %v", u.In.ID, last, err)
	}
	key := "muted"
	if got, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel, Conversation: &key}, 0, 10); err != nil || !slices.Equal(texts(got), []string{"again"}) {
		t.Errorf("history %v, %v", texts(got), err)
	}
}

// While messages go, others come: nobody is refused, and none is lost.
func TestSweepingBesideTheWriter(t *testing.T) {
	s, now, _ := swept(t, t.TempDir(), Options{MaxBytes: 1})
	_, chain := newChannel(t, s, "a")
	pour(t, s, recalled(t, s, chain, "old"), 0, 1000)
	*now = now.Add(time.Hour)
	done := make(chan error, 1)
	go func() { done <- s.broom.sweepOver(context.Background()) }()
	c := recalled(t, s, chain, "new")
	for i := range 20 {
		pour(t, s, c, 1000+50*i, 50)
	}
	if err := await.Value(t, "the sweep", done); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, s, chain); len(got) != 1000 || got[999] != "1000" {
		t.Errorf("%d messages are left, expected the 1000 new ones", len(got))
	}
}

// An older database learns which messages name attachments.
func TestUpgradeFindsAttachments(t *testing.T) {
	dir := t.TempDir()
	d := older(t, dir, 5)
	const path = "agent-files/agent-inputs/o/%d.png"
	at := func(n int) string { return fmt.Sprintf(path, n) }
	if _, err := d.Exec(`INSERT INTO channel (id, uid, name, kind, enabled, agent, agents, queue, accept_capabilities, allow_users, profile, created_at)
		VALUES (1, 'u', 'a', 'bridge', 1, 'echo', '[]', 0, '[]', '[]', '{}', 0);
		INSERT INTO conversation (id, channel, key, head) VALUES (1, 1, 'c', 6)`); err != nil {
		t.Fatal(err)
	}
	for id, c := range map[int][2]any{
		1: {nil, nil},
		2: {[]byte(`[{"type":"vision","kind":"input","url":"/storage/v1/object/sign/` + at(1) + `"},{"type":"vision","url":"\/storage\/v1/object/sign/` + at(2) + `"}]`), nil},
		3: {[]byte(`[{"type":"file","path":"x"}]`), []byte(`{"links":{"0":"` + at(1) + `","1":"` + at(3) + `"}}`)},
		4: {[]byte("\xff not JSON"), []byte("{")},
		5: {[]byte(`[{"type":"vision","url":"https://elsewhere/storage/v1/object/sign/` + at(4) + `"}]`), []byte(`{}`)},
	} {
		if _, err := d.Exec(`INSERT INTO message (id, channel, conversation, prev, prev_channel, direction, state, turn, reply_to, text, parts, meta)
			VALUES (?, 1, 1, ?, ?, 1, 3, 0, 0, 't', ?, ?)`, id, id-1, id-1, c[0], c[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s, _, _ := swept(t, dir, Options{})
	named, err := s.Named(t.Context(), []string{at(1), at(2), at(3), at(4)})
	slices.Sort(named)
	if err != nil || !slices.Equal(named, []string{at(1), at(2), at(3)}) {
		t.Fatalf("named %v, %v", named, err)
	}
	var rows int
	if err := s.readDB.QueryRow("SELECT count(*) FROM attachment").Scan(&rows); err != nil || rows != 4 {
		t.Errorf("%d rows, %v, expected 4", rows, err)
	}
}
