package ledgertest

import (
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// recovery: what was committed is there after the next start, with what is not
// finished, and ids go on.
func recovery(b *bed, again func()) {
	c := b.channel("a")
	tail := b.own(c)
	conv := b.conversation(tail, "c")
	open := in(conv, "open", "")
	open.Cursor = "7"
	answered := in(conv, "answered", "")
	answered.Out = []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: "answer"}}
	queued := out(conv, "queued", ledger.Queued)
	b.must(open, answered, queued)
	again()
	tail = b.own(c)
	if tail.Cursor() != "7" {
		b.Errorf("cursor %q", tail.Cursor())
	}
	left, err := b.Unanswered(b.Context())
	if err != nil || len(left) != 1 || left[0].Text != "open" {
		b.Errorf("unanswered: %+v, %v", left, err)
	}
	waiting, err := b.Waiting(b.Context(), c.Key)
	if err != nil || len(waiting) != 1 || waiting[0].ID != queued.Out[0].ID {
		b.Errorf("waiting: %+v, %v", waiting, err)
	}
	next := in(b.conversation(tail, "c"), "next", "")
	b.must(next)
	if next.In.ID <= queued.Out[0].ID {
		b.Errorf("id %d after %d", next.In.ID, queued.Out[0].ID)
	}
	b.Handled(open.In.ID)
	if e, err := b.Message(b.Context(), open.In.ID); err != nil || e.State != ledger.Handled {
		b.Errorf("%v, %v", e.State, err)
	}
	b.want("kept", b.texts(ledger.Scope{Channel: c.Key}, 0, 10), []string{"next", "queued", "answer", "answered", "open"})
}

// inFlight: what is sent and not acknowledged waits again after the next start, as it
// was said to wait last, and nothing else does.
func inFlight(b *bed, again func()) {
	c := b.channel("a")
	conv := b.conversation(b.own(c), "c")
	tracked := func(text string) *ledger.Unit {
		u := out(conv, text, ledger.Sent)
		u.Out[0].Tracked = true
		return u
	}
	settle := func(u *ledger.Unit, t ledger.Settlement) {
		b.Helper()
		t.ID = u.Out[0].ID
		b.must(&ledger.Unit{Conversation: conv, Settle: []ledger.Settlement{t}})
	}
	flying, acked, half, back, over := tracked("flying"), tracked("acked"), tracked("half"), tracked("back"), tracked("over")
	b.must(flying, acked, half, back, over)
	if e, err := b.Message(b.Context(), flying.Out[0].ID); err != nil || e.State != ledger.Sent || !e.SettledAt.IsZero() {
		b.Errorf("in flight: %v since %v, %v", e.State, e.SettledAt, err)
	}
	settle(acked, ledger.Settlement{State: ledger.Delivered})
	settle(half, ledger.Settlement{State: ledger.Sent, Tracked: true, Frame: 1})
	settle(back, ledger.Settlement{State: ledger.Queued, Tries: 2})
	settle(over, ledger.Settlement{State: ledger.Sent, Tracked: true, Frame: 1})
	settle(over, ledger.Settlement{State: ledger.Delivered})
	b.must(out(conv, "untracked", ledger.Sent))
	again()
	waiting, err := b.Waiting(b.Context(), c.Key)
	want := []ledger.Waiting{
		{ID: flying.Out[0].ID, Conversation: "c"}, {ID: half.Out[0].ID, Conversation: "c", Frame: 1}, {ID: back.Out[0].ID, Conversation: "c", Tries: 2},
	}
	if err != nil || !slices.Equal(waiting, want) {
		b.Errorf("waiting: %+v, %v, want %+v", waiting, err, want)
	}
	for _, u := range []*ledger.Unit{acked, over} {
		if e, err := b.Message(b.Context(), u.Out[0].ID); err != nil || e.State != ledger.Delivered || e.SettledAt.IsZero() {
			b.Errorf("%s: %v since %v, %v", u.Out[0].Text, e.State, e.SettledAt, err)
		}
	}
}
