package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/search"
)

// indexed brings the index up to date.
func indexed(t testing.TB, s *Store) {
	t.Helper()
	if err := (&indexer{Store: s}).catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func query(t testing.TB, text string) search.Query {
	t.Helper()
	q, err := search.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return q
}

// readAll reads the messages of a list.
func readAll(t interface { // a testing.TB, or what is almost one
	Helper()
	Fatal(...any)
	Context() context.Context
}, s *Store, list []ledger.Heading) []ledger.Entry {
	t.Helper()
	var ids []ledger.MessageID
	for _, h := range list {
		ids = append(ids, h.ID)
	}
	all, err := s.Entries(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sought are the texts of what is found, all pages of n.
func sought(t testing.TB, s *Store, f search.Find, n int) []string {
	t.Helper()
	f.N, f.Patience = n, time.Minute
	out := []string{}
	for {
		found, err := s.Search(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, texts(readAll(t, s, found.Messages))...)
		if f.Cursor = found.Next; f.Cursor == 0 {
			return out
		}
	}
}

func say(t testing.TB, s *Store, c *ledger.Conversation, r ledger.Row) ledger.MessageID {
	t.Helper()
	u := &ledger.Unit{Conversation: c}
	if r.Direction == ledger.In {
		u.In = &r
	} else {
		u.Out = []ledger.Row{r}
	}
	if err := commit(s, u); err != nil {
		t.Fatal(err)
	}
	if r.Direction == ledger.In {
		return r.ID
	}
	return u.Out[0].ID
}

func TestSearch(t *testing.T) {
	s, _, _ := swept(t, t.TempDir(), Options{})
	irc, chain := newChannel(t, s, "irc")
	mail, second := newChannel(t, s, "mail")
	c, d := recalled(t, s, chain, "c"), recalled(t, s, second, "d")
	ann := packed.AppendOrigin(nil, ledger.Origin{UserID: "u1", UserName: "Ann Lee"})
	say(t, s, c, ledger.Row{State: ledger.Handled, Text: "the quick brown fox", Origin: ann})
	say(t, s, d, ledger.Row{State: ledger.Failed, Text: "Crème brûlée for the fox", Origin: packed.AppendOrigin(nil, ledger.Origin{UserID: "bob"})})
	indexed(t, s)
	say(t, s, c, ledger.Row{Direction: ledger.Out, State: ledger.Sent, Text: "foxes are quick", Origin: packed.AppendOrigin(nil, ledger.Origin{Agent: "echo"})})
	say(t, s, c, ledger.Row{State: ledger.Handled, Text: "look", Origin: ann, Parts: []byte(`[{"type":"file","fileName":"今日の天気.pdf"}]`)})
	for round := range 2 { // once with a tail that is not in the index
		for text, want := range map[string][]string{
			"fox":                          {"foxes are quick", "Crème brûlée for the fox", "the quick brown fox"},
			"fox ":                         {"Crème brûlée for the fox", "the quick brown fox"},
			"quick ":                       {"foxes are quick", "the quick brown fox"},
			`"quick brown"`:                {"the quick brown fox"},
			"creme BRULEE ":                {"Crème brûlée for the fox"},
			"fox -quick":                   {"Crème brûlée for the fox"},
			"from:ann":                     {"look", "the quick brown fox"},
			"fox from:bob":                 {"Crème brûlée for the fox"},
			"-from:ann":                    {"foxes are quick", "Crème brûlée for the fox"},
			"from:echo":                    {"foxes are quick"},
			"天気":                           {"look"},
			"state:failed":                 {"Crème brûlée for the fox"},
			"fox state:failed":             {"Crème brûlée for the fox"},
			"fox -state:sent":              {"Crème brûlée for the fox", "the quick brown fox"},
			"fox before:2001-01-01":        {},
			"fox after:2001-01-01 -quick":  {"Crème brûlée for the fox"},
			"after:2090-01-01 fox":         {},
			"c1":                           {},
			"nothing of the kind whatever": {},
		} {
			for _, n := range []int{2, 50} {
				if got := sought(t, s, search.Find{Query: query(t, text)}, n); !slices.Equal(got, want) {
					t.Errorf("round %d, %s, %d at a time: found %q, expected %q", round, text, n, got, want)
				}
			}
		}
		if got := sought(t, s, search.Find{Query: query(t, "fox"), Channels: []int64{mail.Key}}, 9); len(got) != 1 || !strings.HasPrefix(got[0], "Crème") {
			t.Errorf("in one channel: %q", got)
		}
		if got := sought(t, s, search.Find{Query: query(t, "fox"), Except: []int64{mail.Key}}, 9); len(got) != 2 {
			t.Errorf("but in one channel: %q", got)
		}
		if got := sought(t, s, search.Find{Query: query(t, "fox"), Channels: []int64{irc.Key, mail.Key}}, 9); len(got) != 3 {
			t.Errorf("in two channels: %q", got)
		}
		if got := sought(t, s, search.Find{Query: query(t, "fox"), Channels: []int64{}}, 9); len(got) != 0 {
			t.Errorf("in none: %q", got)
		}
		indexed(t, s)
	}
}

// Whatever is looked for, index and tail give what looking at each message gives.
func TestSearchFindsAll(t *testing.T) {
	s, _, _ := swept(t, t.TempDir(), Options{})
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	rnd := rand.New(rand.NewPCG(7, 7))
	words := []string{"alpha", "alps", "béta", "beta", "今日", "日", "gamma-ray", "x1"}
	some := func(n int) string {
		var out []string
		for range n {
			out = append(out, words[rnd.IntN(len(words))])
		}
		return strings.Join(out, " ")
	}
	var all []ledger.Row
	for i := range 120 {
		r := ledger.Row{State: ledger.Handled, Text: some(1 + rnd.IntN(5)), Origin: packed.AppendOrigin(nil, ledger.Origin{UserName: some(1)})}
		say(t, s, c, r)
		if all = append(all, r); i == 60 || i == 100 {
			indexed(t, s)
		}
	}
	for range 60 {
		text := some(1)
		switch rnd.IntN(6) {
		case 0:
			text = `"` + some(2) + `"`
		case 1:
			text += " -" + some(1)
		case 2:
			text += " from:" + some(1)
		case 3:
			text = "-" + some(1)
		case 4:
			text = text[:len(text)-1] // it may end within a character
		}
		q, err := search.Parse(text)
		if err != nil {
			continue
		}
		want := []string{}
		for _, r := range slices.Backward(all) {
			o, _ := packed.ParseOrigin(r.Origin)
			if q.Match(r.Text, o.UserName) {
				want = append(want, r.Text)
			}
		}
		if got := sought(t, s, search.Find{Query: q}, 20+rnd.IntN(40)); !slices.Equal(got, want) {
			t.Fatalf("%s: found %d, expected %d\n%q\n%q", text, len(got), len(want), got, want)
		}
	}
}

// traces counts what the index has of a word: rows that it gives, and pages that
// hold its letters.
func traces(t *testing.T, s *Store, word string) (rows, pages int) {
	t.Helper()
	if err := s.readDB.QueryRow("SELECT count(*) FROM search WHERE search MATCH ?", `"`+word+`"`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if err := s.readDB.QueryRow("SELECT count(*) FROM search_data WHERE instr(block, ?) > 0", []byte(word[1:])).Scan(&pages); err != nil {
		t.Fatal(err)
	}
	return rows, pages
}

// What was deleted is not found, and its words are not in the file's pages.
func TestSearchForgets(t *testing.T) {
	s, now, _ := swept(t, t.TempDir(), Options{})
	old, chain := newChannel(t, s, "old")
	_, stays := newChannel(t, s, "stays")
	c, d := recalled(t, s, chain, "c"), recalled(t, s, stays, "d")
	say(t, s, c, ledger.Row{State: ledger.Handled, Text: "zqcanaryone"})
	for i := range 300 {
		say(t, s, d, ledger.Row{State: ledger.Handled, Text: fmt.Sprintf("message number%d", i)})
	}
	indexed(t, s)
	if rows, pages := traces(t, s, "zqcanaryone"); rows != 1 || pages == 0 {
		t.Fatalf("before: %d rows, %d pages", rows, pages)
	}
	*now = now.Add(48 * time.Hour)
	old.Retention = 1
	var err error
	if old, err = s.UpdateChannel(t.Context(), old, ledger.Change{Actor: "test", Action: "channel.update"}); err != nil {
		t.Fatal(err)
	}
	if err := s.broom.sweepOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	indexed(t, s)
	if rows, pages := traces(t, s, "zqcanaryone"); rows != 0 || pages != 0 {
		t.Errorf("old: %d rows, %d pages", rows, pages)
	}

	say(t, s, recalled(t, s, chain, "e"), ledger.Row{State: ledger.Handled, Text: "zqcanarytwo"})
	indexed(t, s)
	say(t, s, recalled(t, s, chain, "e2"), ledger.Row{State: ledger.Handled, Text: "zqcanarythree"}) // not in the index yet
	if err := s.DeleteChannel(t.Context(), old, ledger.Change{Actor: "test", Action: "channel.delete"}); err != nil {
		t.Fatal(err)
	}
	if err := s.broom.sweepRemoved(t.Context()); err != nil {
		t.Fatal(err)
	}
	indexed(t, s)
	for _, word := range []string{"zqcanarytwo", "zqcanarythree"} {
		if rows, pages := traces(t, s, word); rows != 0 || pages != 0 {
			t.Errorf("%s: %d rows, %d pages", word, rows, pages)
		}
		if got := sought(t, s, search.Find{Query: query(t, word)}, 9); len(got) != 0 {
			t.Errorf("found %q", got)
		}
	}
	if got := sought(t, s, search.Find{Query: query(t, "message")}, 500); len(got) != 300 {
		t.Errorf("%d of the others are left", len(got))
	}
	var left int
	if err := s.readDB.QueryRow("SELECT count(*) FROM recent").Scan(&left); err != nil || left != 1 {
		t.Errorf("%d recent conversations, %v", left, err)
	}
}

// An answer that streams is found by what it says in the end.
func TestSearchStreams(t *testing.T) {
	s, _, _ := swept(t, t.TempDir(), Options{})
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	id := say(t, s, c, ledger.Row{Direction: ledger.Out, State: ledger.Sent, Status: ledger.StatusStreaming})
	say(t, s, c, ledger.Row{State: ledger.Handled, Text: "behind it"})
	indexed(t, s)
	if err := commit(s, &ledger.Unit{Conversation: c, Settle: []ledger.Settlement{{ID: id, State: ledger.Sent, Content: &ledger.Content{Status: ledger.StatusCompleted, Text: "the final word"}}}}); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"at once", "from the index"} {
		if got := sought(t, s, search.Find{Query: query(t, "final ")}, 9); !slices.Equal(got, []string{"the final word"}) {
			t.Errorf("%s: %q", when, got)
		}
		indexed(t, s)
	}
	if rows, _ := traces(t, s, "final"); rows != 1 {
		t.Errorf("%d rows in the index", rows)
	}
}

// A database of before the index is indexed from its newest message down, also
// over a restart.
func TestSearchOldDatabase(t *testing.T) {
	dir := t.TempDir()
	d := older(t, dir, 10)
	const n = 600
	put(t, d, "INSERT INTO conversation (id, channel, key, head) VALUES (5, 1, 'c', ?)", n)
	put(t, d, "BEGIN") // there is one connection
	for i := range n {
		put(t, d, "INSERT INTO message (id, channel, conversation, prev, prev_channel, direction, state, turn, reply_to, text) VALUES (?, 1, 5, ?, ?, 0, 1, 0, 0, ?)",
			i+1, i, i, fmt.Sprint("number ", i+1))
	}
	put(t, d, "COMMIT")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s, _, _ := swept(t, dir, Options{})
	x := &indexer{Store: s, low: n, high: n}
	if behind, more, err := s.Behind(t.Context()); err != nil || behind == 0 || behind > n || more {
		t.Errorf("behind by %d, %v, %v", behind, more, err)
	}
	for range 2 {
		at, err := s.read.Indexing(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x.low, x.high = at.Low, at.High
		if at.Low > 0 {
			if _, err := x.down(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _, _ = swept(t, dir, Options{})
	indexed(t, s)
	if behind, _, err := s.Behind(t.Context()); err != nil || behind != 0 {
		t.Errorf("behind by %d, %v", behind, err)
	}
	got := sought(t, s, search.Find{Query: query(t, "number ")}, 250)
	if len(got) != n || got[0] != "number 600" || got[n-1] != "number 1" {
		t.Errorf("found %d: %q", len(got), got[:1])
	}
	list, err := s.Conversations(t.Context(), nil, 0, 10)
	if err != nil || len(list) != 1 || list[0].Key != "c" || list[0].Last == nil || list[0].Last.Text != "number 600" {
		t.Errorf("conversations %+v, %v", list, err)
	}
}

func put(t *testing.T, d *sql.DB, q string, args ...any) {
	t.Helper()
	if _, err := d.Exec(q, args...); err != nil {
		t.Fatal(err)
	}
}

// A search that may take no time says so, and what found something until then
// says where to go on.
func TestSearchTakesNoLonger(t *testing.T) {
	s, _, _ := swept(t, t.TempDir(), Options{})
	_, chain := newChannel(t, s, "a")
	say(t, s, recalled(t, s, chain, "c"), ledger.Row{State: ledger.Handled, Text: "fox"})
	if _, err := s.Search(t.Context(), search.Find{Query: query(t, "fox"), N: 1, Patience: time.Nanosecond}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no time: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Search(ctx, search.Find{Query: query(t, "fox"), N: 1}); err == nil {
		t.Error("nobody waits, and it was searched")
	}
	// As many as may search are searching: the next one waits, and no longer than it may.
	for range searchers {
		s.searching <- struct{}{}
	}
	if _, err := s.Search(t.Context(), search.Find{Query: query(t, "fox"), N: 1, Patience: 20 * time.Millisecond}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("others search: %v", err)
	}
}

// Conversations of all channels, latest first, whatever the index has come by.
func TestRecentConversations(t *testing.T) {
	s, _, _ := swept(t, t.TempDir(), Options{})
	var chains []*ledger.Tail
	for i := range 3 {
		_, chain := newChannel(t, s, fmt.Sprint("ch", i))
		chains = append(chains, chain)
	}
	rnd := rand.New(rand.NewPCG(3, 3))
	held := map[string]*ledger.Conversation{}
	newest := map[string]ledger.MessageID{}
	for i := range 120 {
		chain := chains[rnd.IntN(len(chains))]
		key := fmt.Sprintf("%d/%d", chain.Channel, rnd.IntN(20))
		if held[key] == nil {
			held[key] = recalled(t, s, chain, key)
		}
		newest[key] = say(t, s, held[key], ledger.Row{Direction: ledger.Out, State: []ledger.State{ledger.Sent, ledger.Queued, ledger.Failed}[rnd.IntN(3)], Text: fmt.Sprint("text ", i)})
		if rnd.IntN(40) == 0 {
			indexed(t, s)
		}
		if rnd.IntN(10) != 0 {
			continue
		}
		var only []int64
		if rnd.IntN(2) == 0 {
			only = []int64{chain.Channel, chains[0].Channel}
			slices.Sort(only)
			only = slices.Compact(only)
		}
		var want, got []string
		for key, c := range held {
			if only == nil || slices.Contains(only, c.Tail.Channel) {
				want = append(want, key)
			}
		}
		slices.SortFunc(want, func(a, b string) int { return int(min(1, max(-1, newest[b]-newest[a]))) })
		for before := ledger.MessageID(0); ; {
			page, err := s.Conversations(t.Context(), only, before, 7)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range page {
				got, before = append(got, c.Key), c.Newest
				if c.Last == nil || c.Last.ID != newest[c.Key] || c.Last.State == ledger.Queued && c.Waiting == 0 || c.Last.State == ledger.Failed && c.Failed == 0 {
					t.Fatalf("%+v, last %+v", c, c.Last)
				}
			}
			if len(page) < 7 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after %d messages, of %v:\nfound    %v\nexpected %v", i, only, got, want)
		}
	}
	if none, err := s.Conversations(t.Context(), []int64{}, 0, 7); err != nil || len(none) != 0 {
		t.Errorf("of no channel: %v, %v", none, err)
	}
}
