package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/schema"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), blank.Dir(t, dir), Options{})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	return s
}

func opened(t testing.TB) *Store {
	t.Helper()
	s := open(t, t.TempDir())
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s
}

// older makes a database with the schema of an older version. Close it before a store
// opens the directory.
func older(t testing.TB, dir string, version int64) *sql.DB {
	t.Helper()
	d, err := openSQL(filepath.Join(dir, File), "rwc", 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, d, schema.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	return d
}

func newChannel(t testing.TB, s *Store, name string) (ledger.Channel, *ledger.Tail) {
	t.Helper()
	c, err := s.CreateChannel(t.Context(), ledger.Channel{ID: "id-" + name, Name: name, Kind: "bridge", Enabled: true, Agent: "echo"},
		&ledger.NewCredential{Hash: []byte(name), Hint: "hint"}, ledger.Change{Actor: "test", Action: "channel.create"})
	if err != nil {
		t.Fatalf("create channel: %v", err)
	}
	chain, err := s.Own(t.Context(), c.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c, chain
}

func recalled(t testing.TB, s *Store, chain *ledger.Tail, key string) *ledger.Conversation {
	t.Helper()
	r, err := s.Conversation(t.Context(), chain, key)
	if err != nil {
		t.Fatal(err)
	}
	return r.Conversation
}

// commit appends and waits.
func commit(s *Store, u *ledger.Unit) error {
	done := make(chan error, 1)
	s.Append(u, func(r ledger.Result) { done <- r.Err })
	select {
	case err := <-done:
		return err
	case <-time.After(await.Limit):
		return errors.New("not committed, and not refused")
	}
}

func texts(entries []ledger.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Text
	}
	return out
}

func TestHistoryFollowsEachConversationAndTheChannel(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	one, two := recalled(t, s, chain, "one"), recalled(t, s, chain, "two")
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Add(2)
		done := func(r ledger.Result) {
			if r.Err != nil {
				t.Error(r.Err)
			}
			wg.Done()
		}
		s.Append(&ledger.Unit{Conversation: one, In: &ledger.Row{Text: fmt.Sprint("q", i)}, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: fmt.Sprint("a", i)}}}, done)
		s.Append(&ledger.Unit{Conversation: two, In: &ledger.Row{Text: fmt.Sprint("x", i)}}, done)
	}
	wg.Wait()

	key := "one"
	got, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel, Conversation: &key}, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a49", "q49", "a48", "q48"}; !slices.Equal(texts(got), want) {
		t.Fatalf("newest of one: %v, want %v", texts(got), want)
	}
	if got[0].ReplyTo != got[1].ID || got[0].Turn != 49 || got[1].State != ledger.Handled {
		t.Errorf("answer %+v does not fit question %+v", got[0], got[1])
	}
	next, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel, Conversation: &key}, got[3].ID, 2)
	if err != nil || !slices.Equal(texts(next), []string{"a47", "q47"}) {
		t.Errorf("second page: %v, %v", texts(next), err)
	}
	all, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 500)
	if err != nil || len(all) != 150 {
		t.Fatalf("channel: %d messages, %v", len(all), err)
	}
	for i := 1; i < len(all); i++ {
		if all[i].ID >= all[i-1].ID {
			t.Fatalf("message %d is not older than the one before", i)
		}
	}
	in := ledger.In
	if only, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel, Direction: &in}, 0, 500); err != nil || len(only) != 100 {
		t.Errorf("inbound: %d, %v", len(only), err)
	}
	if x49, _ := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 1); x49[0].State != ledger.Received {
		t.Errorf("an unanswered message is %s, want received", x49[0].State)
	}
}

func TestDuplicateDoesNotHurtItsNeighbours(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "first", PlatformID: "p1"}}); err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	go func() { // keeps the writer busy so that the three become one batch
		_ = s.change(func(q *db.Queries) error { <-hold; return nil })
	}()
	var got [3]error
	var wg sync.WaitGroup
	wg.Add(3)
	for i, id := range []string{"p2", "p1", "p3"} {
		s.Append(&ledger.Unit{Conversation: c, In: &ledger.Row{Text: id, PlatformID: id}}, func(r ledger.Result) { got[i] = r.Err; wg.Done() })
	}
	close(hold)
	wg.Wait()
	if got[0] != nil || !errors.Is(got[1], ledger.ErrDuplicate) || got[2] != nil {
		t.Fatalf("got %v", got)
	}
	all, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 10)
	if err != nil || !slices.Equal(texts(all), []string{"p3", "p2", "first"}) {
		t.Errorf("kept %v, %v", texts(all), err)
	}
}

func TestReopenContinues(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	ch, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	_ = commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "answered", Origin: packed.AppendOrigin(nil, ledger.Origin{SessionKey: "k", ReplyCtx: "1.50"})},
		Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: "answer", Offers: true}}, Set: &ledger.Settings{Agent: "bob", Muted: true}})
	open1 := &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "open"}}
	if err := commit(s, open1); err != nil {
		t.Fatal(err)
	}
	_ = commit(s, &ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Queued, Text: "waiting"}}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, dir)
	defer func() { _ = s.Close() }()
	un, err := s.Unanswered(t.Context())
	if err != nil || len(un) != 1 || un[0].Text != "open" || un[0].Listed || un[0].Told {
		t.Fatalf("unanswered: %+v, %v", un, err)
	}
	pending, err := s.Pending(t.Context(), ch.Key, 0, 10)
	if err != nil || !slices.Equal(texts(pending), []string{"waiting"}) {
		t.Fatalf("pending: %v, %v", texts(pending), err)
	}
	chain, _ = s.Own(t.Context(), ch.Key)
	r, err := s.Conversation(t.Context(), chain, "c")
	if err != nil || r.Agent != "bob" || !r.Muted || r.Offer == nil || r.Offer.Text != "answer" {
		t.Fatalf("recalled %+v, %v", r, err)
	}
	if err := commit(s, &ledger.Unit{Conversation: r.Conversation, Settle: []ledger.Settlement{{ID: un[0].ID, State: ledger.Handled}, {ID: pending[0].ID, State: ledger.Sent}}}); err != nil {
		t.Fatal(err)
	}
	if n, _ := s.CountPending(t.Context(), ch.Key); n != 0 {
		t.Errorf("%d still pending", n)
	}
	if err := commit(s, &ledger.Unit{Conversation: r.Conversation, In: &ledger.Row{Text: "newer"}}); err != nil {
		t.Fatal(err)
	}
	all, _ := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 10)
	if want := []string{"newer", "waiting", "open", "answer", "answered"}; !slices.Equal(texts(all), want) {
		t.Errorf("history over the restart: %v", texts(all))
	}
}

func TestDeletedChannelIsSweptAndNothingComesAfter(t *testing.T) {
	s := opened(t)
	ch, chain := newChannel(t, s, "a")
	_, other := newChannel(t, s, "b")
	keep := recalled(t, s, other, "c")
	if err := commit(s, &ledger.Unit{Conversation: keep, In: &ledger.Row{Text: "keep"}}); err != nil {
		t.Fatal(err)
	}
	c := recalled(t, s, chain, "c")
	for range 3 {
		var wg sync.WaitGroup
		for range 400 {
			wg.Add(1)
			s.Append(&ledger.Unit{Conversation: c, In: &ledger.Row{Text: "x"}}, func(ledger.Result) { wg.Done() })
		}
		wg.Wait()
	}
	if err := s.DeleteChannel(t.Context(), ch, ledger.Change{Actor: "test", Action: "channel.delete"}); err != nil {
		t.Fatal(err)
	}
	if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "late"}}); !errors.Is(err, ledger.ErrRemoved) {
		t.Errorf("append to a deleted channel: %v", err)
	}
	if _, err := s.CredentialByHash(t.Context(), ledger.ChannelToken, []byte("a")); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("token of the deleted channel: %v", err)
	}
	eventually(t, func() bool {
		all, err := s.HeadingsAfter(t.Context(), 0, 10)
		return err == nil && slices.Equal(texts(readAll(t, s, all)), []string{"keep"})
	})
	if again, _ := newChannel(t, s, "a2"); again.Key <= ch.Key {
		t.Errorf("key %d was used before", again.Key)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Run("second host", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		defer func() { _ = s.Close() }()
		if _, err := Open(t.Context(), dir, Options{}); err == nil {
			t.Error("opened twice")
		}
	})
	t.Run("newer schema", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		if _, err := s.admin.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"); err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		if _, err := Open(t.Context(), dir, Options{}); err == nil {
			t.Error("opened a newer schema")
		} else {
			t.Log(err)
		}
	})
	t.Run("a file in its place", func(t *testing.T) {
		if _, err := Open(t.Context(), filepath.Join("store_test.go", "x"), Options{}); err == nil {
			t.Error("opened below a file")
		}
	})
}

func TestLockedDatabaseIsUnavailableAndRecovers(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, Options{BusyTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	other, err := openSQL(filepath.Join(dir, File), "rw", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	for _, do := range []string{"PRAGMA busy_timeout = 10000", "BEGIN EXCLUSIVE"} { // the store writes now and then by itself
		if _, err := other.Exec(do); err != nil {
			t.Fatal(err)
		}
	}
	if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "refused"}}); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("locked: %v", err)
	}
	if _, err := other.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "taken"}}); err != nil {
		t.Errorf("unlocked: %v", err)
	}
}

func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	await.Until(t, "what the line above waits for", ok)
}

// A message in flight that goes back to the queue and is delivered after all, in one
// commit, does not stay on the pending list.
func TestBackAndDeliveredTogether(t *testing.T) {
	s := opened(t)
	ch, tail := newChannel(t, s, "a")
	c := recalled(t, s, tail, "c")
	sent := &ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Tracked: true, Text: "in flight"}}}
	if err := commit(s, sent); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	err := s.change(func(*db.Queries) error { // what is appended meanwhile is committed together
		for _, state := range []ledger.State{ledger.Queued, ledger.Delivered} {
			s.Append(&ledger.Unit{Conversation: c, Settle: []ledger.Settlement{{ID: sent.Out[0].ID, State: state}}}, func(r ledger.Result) { done <- r.Err })
		}
		return nil
	})
	for _, err := range []error{err, await.Value(t, "a commit", done), await.Value(t, "a commit", done)} {
		if err != nil {
			t.Error(err)
		}
	}
	if n, err := s.CountPending(t.Context(), ch.Key); n != 0 || err != nil {
		t.Errorf("%d wait, %v", n, err)
	}
}
