package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// compareAndSet: a row that was changed since it was read is neither written nor
// deleted, so that of many who change one nobody's change is lost.
func compareAndSet(b *bed) {
	old := b.channel("a")
	changed := old
	changed.Agent = "first"
	now, err := b.UpdateChannel(b.Context(), changed, change)
	if err != nil || now.Version <= old.Version || now.Agent != "first" {
		b.Fatalf("changed to %+v, %v", now, err)
	}
	late := old
	late.Agent = "late"
	if _, err := b.UpdateChannel(b.Context(), late, change); !errors.Is(err, ledger.ErrConflict) {
		b.Errorf("an old version is written: %v", err)
	}
	if err := b.DeleteChannel(b.Context(), old, change); !errors.Is(err, ledger.ErrConflict) {
		b.Errorf("an old version is deleted: %v", err)
	}
	b.reopened()
	if c, err := b.ChannelByKey(b.Context(), old.Key); err != nil || c.Agent != "first" || c.Version != now.Version {
		b.Errorf("kept %+v, %v, want %+v", c, err, now)
	}
	var all sync.WaitGroup
	var want []string
	for i := range 16 {
		user := fmt.Sprintf("u%02d", i)
		want = append(want, user)
		all.Go(func() {
			_, err := ledger.Edit(b.Context(),
				func(ctx context.Context) (ledger.Channel, error) { return b.ChannelByKey(ctx, old.Key) },
				func(c *ledger.Channel) (*ledger.Change, error) {
					c.Users = append(c.Users, user)
					return &change, nil
				}, b.UpdateChannel)
			if err != nil {
				b.Errorf("%s: %v", user, err)
			}
		})
	}
	all.Wait()
	c, err := b.ChannelByKey(b.Context(), old.Key)
	if err != nil {
		b.Fatal(err)
	}
	slices.Sort(c.Users)
	b.want("what many changed at once", c.Users, want)
	if err := b.DeleteChannel(b.Context(), c, change); err != nil {
		b.Fatal(err)
	}
	if _, err := b.UpdateChannel(b.Context(), c, change); !errors.Is(err, ledger.ErrNotFound) {
		b.Errorf("a deleted channel is written: %v", err)
	}
}

// cursors: a place in a list can be kept as text, and read on from after the next
// start, whatever came meanwhile.
func cursors(b *bed) {
	c := b.channel("a")
	conv := b.conversation(b.own(c), "c")
	var want []string
	for i := range 9 {
		b.must(in(conv, fmt.Sprint(i), ""))
		want = append([]string{fmt.Sprint(i)}, want...)
	}
	scope := ledger.Scope{Channel: c.Key}
	page, err := b.Before(b.Context(), scope, 0, 4)
	if err != nil || len(page) != 4 {
		b.Fatalf("%d messages, %v", len(page), err)
	}
	place := ledger.Cursor(int64(page[3].ID))
	b.reopened()
	b.must(in(b.conversation(b.own(c), "c"), "later", ""))
	id, ok := ledger.ParseCursor(place)
	if !ok {
		b.Fatalf("%q is no place", place)
	}
	b.want("behind the place", b.texts(scope, ledger.MessageID(id), 10), want[4:])
}
