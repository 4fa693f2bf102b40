// Package ledgertest says what an engine must do that keeps a ledger: each engine
// runs it in its tests.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Engine is what an engine must have.
type Engine interface {
	ledger.Log
	ledger.Reader
	ledger.Directory
	Conversation(ctx context.Context, t *ledger.Tail, key string) (ledger.Recall, error)
	AddConnections(ctx context.Context, lines []ledger.Connection) error
	Connections(ctx context.Context, want ledger.ConnectionQuery, before int64, n int) ([]ledger.Connection, error)
	CountPending(ctx context.Context, channel int64) (int64, error)
	Life(ctx context.Context, id ledger.MessageID) ([]ledger.Life, error)
	Unanswered(ctx context.Context) ([]ledger.OpenMessage, error)
	Waiting(ctx context.Context, channel int64) ([]ledger.Waiting, error)
	Handled(id ledger.MessageID)
	Close() error
}

// Kept is where an engine keeps one ledger, through all of a test.
type Kept struct {
	Open func(t testing.TB) Engine // what is kept, after Close or Kill; empty at first

	// Kill leaves what is kept as the sudden end of the process would that has it open.
	Kill func(t testing.TB, e Engine)

	// Refuse makes the engine refuse what is written until resume is called, as on a
	// full disk.
	Refuse func(t testing.TB) (resume func())
}

// Run runs all of the contract. kept makes a place for an empty ledger.
func Run(t *testing.T, kept func(t testing.TB) Kept) {
	for _, c := range []struct {
		name string
		test func(*bed)
	}{
		{"order", order},
		{"repeats", repeats},
		{"fences", fences},
		{"recovery", func(b *bed) { recovery(b, b.reopened) }},
		{"recovery after a kill", func(b *bed) { recovery(b, b.killed) }},
		{"in flight", func(b *bed) { inFlight(b, b.reopened) }},
		{"in flight at a kill", func(b *bed) { inFlight(b, b.killed) }},
		{"much that waits", func(b *bed) { muchWaits(b, b.reopened) }},
		{"much that waits at a kill", func(b *bed) { muchWaits(b, b.killed) }},
		{"refusal", refusal},
		{"removed", removed},
		{"pages", pages},
		{"cursors", cursors},
		{"connections", connections},
		{"compare and set", compareAndSet},
		{"directory", directory},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := kept(t)
			b := &bed{T: t, Kept: k, Engine: k.Open(t)}
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			c.test(b)
		})
	}
}

type bed struct {
	*testing.T
	Kept
	Engine
}

// reopened closes the engine, and opens what it kept.
func (b *bed) reopened() {
	b.Helper()
	if err := b.Close(); err != nil {
		b.Fatalf("close: %v", err)
	}
	b.Engine = b.Open(b.T)
}

// killed kills the engine, and opens what it left.
func (b *bed) killed() {
	b.Helper()
	b.Kill(b.T, b.Engine)
	b.Engine = b.Open(b.T)
}

func (b *bed) channel(name string) ledger.Channel {
	b.Helper()
	c, err := b.CreateChannel(b.Context(), ledger.Channel{ID: "id-" + name, Name: name, Kind: "bridge", Enabled: true, Agent: "echo"}, nil, change)
	if err != nil {
		b.Fatalf("create channel: %v", err)
	}
	return c
}

var change = ledger.Change{Actor: "test", Action: "test"}

func (b *bed) own(c ledger.Channel) *ledger.Tail {
	b.Helper()
	t, err := b.Own(b.Context(), c.Key)
	if err != nil {
		b.Fatalf("own: %v", err)
	}
	return t
}

func (b *bed) conversation(t *ledger.Tail, key string) *ledger.Conversation {
	b.Helper()
	r, err := b.Conversation(b.Context(), t, key)
	if err != nil {
		b.Fatalf("conversation: %v", err)
	}
	return r.Conversation
}

// commit appends units and returns what became of each, in the order in which that
// was told.
func (b *bed) commit(units ...*ledger.Unit) []error {
	b.Helper()
	type told struct {
		unit int
		err  error
	}
	all := make(chan told, len(units))
	for i, u := range units {
		b.Append(u, func(r ledger.Result) { all <- told{i, r.Err} })
	}
	errs := make([]error, len(units))
	for i := range units {
		got := <-all
		if got.unit != i {
			b.Fatalf("unit %d was told of as number %d", got.unit, i)
		}
		errs[i] = got.err
	}
	return errs
}

// must commits what can be committed.
func (b *bed) must(units ...*ledger.Unit) {
	b.Helper()
	for i, err := range b.commit(units...) {
		if err != nil {
			b.Fatalf("unit %d: %v", i, err)
		}
	}
}

func in(c *ledger.Conversation, text, platform string) *ledger.Unit {
	return &ledger.Unit{Conversation: c, In: &ledger.Row{Text: text, PlatformID: platform}}
}

func out(c *ledger.Conversation, text string, s ledger.State) *ledger.Unit {
	return &ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: s, Text: text}}}
}

// texts are those of a page, newest first.
func (b *bed) texts(in ledger.Scope, before ledger.MessageID, n int) []string {
	b.Helper()
	page, err := b.Before(b.Context(), in, before, n)
	if err != nil {
		b.Fatalf("read: %v", err)
	}
	all := []string{}
	for _, e := range page {
		all = append(all, e.Text)
	}
	return all
}

func (b *bed) want(what string, got, want []string) {
	b.Helper()
	if !slices.Equal(got, want) {
		b.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// order: ids ascend as units were appended, done is called in that order, and an
// answer names its question.
func order(b *bed) {
	c := b.channel("a")
	tail := b.own(c)
	one, two := b.conversation(tail, "one"), b.conversation(tail, "two")
	var units []*ledger.Unit
	for i := range 300 {
		u := in(one, fmt.Sprint("q", i), "")
		if i%3 == 0 {
			u = in(two, fmt.Sprint("q", i), "")
		}
		u.Out = []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: fmt.Sprint("a", i)}}
		units = append(units, u)
	}
	b.must(units...)
	last := ledger.MessageID(0)
	for i, u := range units {
		if u.In.ID <= last || u.Out[0].ID <= u.In.ID || u.Out[0].ReplyTo != u.In.ID {
			b.Fatalf("unit %d: question %d, answer %d to %d, after %d", i, u.In.ID, u.Out[0].ID, u.Out[0].ReplyTo, last)
		}
		last = u.Out[0].ID
	}
	b.want("newest", b.texts(ledger.Scope{Channel: c.Key}, 0, 3), []string{"a299", "q299", "a298"})
	key := "two"
	b.want("newest of a conversation", b.texts(ledger.Scope{Channel: c.Key, Conversation: &key}, 0, 2), []string{"a297", "q297"})
}

// repeats: of what has a platform id, the first is kept, and nothing else is a repeat.
func repeats(b *bed) {
	first, other := b.channel("a"), b.channel("b")
	c := b.conversation(b.own(first), "c")
	d := b.conversation(b.own(other), "c")
	b.must(in(c, "first", "p1"))
	behind := out(c, "behind a repeat", ledger.Sent)
	again := in(c, "again", "p1")
	behind.After = again
	errs := b.commit(in(c, "second", "p2"), again, in(c, "third", "p3"), in(c, "third again", "p3"), behind, in(d, "elsewhere", "p1"), in(c, "none", ""), in(c, "none", ""))
	for i, err := range errs {
		var ok bool
		switch i {
		case 1, 3:
			ok = errors.Is(err, ledger.ErrDuplicate)
		case 4:
			ok = errors.Is(err, ledger.ErrUnavailable)
		default:
			ok = err == nil
		}
		if !ok {
			b.Errorf("unit %d: %v", i, err)
		}
	}
	b.want("kept", b.texts(ledger.Scope{Channel: first.Key}, 0, 10), []string{"none", "none", "third", "second", "first"})
	if e, err := b.ByPlatformID(b.Context(), other.Key, "p1"); err != nil || e.Text != "elsewhere" {
		b.Errorf("by platform id: %q, %v", e.Text, err)
	}
}

// fences: what an owner appends after another one came is refused, and only that.
func fences(b *bed) {
	c := b.channel("a")
	old := b.own(c)
	was := b.conversation(old, "c")
	b.must(in(was, "first", ""), &ledger.Unit{Tail: old, Cursor: "1"})
	now := b.own(c)
	if now.Epoch <= old.Epoch || now.Cursor() != "1" {
		b.Errorf("epoch %d after %d, cursor %q", now.Epoch, old.Epoch, now.Cursor())
	}
	mine := b.conversation(now, "c")
	errs := b.commit(in(was, "late", "p"), in(mine, "second", "p"), &ledger.Unit{Tail: old, Cursor: "0"})
	if !errors.Is(errs[0], ledger.ErrFenced) || errs[1] != nil || !errors.Is(errs[2], ledger.ErrFenced) {
		b.Errorf("got %v", errs)
	}
	b.want("kept", b.texts(ledger.Scope{Channel: c.Key}, 0, 10), []string{"second", "first"})
	if now.Cursor() != "1" {
		b.Errorf("a fenced cursor was kept: %q", now.Cursor())
	}
	b.Release(old) // an older owner releases nothing
	b.must(in(mine, "third", ""))
	b.Release(now)
	if errs := b.commit(in(mine, "released", "")); !errors.Is(errs[0], ledger.ErrFenced) {
		b.Errorf("after a release: %v", errs)
	}
}

// refusal: what can't be written is refused as such, nothing of it is kept, and
// later it goes on.
func refusal(b *bed) {
	c := b.channel("a")
	conv := b.conversation(b.own(c), "c")
	b.must(in(conv, "before", ""))
	resume := b.Refuse(b.T)
	for i, err := range b.commit(in(conv, "refused", "p1"), out(conv, "refused", ledger.Sent)) {
		if !ledger.Failing(err) || errors.Is(err, ledger.ErrDuplicate) {
			b.Errorf("unit %d: %v", i, err)
		}
	}
	resume()
	b.must(in(conv, "after", "p1"))
	b.want("kept", b.texts(ledger.Scope{Channel: c.Key}, 0, 10), []string{"after", "before"})
}

// removed: a deleted channel takes nothing more, and changes of a message that is not
// there are refused alone.
func removed(b *bed) {
	c := b.channel("a")
	conv := b.conversation(b.own(c), "c")
	gone := &ledger.Unit{Conversation: conv, Settle: []ledger.Settlement{{ID: 1, State: ledger.Delivered}}}
	errs := b.commit(in(conv, "kept", ""), gone, out(conv, "kept too", ledger.Sent))
	if errs[0] != nil || !errors.Is(errs[1], ledger.ErrRemoved) || errs[2] != nil {
		b.Errorf("got %v", errs)
	}
	if err := b.DeleteChannel(b.Context(), c, change); err != nil {
		b.Fatal(err)
	}
	if errs := b.commit(in(conv, "too late", "")); !errors.Is(errs[0], ledger.ErrRemoved) {
		b.Errorf("a deleted channel: %v", errs)
	}
}

// pages: a list is read in pages that join without gap or repeat, in both ways.
func pages(b *bed) {
	c, beside := b.channel("a"), b.channel("b")
	conv, other := b.conversation(b.own(c), "c"), b.conversation(b.own(beside), "c")
	var want []string
	for i := range 25 {
		b.must(in(conv, fmt.Sprint(i), ""), in(other, "beside", ""))
		want = append(want, fmt.Sprint(i))
	}
	var got []string
	for before := ledger.MessageID(0); ; {
		page, err := b.Before(b.Context(), ledger.Scope{Channel: c.Key}, before, 7)
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range page {
			got, before = append(got, e.Text), e.ID
		}
		if len(page) == 0 {
			break
		}
	}
	slices.Reverse(got)
	b.want("newest first", got, want)
	got = nil
	for after := ledger.MessageID(0); ; {
		list, err := b.HeadingsAfter(b.Context(), after, 7)
		if err != nil {
			b.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		for i, e := range b.listed(list) {
			if after = e.ID; e.Channel != list[i].Channel || after != list[i].ID || e.Size() > list[i].Size {
				b.Errorf("%+v is listed as %+v", e, list[i])
			}
			if e.Channel == c.Key {
				got = append(got, e.Text)
			}
		}
	}
	b.want("oldest first", got, want)
	bounds(b, c, want)
	if _, err := b.Before(b.Context(), ledger.Scope{Channel: beside.Key}, firstOf(b, c), 7); !errors.Is(err, ledger.ErrNotFound) {
		b.Errorf("a message of another channel as a place: %v", err)
	}
}

// bounds: a page whose bytes are bounded is whole or none, and its headings say what
// it would hold.
func bounds(b *bed, c ledger.Channel, want []string) {
	b.Helper()
	in := ledger.Scope{Channel: c.Key}
	list, err := b.Headings(b.Context(), in, 0, 20)
	if err != nil {
		b.Fatal(err)
	}
	var got []string
	size := 0
	for _, e := range b.listed(list) {
		got, size = append(got, e.Text), size+e.Size()
	}
	slices.Reverse(got)
	b.want("headings", got, want[5:])
	for _, c := range []struct {
		bytes int
		err   error
	}{{size - 1, ledger.ErrPageBytes}, {size, nil}} {
		in.Bytes = c.bytes
		if page, err := b.Before(b.Context(), in, 0, 20); !errors.Is(err, c.err) || err == nil && len(page) != 20 {
			b.Errorf("a page of %d bytes at most: %d messages, %v", c.bytes, len(page), err)
		}
	}
	older, err := b.Headings(b.Context(), in, list[len(list)-1].ID, 20)
	if err != nil || len(older) != 5 {
		b.Errorf("%d older headings: %v", len(older), err)
	}
}

// listed reads the messages of a list.
func (b *bed) listed(list []ledger.Heading) []ledger.Entry {
	b.Helper()
	var ids []ledger.MessageID
	for _, h := range list {
		ids = append(ids, h.ID)
	}
	page, err := b.Entries(b.Context(), ids)
	if err != nil || len(page) != len(list) {
		b.Fatalf("%d of %d messages: %v", len(page), len(list), err)
	}
	return page
}

func firstOf(b *bed, c ledger.Channel) ledger.MessageID {
	b.Helper()
	page, err := b.Before(b.Context(), ledger.Scope{Channel: c.Key}, 0, 1)
	if err != nil || len(page) != 1 {
		b.Fatalf("%d messages: %v", len(page), err)
	}
	return page[0].ID
}

// directory: channels are found by id, name and key, listed in pages, and names are
// theirs alone.
func directory(b *bed) {
	var names []string
	for i := range 5 {
		names = append(names, b.channel(fmt.Sprint("c", i)).Name)
	}
	for _, ref := range []string{"c3", "id-c3"} {
		if c, err := b.Channel(b.Context(), ref); err != nil || c.Name != "c3" {
			b.Errorf("%s: %+v, %v", ref, c, err)
		}
	}
	if _, err := b.Channel(b.Context(), "none"); !errors.Is(err, ledger.ErrNotFound) {
		b.Errorf("none: %v", err)
	}
	var got []string
	for after := int64(0); ; {
		page, err := b.Channels(b.Context(), after, 2)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range page {
			got, after = append(got, c.Name), c.Key
		}
		if len(page) == 0 {
			break
		}
	}
	b.want("list", got, names)
	if _, err := b.CreateChannel(b.Context(), ledger.Channel{ID: "other", Name: "c1"}, nil, change); !errors.Is(err, ledger.ErrNameTaken) {
		b.Errorf("a name twice: %v", err)
	}
}
