package sqlite

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/schema"
)

// A database of a host that did not write down what a message waits for is upgraded with
// all that waits: for adapters, for acknowledgements and for agents.
func TestUpgradeOfThePendingList(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	ch, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	asked := &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "asked"}}
	waits := &ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Queued, Text: "waits"}}}
	taken := &ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Queued, Text: "taken"}}}
	flies := &ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Tracked: true, Text: "flies"}}}
	for _, u := range []*ledger.Unit{asked, waits, taken, flies} {
		if err := commit(s, u); err != nil {
			t.Fatal(err)
		}
	}
	err := commit(s, &ledger.Unit{Conversation: c, Settle: []ledger.Settlement{
		{ID: asked.In.ID, State: ledger.Received, Tracked: true, Told: true}, {ID: taken.Out[0].ID, State: ledger.Sent, Tracked: true, Frame: 1, Tries: 2},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := openSQL(filepath.Join(dir, File), "rw", 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, d, schema.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.DownTo(t.Context(), 19); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, dir)
	defer func() { _ = s.Close() }()
	left, err := s.Unanswered(t.Context())
	if err != nil || len(left) != 1 || left[0].ID != asked.In.ID || !left[0].Listed || !left[0].Told {
		t.Errorf("unanswered: %+v, %v", left, err)
	}
	waiting, err := s.Waiting(t.Context(), ch.Key)
	want := []ledger.Waiting{
		{ID: waits.Out[0].ID, Conversation: "c"}, {ID: taken.Out[0].ID, Conversation: "c", Frame: 1, Tries: 2}, {ID: flies.Out[0].ID, Conversation: "c"},
	}
	if err != nil || !slices.Equal(waiting, want) {
		t.Errorf("waiting: %+v, %v, want %+v", waiting, err, want)
	}
	if n, err := s.CountPending(t.Context(), ch.Key); n != 3 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
	if keys, err := s.PendingChannels(t.Context()); err != nil || !slices.Equal(keys, []int64{ch.Key}) {
		t.Errorf("channels %v, %v", keys, err)
	}
}
