package sqlite

import (
	"cmp"
	"context"
	"errors"
	goflag "flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
)

// kept is a message as the model knows it.
type kept struct {
	id, replyTo   ledger.MessageID
	channel       int
	conv, file    string
	open, pending bool // its turn has not ended; it waits, or is to be acknowledged
	dead          bool
}

// shelf compares a store with what it should hold, whatever was deleted for age.
type shelf struct {
	dir   string
	now   time.Time
	s     *Store
	rows  []ledger.Channel
	conv  map[string]*ledger.Conversation // in use, as the hub holds them
	tails map[int]*ledger.Tail            // by channel: owned once
	model []kept                          // by id
	gone  map[ledger.MessageID]int        // deleted: of which channel
	disk  map[string]bool                 // attachments that are there
	look  bool                            // something happened that could have broken it
}

func (h *shelf) Bytes() int64 { return 0 }

func (h *shelf) Remove(ids []string) {
	for _, id := range ids {
		delete(h.disk, id)
	}
}

func (h *shelf) open(t *rapid.T) {
	s, err := Open(t.Context(), blank.Dir(t, h.dir), Options{Now: func() time.Time { return h.now }, Names: func(parts, _ []byte) []string {
		return strings.Fields(string(parts))
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.stop() // the test sweeps by itself
	goesBy(s, &h.now)
	s.SetFiles(h)
	h.s, h.conv, h.tails = s, map[string]*ledger.Conversation{}, map[int]*ledger.Tail{}
}

func (h *shelf) tail(ch int) (*ledger.Tail, error) {
	if t := h.tails[ch]; t != nil {
		return t, nil
	}
	t, err := h.s.Own(context.Background(), h.rows[ch].Key)
	if err == nil {
		h.tails[ch] = t
	}
	return t, err
}

func (h *shelf) in(t *rapid.T) (int, *ledger.Conversation) {
	ch := rapid.IntRange(0, len(h.rows)-1).Draw(t, "channel")
	key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "conversation")
	name := fmt.Sprint(ch, key)
	if h.conv[name] == nil {
		chain, err := h.tail(ch)
		if err != nil {
			t.Fatal(err)
		}
		r, err := h.s.Conversation(t.Context(), chain, key)
		if err != nil {
			t.Fatal(err)
		}
		h.conv[name] = r.Conversation
	}
	return ch, h.conv[name]
}

func (h *shelf) commit(t *rapid.T, u *ledger.Unit) {
	if err := commit(h.s, u); err != nil {
		t.Fatal(err)
	}
}

// put commits a unit and enters its rows.
func (h *shelf) put(t *rapid.T, ch int, u *ledger.Unit) {
	h.commit(t, u)
	rows := slices.Clone(u.Out)
	if u.In != nil {
		rows = slices.Insert(rows, 0, *u.In)
	}
	for _, r := range rows {
		h.model = append(h.model, kept{
			id: r.ID, replyTo: r.ReplyTo, channel: ch, conv: u.Conversation.Key, file: string(r.Parts),
			open: r.Direction == ledger.In && len(u.Out) == 0, pending: r.State == ledger.Queued || r.Tracked, dead: r.State == ledger.Failed,
		})
		if len(r.Parts) > 0 {
			h.disk[string(r.Parts)] = true
		}
	}
}

func (h *shelf) file(t *rapid.T) []byte {
	return []byte(rapid.SampledFrom([]string{"", "", "f1", "f2", "f3"}).Draw(t, "file"))
}

func (h *shelf) unfinished(m kept) bool {
	return m.open || m.pending || slices.ContainsFunc(h.model, func(q kept) bool { return q.id == m.replyTo && q.open })
}

// sweep is what sweepOld should do.
func (h *shelf) sweep(t *rapid.T) {
	if err := h.s.broom.sweepOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped := map[int]bool{}
	var left []kept
	for _, m := range h.model {
		days := h.rows[m.channel].Retention
		old := days > 0 && m.id.Time().Before(h.now.Add(-time.Duration(days)*24*time.Hour).Truncate(time.Millisecond))
		if stopped[m.channel] = stopped[m.channel] || !old || h.unfinished(m); stopped[m.channel] {
			left = append(left, m)
		} else {
			h.gone[m.id] = m.channel
		}
	}
	h.model, h.look = left, true
}

func (h *shelf) check(t *rapid.T) {
	all, err := h.s.HeadingsAfter(t.Context(), 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	h.same(t, "the whole log", readAll(t, h.s, all), func(kept) bool { return true }, false)
	letters, err := h.s.Dead(t.Context(), 0, "", ledger.Death{}, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	dead := make([]ledger.Heading, len(letters))
	for i, l := range letters {
		dead[i] = l.Heading
	}
	slices.SortFunc(dead, func(a, b ledger.Heading) int { return cmp.Compare(b.ID, a.ID) })
	h.same(t, "dead letters", readAll(t, h.s, dead), func(m kept) bool { return m.dead }, true)
	for i, row := range h.rows {
		h.same(t, row.Name, h.pages(t, ledger.Scope{Channel: row.Key}), func(m kept) bool { return m.channel == i }, true)
		for _, key := range []string{"a", "b"} {
			h.same(t, row.Name+key, h.pages(t, ledger.Scope{Channel: row.Key, Conversation: &key}), func(m kept) bool { return m.channel == i && m.conv == key }, true)
		}
		for id, ch := range h.gone {
			if ch != i {
				continue
			}
			if page, err := h.s.Before(t.Context(), ledger.Scope{Channel: row.Key}, id, 3); err != nil || len(page) != 0 {
				t.Fatalf("page behind a deleted message: %v, %v", texts(page), err)
			}
			break
		}
	}
	h.beside(t)
}

// beside checks what hangs on messages.
func (h *shelf) beside(t *rapid.T) {
	named := map[string]bool{}
	convs := map[string]bool{}
	for _, m := range h.model {
		convs[fmt.Sprint(m.channel, m.conv)] = true
		if m.file != "" {
			named[m.file] = true
		}
	}
	if !maps.Equal(named, h.disk) {
		t.Fatalf("attachments %v, expected those of messages: %v", h.disk, named)
	}
	for what, query := range map[string]string{
		"lives without a message":       "SELECT count(*) FROM life WHERE message NOT IN (SELECT id FROM message)",
		"names without a message":       "SELECT count(*) FROM attachment WHERE message NOT IN (SELECT id FROM message)",
		"waiting without a message":     "SELECT count(*) FROM pending WHERE message NOT IN (SELECT id FROM message)",
		"messages without conversation": "SELECT count(*) FROM message WHERE conversation NOT IN (SELECT id FROM conversation)",
		"conversations":                 fmt.Sprintf("SELECT count(*) - %d FROM conversation", len(convs)),
	} {
		var n int
		if err := h.s.readDB.QueryRow(query).Scan(&n); err != nil || n != 0 {
			t.Fatalf("%s: %d, %v, expected none too many", what, n, err)
		}
	}
}

// pages walks a history in small pages.
func (h *shelf) pages(t *rapid.T, in ledger.Scope) []ledger.Entry {
	var all []ledger.Entry
	for before := ledger.MessageID(0); ; {
		page, err := h.s.Before(t.Context(), in, before, 3)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page...); len(page) < 3 {
			return all
		}
		before = page[2].ID
	}
}

func (h *shelf) same(t *rapid.T, what string, found []ledger.Entry, want func(kept) bool, newestFirst bool) {
	var ids, expected []ledger.MessageID
	for _, e := range found {
		ids = append(ids, e.ID)
	}
	for _, m := range h.model {
		if want(m) {
			expected = append(expected, m.id)
		}
	}
	if newestFirst {
		slices.Reverse(expected)
	}
	if !slices.Equal(ids, expected) {
		t.Fatalf("%s: found %v, expected %v", what, ids, expected)
	}
}

// settle ends something that is unfinished.
func (h *shelf) settle(t *rapid.T) {
	var which []int
	for i, m := range h.model {
		if m.open || m.pending {
			which = append(which, i)
		}
	}
	if len(which) == 0 {
		t.Skip("nothing is unfinished")
	}
	m := &h.model[rapid.SampledFrom(which).Draw(t, "which")]
	st := ledger.Settlement{ID: m.id, State: ledger.Handled}
	if m.pending {
		st.State = rapid.SampledFrom([]ledger.State{ledger.Delivered, ledger.Failed, ledger.Expired}).Draw(t, "state")
		m.dead = st.State != ledger.Delivered
	}
	m.open, m.pending = false, false
	chain, err := h.tail(m.channel)
	if err != nil {
		t.Fatal(err)
	}
	r, err := h.s.Conversation(t.Context(), chain, m.conv)
	if err != nil {
		t.Fatal(err)
	}
	if c := h.conv[fmt.Sprint(m.channel, m.conv)]; c != nil {
		r.Conversation = c
	}
	h.commit(t, &ledger.Unit{Conversation: r.Conversation, Settle: []ledger.Settlement{st}})
}

// Whatever is said, ends, ages and is swept, also over restarts: what is left is
// what is young enough, or not behind its channel's first unfinished message, and
// every way to it leads to all of it.
func TestRetentionKeepsWhatItShould(t *testing.T) {
	fresh := t.TempDir() // made once: migrations take longer than all that follows
	s := open(t, fresh)
	var rows []ledger.Channel
	for i := range 2 {
		row, err := s.CreateChannel(t.Context(), ledger.Channel{ID: fmt.Sprint("id", i), Name: fmt.Sprint("c", i), Kind: "bridge", Retention: i}, nil, ledger.Change{})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if f := goflag.Lookup("rapid.checks"); f.Value.String() == f.DefValue { // each takes a while: give -rapid.checks for more
		if err := f.Value.Set("5"); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Value.Set(f.DefValue) }()
	}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "pontoon-retention-")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(fresh)); err != nil {
			t.Fatal(err)
		}
		h := &shelf{dir: dir, now: time.Now(), rows: slices.Clone(rows), gone: map[ledger.MessageID]int{}, disk: map[string]bool{}}
		h.open(t)
		defer func() {
			if err := errors.Join(h.s.Close(), os.RemoveAll(dir)); err != nil {
				t.Error(err)
			}
		}()
		t.Repeat(map[string]func(*rapid.T){
			"say": func(t *rapid.T) {
				ch, c := h.in(t)
				h.put(t, ch, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "q", Parts: h.file(t)}})
			},
			"ask": func(t *rapid.T) {
				ch, c := h.in(t)
				f := h.file(t)
				h.put(t, ch, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "q", Parts: f}, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: "a", Parts: f}}})
			},
			"send": func(t *rapid.T) {
				ch, c := h.in(t)
				r := rapid.SampledFrom([]ledger.Row{{State: ledger.Sent}, {State: ledger.Queued}, {State: ledger.Sent, Tracked: true}, {State: ledger.Failed, Reason: ledger.ReasonRejected}}).Draw(t, "as")
				r.Direction, r.Text, r.Parts = ledger.Out, "s", h.file(t)
				for _, m := range h.model {
					if m.open && m.channel == ch && m.conv == c.Key {
						r.ReplyTo = m.id // so far
					}
				}
				h.put(t, ch, &ledger.Unit{Conversation: c, Out: []ledger.Row{r}})
			},
			"end": h.settle,
			"age": func(t *rapid.T) {
				h.now = h.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "hours")) * time.Hour)
			},
			"keep": func(t *rapid.T) {
				ch := rapid.IntRange(0, len(h.rows)-1).Draw(t, "channel")
				h.rows[ch].Retention = rapid.IntRange(0, 3).Draw(t, "days")
				var err error
				if h.rows[ch], err = h.s.UpdateChannel(t.Context(), h.rows[ch], ledger.Change{}); err != nil {
					t.Fatal(err)
				}
			},
			"sweep":  h.sweep,
			"forget": func(*rapid.T) { h.conv, h.look = map[string]*ledger.Conversation{}, true },
			"reopen": func(t *rapid.T) {
				if err := h.s.Close(); err != nil {
					t.Fatal(err)
				}
				for i, m := range h.model {
					h.model[i].open = m.open && !slices.ContainsFunc(h.model, func(a kept) bool { return a.replyTo == m.id })
				}
				h.open(t)
				h.look = true
			},
			"": func(t *rapid.T) {
				if h.look {
					h.look = false
					h.check(t)
				}
			},
		})
	})
}
