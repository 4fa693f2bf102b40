package paging

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// shelf is a store with messages in one channel.
type shelf struct {
	*sqlite.Store
	in  ledger.Scope
	ids []ledger.MessageID // oldest first
}

// filled makes messages of these sizes.
func filled(t *testing.T, sizes ...int) *shelf {
	t.Helper()
	st, err := sqlite.Open(t.Context(), blank.Dir(t, t.TempDir()), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	row, err := st.CreateChannel(t.Context(), ledger.Channel{ID: "c", Name: "c", Kind: "bridge", Enabled: true}, nil, ledger.Change{})
	if err != nil {
		t.Fatal(err)
	}
	tail, err := st.Own(t.Context(), row.Key)
	if err != nil {
		t.Fatal(err)
	}
	found, err := st.Conversation(t.Context(), tail, "c")
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{Store: st, in: ledger.Scope{Channel: row.Key}}
	for _, size := range sizes {
		done := make(chan ledger.Result, 1)
		u := &ledger.Unit{Conversation: found.Conversation, In: &ledger.Row{State: ledger.Handled, Text: strings.Repeat("x", size)}}
		st.Append(u, func(r ledger.Result) { done <- r })
		if r := await.Value(t, "the commit", done); r.Err != nil {
			t.Fatal(r.Err)
		}
		s.ids = append(s.ids, u.In.ID)
	}
	return s
}

// shown reads a page to its end, and checks that no more than a chunk is in memory.
func shown(t *testing.T, p *Page) []ledger.MessageID {
	t.Helper()
	var ids []ledger.MessageID
	err := p.Each(t.Context(), func(bytes int64) {
		if bytes > Chunk && len(p.read) > 1 {
			t.Errorf("%d messages of %d bytes are in memory", len(p.read), bytes)
		}
	}, func(e *ledger.Entry) error {
		ids = append(ids, e.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	return ids
}

// Pages of any sizes join without gap or repeat, in both orders, and all that was
// taken of the memory is given back.
func TestPages(t *testing.T) {
	half := Chunk / 2
	s := filled(t, 10, half, half, 2*Chunk, 10, half, half, 10, 3*Chunk, half)
	m := New(s)
	for name, q := range map[string]Query{
		"ok": {N: 100}, "okOldestFirst": {N: 100, OldestFirst: true}, "okCount": {N: 3}, "okCountOldestFirst": {N: 3, OldestFirst: true},
		"okBytes": {N: 100, Bytes: Chunk}, "okBytesOldestFirst": {N: 100, Bytes: Chunk + 20, OldestFirst: true}, "okOneByte": {N: 100, Bytes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			q.In = s.in
			var got []ledger.MessageID // oldest first
			for n := 0; ; n++ {
				page, err := m.Open(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				ids := shown(t, page)
				if !q.OldestFirst {
					slices.Reverse(ids)
				}
				got = append(ids, got...)
				if q.Before = page.Next; q.Before == 0 || n > len(s.ids) {
					break
				}
			}
			if !slices.Equal(got, s.ids) {
				t.Errorf("got %v, want %v", got, s.ids)
			}
		})
	}
	for name, b := range map[string]*Budget{"chunks": m.chunks, "large": m.large} {
		if !b.room.TryAcquire(b.bytes) {
			t.Errorf("%s: not all is given back", name)
		}
	}
}

// Who finds no room in time is told so and holds nothing; what was not shown yet is
// shown once there is room, or never asked for.
func TestNoRoom(t *testing.T) {
	half := Chunk / 2
	s := filled(t, half, half, half, half)
	m := &Pages{store: s, chunks: NewBudget(factor*Chunk, 1), large: NewBudget(1, 1)}
	list, err := s.Headings(t.Context(), s.in, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	first, err := m.OpenList(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Open(t.Context(), Query{In: s.in, N: 10}); !errors.Is(err, ErrFull) {
		t.Errorf("a second reader: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	m.chunks.wait = 0
	if _, err := m.Open(gone, Query{In: s.in, N: 10}); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader who has gone: %v", err)
	}
	m.chunks.wait = 1
	var got []ledger.MessageID
	note := func(e *ledger.Entry) error { got = append(got, e.ID); return nil }
	first.share.Release() // between two chunks another one takes the room
	other, err := m.chunks.Take(t.Context(), factor*Chunk)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Each(t.Context(), nil, note); !errors.Is(err, ErrFull) {
		t.Fatalf("without room: %v", err)
	}
	if left := len(first.Left()); len(got)+left != len(s.ids) || left == 0 {
		t.Fatalf("%d are shown, %d are left", len(got), left)
	}
	other.Release()
	if err := first.Each(t.Context(), nil, note); err != nil {
		t.Fatal(err)
	}
	first.Close()
	first.Close()
	slices.Reverse(got)
	if !slices.Equal(got, s.ids) {
		t.Errorf("got %v, want %v", got, s.ids)
	}
	if !m.chunks.room.TryAcquire(m.chunks.bytes) {
		t.Error("not all is given back")
	}
}
