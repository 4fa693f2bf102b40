package sqlite

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// Whatever was asked for before, a change is there for whoever was told of it.
func TestKeptIsForgotten(t *testing.T) {
	s, ctx := opened(t), t.Context()
	hash := []byte("hash of a token")
	c, err := s.CreateChannel(ctx, ledger.Channel{ID: "1", Name: "one", Agent: "echo", Enabled: true, Users: []string{"me"}}, &ledger.NewCredential{Hash: hash}, ledger.Change{})
	if err != nil {
		t.Fatal(err)
	}
	read := func() (by [3]ledger.Channel, token ledger.Credential) {
		t.Helper()
		for i, find := range []func() (ledger.Channel, error){
			func() (ledger.Channel, error) { return s.Channel(ctx, "1") },
			func() (ledger.Channel, error) { return s.Channel(ctx, "one") },
			func() (ledger.Channel, error) { return s.ChannelByKey(ctx, c.Key) },
		} {
			if by[i], err = find(); err != nil {
				t.Fatalf("way %d: %v", i, err)
			}
		}
		if token, err = s.CredentialByHash(ctx, ledger.ChannelToken, hash); err != nil {
			t.Fatal(err)
		}
		return by, token
	}
	by, token := read()
	for i := range by { // what one caller does with it is nothing to the next
		by[i].Users[0] = "another"
	}
	token.Hash[0] = 0
	for _, c := range s.w.lookups.channels.rows {
		if c.Users[0] != "me" {
			t.Errorf("a caller changed what is kept: %v", c.Users)
		}
	}
	if len(s.w.lookups.channels.rows) != 2 || len(s.w.lookups.channelKeys.rows) != 1 || len(s.w.lookups.credentials.rows) != 1 {
		t.Fatalf("kept: %+v", &s.w.lookups)
	}
	read()

	c.Agent = "other"
	if c, err = s.UpdateChannel(ctx, c, ledger.Change{}); err != nil {
		t.Fatal(err)
	}
	by, token = read()
	for i := range by {
		if by[i].Agent != "other" || by[i].Users[0] != "me" || by[i].Version != c.Version {
			t.Errorf("way %d after the change: %+v", i, by[i])
		}
	}
	if err := s.RevokeCredential(ctx, ledger.OfChannel(c.Key), token.ID, ledger.Change{}); err != nil {
		t.Fatal(err)
	}
	if _, token = read(); token.RevokedAt.IsZero() {
		t.Error("the token is not revoked")
	}
	if len(s.w.lookups.credentials.rows) != 0 {
		t.Error("a token that is over is kept: how long it takes would tell it from one that never was")
	}

	c.Name = "two"
	if c, err = s.UpdateChannel(ctx, c, ledger.Change{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Channel(ctx, "one"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("by its old name: %v", err)
	}
	if _, err := s.Channel(ctx, "two"); err != nil {
		t.Error(err)
	}
	if err := s.DeleteChannel(ctx, c, ledger.Change{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Channel(ctx, "two"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("deleted, by name: %v", err)
	}
	if _, err := s.ChannelByKey(ctx, c.Key); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("deleted, by key: %v", err)
	}
	if _, err := s.CredentialByHash(ctx, ledger.ChannelToken, hash); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("its token: %v", err)
	}
}

// What expires is over, though nothing changes it.
func TestKeptExpires(t *testing.T) {
	start, later := time.Now(), new(atomic.Int64) // in ns; the store's own goroutines look too
	now := func() time.Time { return start.Add(time.Duration(later.Load())) }
	s, err := Open(t.Context(), t.TempDir(), Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	hash := []byte("hash")
	_, err = s.CreateCredential(t.Context(), ledger.OfHost(), ledger.NewCredential{Terms: ledger.Terms{Name: "k", Scopes: []string{"read"}}, Hash: hash, ExpiresAt: now().Add(time.Minute)}, ledger.Change{})
	if err != nil {
		t.Fatal(err)
	}
	for _, live := range []bool{true, false} {
		if c, err := s.CredentialByHash(t.Context(), ledger.APIKey, hash); err != nil || c.Live(now()) != live {
			t.Errorf("live %v: %+v, %v", live, c, err)
		}
		later.Add(int64(time.Hour))
	}
}

// A thread that goes with its conversation is made again by the next who opens it.
func TestKeptThread(t *testing.T) {
	s := opened(t)
	c, chain := newChannel(t, s, "a")
	for range 2 {
		if _, err := s.OpenThread(t.Context(), c.Key, 1, "t"); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.w.lookups.threads.rows) != 1 {
		t.Errorf("%d threads are kept", len(s.w.lookups.threads.rows))
	}
	conv := recalled(t, s, chain, "t")
	if err := commit(s, &ledger.Unit{Conversation: conv, In: &ledger.Row{Text: "x"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.change(func(q *db.Queries) error { return q.DeleteConversation(t.Context(), conv.ID) }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Thread(t.Context(), c.Key, 1, "t"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("after its conversation: %v", err)
	}
}

// Who began to read before a change keeps nothing of what was there then.
func TestKeptRace(t *testing.T) {
	var l lookups
	_, _, change := l.threads.get(threadKey{})
	l.forget()
	l.threads.put(threadKey{}, "old", 3, change)
	if got, ok, _ := l.threads.get(threadKey{}); ok {
		t.Errorf("kept: %q", got)
	}
}

func TestKeptIsBounded(t *testing.T) {
	var l lookups
	for i := range 2*maxKept + 1 {
		l.threads.put(threadKey{owner: int64(i)}, "t", 1, 0)
		if n := len(l.threads.rows); n > maxKept {
			t.Fatalf("%d rows", n)
		}
	}
	for i := range 10 {
		l.channels.put(fmt.Sprint(i), ledger.Channel{}, maxKeptBytes/4, 0)
		if l.channels.bytes > maxKeptBytes {
			t.Fatalf("%d bytes", l.channels.bytes)
		}
	}
	l.channels.put("x", ledger.Channel{}, maxKeptBytes, 0)
	if _, ok, _ := l.channels.get("x"); ok {
		t.Error("a row larger than all that may be kept")
	}
}
