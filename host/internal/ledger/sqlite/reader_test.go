package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// told fills a conversation and returns its scope.
func told(t *testing.T, s *Store, chain *ledger.Tail, key string, pairs int) ledger.Scope {
	t.Helper()
	c := recalled(t, s, chain, key)
	for i := range pairs {
		err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: fmt.Sprint("q", i), State: ledger.Handled}, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: fmt.Sprint("a", i)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return ledger.Scope{Channel: chain.Channel, Conversation: &key}
}

func TestPageOfHistoryHasEverythingThatWasKept(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "one")
	row := ledger.Row{
		Text: "text", State: ledger.Handled, Parts: []byte(`[{"type":"text"}]`), Origin: packed.AppendOrigin(nil, ledger.Origin{SessionKey: "k", UserID: "u", ReplyCtx: `{"a": 1}`}),
		Meta: []byte(`{"m":1}`), Notes: []byte(`[]`), PlatformID: "p1",
	}
	if err := commit(s, &ledger.Unit{Conversation: c, In: &row}); err != nil {
		t.Fatal(err)
	}
	err := commit(s, &ledger.Unit{Conversation: c, Settle: []ledger.Settlement{{ID: row.ID, State: ledger.Failed, Reason: ledger.ReasonRejected, Handle: "h"}}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.Message(t.Context(), row.ID)
	if err != nil {
		t.Fatal(err)
	}
	key := "one"
	for name, scope := range map[string]ledger.Scope{"conversation": {Channel: chain.Channel, Conversation: &key}, "channel": {Channel: chain.Channel}} {
		got, err := s.Before(t.Context(), scope, 0, 10)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %d messages, %v", name, len(got), err)
		}
		if a, b := fmt.Sprintf("%+v", got[0]), fmt.Sprintf("%+v", want); a != b {
			t.Errorf("%s: page has\n%s\nbut the message is\n%s", name, a, b)
		}
	}
}

func TestHistoryEndsWhereMessagesWereRemoved(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	scope := told(t, s, chain, "one", 3)
	all, err := s.Before(t.Context(), scope, 0, 10)
	if err != nil || len(all) != 6 {
		t.Fatalf("%d messages, %v", len(all), err)
	}
	if _, err := s.admin.ExecContext(t.Context(), "DELETE FROM message WHERE id <= ?", int64(all[3].ID)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Before(t.Context(), scope, 0, 10)
	if err != nil || !slices.Equal(texts(got), []string{"a2", "q2", "a1"}) {
		t.Errorf("after removal: %v, %v", texts(got), err)
	}
	if _, err := s.Before(t.Context(), scope, all[3].ID, 10); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("page behind a removed message: %v, want %v", err, ledger.ErrNotFound)
	}
}

func TestReadersOfHistorySeeWhatWasCommitted(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "one")
	key := "one"
	scope := ledger.Scope{Channel: chain.Channel, Conversation: &key}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				page, err := s.Before(t.Context(), scope, 0, 20)
				if err != nil || len(page)%2 != 0 { // question and answer are one commit
					t.Errorf("%d messages, %v", len(page), err)
					return
				}
			}
		})
	}
	for i := range 100 {
		text := fmt.Sprint(i)
		if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "q"}, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: text}}}); err != nil {
			t.Fatal(err)
		}
		for name, scope := range map[string]ledger.Scope{"conversation": scope, "channel": {Channel: chain.Channel}} {
			if page, err := s.Before(t.Context(), scope, 0, 1); err != nil || len(page) != 1 || page[0].Text != text {
				t.Fatalf("%s: newest is %v, %v, want %s, which was committed", name, texts(page), err, text)
			}
		}
	}
	close(stop)
	wg.Wait()
}

func TestHistoryIsReadWhileAnotherProgramHoldsTheLock(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer func() { _ = s.Close() }()
	_, chain := newChannel(t, s, "a")
	scope := told(t, s, chain, "one", 1)
	other, err := openSQL(filepath.Join(dir, File), "rw", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if _, err := other.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	if page, err := s.Before(t.Context(), scope, 0, 10); err != nil || len(page) != 2 {
		t.Errorf("%d messages, %v", len(page), err)
	}
}

func TestBrokenPageIsAnErrorAndPasses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, chain := newChannel(t, s, "a")
	told(t, s, chain, "one", 500)
	if err := s.Close(); err != nil { // everything is in the one file
		t.Fatal(err)
	}
	s = open(t, dir)
	defer func() { _ = s.Close() }()
	chain, err := s.Own(t.Context(), chain.Channel)
	if err != nil {
		t.Fatal(err)
	}
	scope := ledger.Scope{Channel: chain.Channel}
	file := filepath.Join(dir, File)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	overwrite := func(with []byte) { // in place, since it is open
		t.Helper()
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(with); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	broken := slices.Clone(whole)
	for i := len(broken) / 2; i < len(broken); i++ {
		broken[i] = 0xff
	}
	overwrite(broken)
	var failed *sqliteError
	for range 2 * readers {
		if page, err := s.Before(t.Context(), scope, 0, 1000); !errors.As(err, &failed) {
			t.Fatalf("half of the file is broken: %d messages, %v", len(page), err)
		}
	}
	overwrite(whole)
	if page, err := s.Before(t.Context(), scope, 0, 1000); err != nil || len(page) != 1000 {
		t.Errorf("after the repair: %d messages, %v", len(page), err)
	}
}

func TestReadingHistoryEndsWithItsContextAndWithTheStore(t *testing.T) {
	s := open(t, t.TempDir())
	_, chain := newChannel(t, s, "a")
	scope := told(t, s, chain, "one", 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Before(ended, scope, 0, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("context ended: %v", err)
	}

	// All readers taken: who waits for one gives up with its context.
	taken, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			err := s.walkers.within(t.Context(), func(*reader) error {
				taken <- struct{}{}
				<-release
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range readers {
		await.Value(t, "a reader is taken", taken)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Before(short, scope, 0, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("all readers taken: %v", err)
	}
	close(release)
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Before(t.Context(), scope, 0, 10); !errors.Is(err, errClosed) {
		t.Errorf("store closed: %v", err)
	}
}
