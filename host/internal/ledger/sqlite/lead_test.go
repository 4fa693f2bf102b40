package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// leader counts what it is told to flush.
type leader struct {
	lazy        bool
	here, later int
}

func (l *leader) Lively() bool { return !l.lazy }
func (l *leader) FlushHere()   { l.here++ }
func (l *leader) Flush()       { l.later++ }

// rests waits until the writer waits for work.
func rests(t *testing.T, s *Store) {
	t.Helper()
	await.Until(t, "the writer is not at work any more", func() bool {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		return s.w.waiting
	})
}

// TestAppendByCommitsHere: while the writer rests the unit is on the disk, and
// flushed, when AppendBy returns; a caller that is not lively leaves it to the writer.
func TestAppendByCommitsHere(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	conv := recalled(t, s, chain, "one")
	rests(t, s)
	l := &leader{}
	done := errors.New("not called")
	s.AppendBy(l, &ledger.Unit{Conversation: conv, In: &ledger.Row{Text: "q"}, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: "a"}}}, func(r ledger.Result) {
		done = r.Err
		r.Later(l)
	})
	if done != nil || l.here != 1 || l.later != 0 {
		t.Fatalf("done with %v, flushed here %d times and elsewhere %d, want once, here", done, l.here, l.later)
	}
	got, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 9)
	if err != nil || len(got) != 2 {
		t.Fatalf("found %v, %v", texts(got), err)
	}

	rests(t, s)
	l.lazy = true
	wait := make(chan struct{})
	s.AppendBy(l, &ledger.Unit{Conversation: conv, In: &ledger.Row{Text: "later"}}, func(r ledger.Result) { r.Later(flushed(wait)) })
	await.Value(t, "it is flushed", wait)
	if l.here != 1 {
		t.Error("a caller that is not lively committed")
	}
}

type flushed chan struct{}

func (f flushed) Flush() { close(f) }

// TestAppendByAmongOthers: leaders, others that append, and administrative
// changes lose nothing of one another, and ids are in the order of commit.
func TestAppendByAmongOthers(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	var wg sync.WaitGroup
	var mu sync.Mutex
	var last ledger.MessageID
	committed := 0
	const each = 150
	for g := range 6 {
		conv := recalled(t, s, chain, fmt.Sprint("conversation ", g))
		wg.Go(func() {
			for i := range each {
				ended := make(chan struct{})
				u := &ledger.Unit{Conversation: conv, In: &ledger.Row{Text: fmt.Sprint(i)}}
				done := func(r ledger.Result) {
					mu.Lock()
					defer mu.Unlock()
					if r.Err != nil || u.In.ID <= last {
						t.Errorf("%v; id %d after %d", r.Err, u.In.ID, last)
					}
					last = u.In.ID
					committed++
					close(ended)
				}
				if g%2 == 0 {
					s.AppendBy(&leader{}, u, done)
				} else {
					s.Append(u, done)
				}
				<-ended
			}
		})
	}
	wg.Go(func() {
		for range each {
			if err := s.change(func(*db.Queries) error { return nil }); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if committed != 6*each {
		t.Errorf("%d commits, want %d", committed, 6*each)
	}
}

// TestAppendByTidies: a log that grew by what leaders committed is moved into
// the database.
func TestAppendByTidies(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	conv := recalled(t, s, chain, "one")
	// A log begins anew when nobody reads: the index may, so that it is tried again
	// after as many pages.
	seen, last := make(chan int32, 1), int32(0)
	for range 20 * checkpointPages {
		rests(t, s)
		s.AppendBy(&leader{}, &ledger.Unit{Conversation: conv, In: &ledger.Row{Text: strings.Repeat("x", 4000)}}, func(ledger.Result) {
			seen <- s.w.pages // of the commit before: here nobody else writes
		})
		pages := await.Value(t, "the commit", seen)
		if pages < last {
			return
		}
		last = pages
	}
	t.Errorf("the log never began anew: it has %d pages", last)
}

// TestAppendByPanics: after a defect in a commit nothing is stored any more,
// whoever recovers from it, and nothing hangs.
func TestAppendByPanics(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	conv := recalled(t, s, chain, "one")
	rests(t, s)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach its caller")
			}
		}()
		s.AppendBy(&leader{}, &ledger.Unit{Conversation: conv, In: &ledger.Row{Text: "q"}}, func(ledger.Result) { panic("defect") })
	}()
	if err := commit(s, &ledger.Unit{Conversation: conv, In: &ledger.Row{Text: "next"}}); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "defect") {
		t.Errorf("the next commit: %v", err)
	}
	if err := s.Serve(t.Context()); err == nil {
		t.Error("the store does not say that it is broken")
	}
}

// TestAppendByAtTheEnd: closing waits for a leader, and nothing is lost.
func TestAppendByAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, chain := newChannel(t, s, "a")
	conv := recalled(t, s, chain, "one")
	rests(t, s)
	inside, rest := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		s.AppendBy(&leader{}, &ledger.Unit{Conversation: conv, In: &ledger.Row{Text: "last"}}, func(ledger.Result) { close(inside); <-rest })
	})
	await.Value(t, "the leader is inside", inside)
	wg.Go(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	await.Until(t, "Close does something", func() bool {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		return s.w.closed || len(s.w.jobs) > 0 // the mark is saved first
	})
	close(rest)
	wg.Wait()
	again := open(t, dir)
	defer func() { _ = again.Close() }()
	chain, err := again.Own(t.Context(), chain.Channel)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 9); err != nil || len(got) != 1 {
		t.Errorf("found %v, %v", texts(got), err)
	}
}
