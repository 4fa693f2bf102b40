package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// together appends units while the writer is held up, so that they become one batch,
// and returns what became of each.
func together(s *Store, units []*ledger.Unit) []error {
	hold := make(chan struct{})
	held := make(chan struct{})
	go func() {
		_ = s.change(func(*db.Queries) error { close(held); <-hold; return nil })
	}()
	<-held
	got := make([]error, len(units))
	var wg sync.WaitGroup
	wg.Add(len(units))
	for i, u := range units {
		s.Append(u, func(r ledger.Result) { got[i] = r.Err; wg.Done() })
	}
	close(hold)
	wg.Wait()
	return got
}

// does runs SQL on a connection of its own, as some other program would.
func does(t testing.TB, dir, statement string) {
	t.Helper()
	d, err := sql.Open("sqlite", filepath.Join(dir, File)+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if _, err := d.ExecContext(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}

// One that repeats its messages must not cost the others a commit each.
func TestRepeatsShareTheCommitOfTheOthers(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "first", PlatformID: "known"}}); err != nil {
		t.Fatal(err)
	}
	for round := range 3 { // the first finds a writer that expects no repeats
		before := s.Stats().Commits.Counts()
		var units []*ledger.Unit
		for i := range 200 {
			id := fmt.Sprintf("p%d-%d", round, i)
			if i%10 == 3 {
				id = "known"
			}
			if i%10 == 7 { // of one in the same commit
				id = fmt.Sprintf("p%d-%d", round, i-1)
			}
			units = append(units, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "x", PlatformID: id}, Out: make([]ledger.Row, 1)})
			units[i].Out[0].Direction, units[i].Out[0].State = ledger.Out, ledger.Sent
		}
		for i, err := range together(s, units) {
			if repeat := i%10 == 3 || i%10 == 7; repeat != errors.Is(err, ledger.ErrDuplicate) || !repeat && err != nil {
				t.Fatalf("round %d, unit %d: %v", round, i, err)
			}
		}
		now := s.Stats().Commits.Counts()
		if n := now.Since(&before).Total(); n != 1 {
			t.Errorf("round %d: %d commits for one batch with repeats, want 1", round, n)
		}
	}
	all, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 2000)
	if err != nil || len(all) != 1+3*160*2 {
		t.Errorf("%d messages were kept, want %d: %v", len(all), 1+3*160*2, err)
	}
	for i := 1; i < len(all); i++ {
		if all[i].ID >= all[i-1].ID {
			t.Fatal("the history is out of order")
		}
	}
}

// What the database refuses for another reason was not stored: it is no repeat, and
// nobody may acknowledge it.
func TestOnlyARepeatIsARepeat(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer func() { _ = s.Close() }()
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	does(t, dir, "CREATE TRIGGER veto BEFORE INSERT ON message WHEN new.text = 'unfit' BEGIN SELECT RAISE(ABORT, 'unfit'); END")
	alone := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "unfit", PlatformID: "p0"}})
	var units []*ledger.Unit
	for i := range 40 {
		units = append(units, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "fit", PlatformID: fmt.Sprint("p", 1+i)}})
	}
	units[20].In.Text = "unfit"
	units[21].In.PlatformID = "p21" // of the one that is not stored: a repeat of nothing
	units[22].In.PlatformID = "p1"  // of the first
	units[30].After = units[20]
	got := together(s, units)
	for i, err := range append(slices.Clone(got), alone) {
		var ok bool
		switch i {
		case 20, 30, 40:
			ok = errors.Is(err, ledger.ErrUnavailable) && !errors.Is(err, ledger.ErrDuplicate)
		case 22:
			ok = errors.Is(err, ledger.ErrDuplicate)
		default:
			ok = err == nil
		}
		if !ok {
			t.Errorf("unit %d: %v", i, err)
		}
	}
	if s.Stats().Failing.Load() {
		t.Error("one message that does not fit counts as trouble of the disk")
	}
	all, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 100)
	if err != nil || len(all) != 37 {
		t.Errorf("%d messages were kept, want 37: %v", len(all), err)
	}
}

// A change of a message that was deleted costs only itself.
func TestChangeOfADeletedMessageSharesTheCommit(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	var units []*ledger.Unit
	for i := range 60 {
		u := &ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Queued, Text: fmt.Sprint(i)}}}
		if i%6 == 5 {
			u = &ledger.Unit{Conversation: c, Settle: []ledger.Settlement{{ID: 7, State: ledger.Delivered}}}
		}
		units = append(units, u)
	}
	before := s.Stats().Commits.Counts()
	for i, err := range together(s, units) {
		if gone := i%6 == 5; gone != errors.Is(err, ledger.ErrRemoved) || !gone && err != nil {
			t.Errorf("unit %d: %v", i, err)
		}
	}
	now := s.Stats().Commits.Counts()
	if n := now.Since(&before).Total(); n != 1 {
		t.Errorf("%d commits, want 1", n)
	}
	// What the batch itself brings may be changed in it.
	out := &ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent}}}
	late := &ledger.Unit{Conversation: c, Settle: []ledger.Settlement{{State: ledger.Delivered}}}
	hold, held := make(chan struct{}), make(chan struct{})
	go func() { _ = s.change(func(*db.Queries) error { close(held); <-hold; return nil }) }()
	<-held
	errs := make(chan error, 3)
	done := func(r ledger.Result) { errs <- r.Err }
	gone := &ledger.Unit{Conversation: c, Settle: []ledger.Settlement{{ID: 7, State: ledger.Delivered}}}
	s.Append(out, done)
	late.Settle[0].ID = out.Out[0].ID
	s.Append(late, done)
	s.Append(gone, done)
	close(hold)
	if a, b, c := <-errs, <-errs, <-errs; a != nil || b != nil || !errors.Is(c, ledger.ErrRemoved) {
		t.Errorf("sent: %v, settled: %v, deleted: %v", a, b, c)
	}
}

// A deletion that did not come about must not leave a channel that refuses.
func TestChannelThatWasNotDeletedAfterAllGoesOn(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer func() { _ = s.Close() }()
	channel, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	does(t, dir, "CREATE TABLE veto (id INTEGER REFERENCES channel (id) DEFERRABLE INITIALLY DEFERRED)")
	does(t, dir, "CREATE TRIGGER veto BEFORE DELETE ON channel BEGIN INSERT INTO veto VALUES (-1); END")
	if err := s.DeleteChannel(t.Context(), channel, ledger.Change{Actor: "test", Action: "channel.delete"}); err == nil || !strings.Contains(err.Error(), "FOREIGN KEY") {
		t.Fatalf("the deletion was to fail when it is committed: %v", err)
	}
	if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "still here"}}); err != nil {
		t.Errorf("the channel was not deleted: %v", err)
	}
	does(t, dir, "DROP TRIGGER veto")
	if err := s.DeleteChannel(t.Context(), channel, ledger.Change{Actor: "test", Action: "channel.delete"}); err != nil {
		t.Fatal(err)
	}
	if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "too late"}}); !errors.Is(err, ledger.ErrRemoved) {
		t.Errorf("the channel was deleted: %v", err)
	}
}

// BenchmarkRepeats is the cost of a question with its answer, while one of sixteen
// adapters repeats what was stored; compare it with none.
func BenchmarkRepeats(b *testing.B) {
	for _, beside := range []bool{false, true} {
		b.Run(map[bool]string{false: "none", true: "one of 16 adapters"}[beside], func(b *testing.B) {
			s := opened(b)
			var convs []*ledger.Conversation
			for i := range 17 {
				_, chain := newChannel(b, s, fmt.Sprint("a", i))
				convs = append(convs, recalled(b, s, chain, "c"))
			}
			if err := commit(s, &ledger.Unit{Conversation: convs[16], In: &ledger.Row{Text: "x", PlatformID: "known"}}); err != nil {
				b.Fatal(err)
			}
			window := make(chan struct{}, 800)
			var wg sync.WaitGroup
			b.ResetTimer()
			for i := range b.N {
				if beside && i%16 == 0 {
					s.Append(&ledger.Unit{Conversation: convs[16], In: &ledger.Row{Text: "x", PlatformID: "known"}}, nil)
				}
				window <- struct{}{}
				wg.Add(1)
				s.Append(&ledger.Unit{
					Conversation: convs[i%16], In: &ledger.Row{Text: "hello", PlatformID: fmt.Sprint(i)}, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: "hello"}},
				}, func(r ledger.Result) {
					if r.Err != nil {
						b.Error(r.Err)
					}
					<-window
					wg.Done()
				})
			}
			wg.Wait()
		})
	}
}
