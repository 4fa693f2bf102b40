package ledgertest

import (
	"fmt"
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

// muchWaits: of each channel all is found after the next start that waits for its adapter
// or for agents, in its order, however much it is and whatever else waits between it; and
// it is counted from then on as it changes.
func muchWaits(b *bed, again func()) {
	const rounds = 700 // more than any page
	channels := []ledger.Channel{b.channel("a"), b.channel("b")}
	var conversations []*ledger.Conversation
	for _, c := range channels {
		conversations = append(conversations, b.conversation(b.own(c), "c"))
	}
	var all, later []*ledger.Unit
	want := map[int64][]ledger.Waiting{}
	open := map[ledger.MessageID]ledger.OpenMessage{}
	for i := range rounds {
		for _, conv := range conversations {
			agents, waits, flies := in(conv, fmt.Sprint("question ", i), ""), out(conv, "waits", ledger.Queued), out(conv, "flies", ledger.Sent)
			flies.Out[0].Tracked = true
			all = append(all, agents, waits, flies)
		}
	}
	b.must(all...)
	for i := 0; i < len(all); i += 3 {
		agents, waits, flies := all[i].In, &all[i+1].Out[0], &all[i+2].Out[0]
		conv := all[i].Conversation
		told, taken := i%2 == 0, i%5 == 0 // taken from the queue, and not acknowledged
		t := []ledger.Settlement{{
			ID: agents.ID, State: ledger.Received, Tracked: true, Told: told, Life: []ledger.Life{{What: "waits", Detail: agents.Text}},
		}}
		if taken {
			t = append(t, ledger.Settlement{ID: waits.ID, State: ledger.Sent, Tracked: true, Tries: 1})
		}
		later = append(later, &ledger.Unit{Conversation: conv, Settle: t})
		open[agents.ID] = ledger.OpenMessage{Listed: true, Told: told, Entry: ledger.Entry{Row: ledger.Row{Text: agents.Text}}}
		w := ledger.Waiting{ID: waits.ID, Conversation: "c"}
		if taken {
			w.Tries = 1
		}
		want[conv.Tail.Channel] = append(want[conv.Tail.Channel], w, ledger.Waiting{ID: flies.ID, Conversation: "c"})
	}
	b.must(later...)
	fresh := in(conversations[0], "not listed", "")
	b.must(fresh)
	open[fresh.In.ID] = ledger.OpenMessage{Entry: ledger.Entry{Row: ledger.Row{Text: fresh.In.Text}}}
	again()

	left, err := b.Unanswered(b.Context())
	if err != nil || len(left) != len(open) {
		b.Fatalf("%d unanswered, %v, want %d", len(left), err, len(open))
	}
	for i, m := range left {
		if w := open[m.ID]; m.Text != w.Text || m.Listed != w.Listed || m.Told != w.Told || m.Conversation != "c" || m.State != ledger.Received {
			b.Fatalf("unanswered: %+v, want %+v", m, w)
		}
		if i > 0 && m.ID <= left[i-1].ID {
			b.Fatalf("unanswered: %s behind %s", m.ID, left[i-1].ID)
		}
	}
	if life, err := b.Life(b.Context(), left[0].ID); err != nil || len(life) != 1 || life[0].What != "waits" || life[0].Detail != left[0].Text || life[0].At.IsZero() {
		b.Errorf("life: %+v, %v", life, err)
	}
	for i, c := range channels {
		waiting, err := b.Waiting(b.Context(), c.Key)
		if err != nil || !slices.Equal(waiting, want[c.Key]) {
			b.Errorf("%d waiting, %v, want %d", len(waiting), err, len(want[c.Key]))
		}
		var handled []ledger.Settlement
		if i == 0 {
			handled = []ledger.Settlement{{ID: left[0].ID, State: ledger.Handled}}
		}
		isCounted(b, c, waiting, handled)
	}
	if left, err := b.Unanswered(b.Context()); err != nil || len(left) != len(open)-1 {
		b.Errorf("%d unanswered, %v, want %d", len(left), err, len(open)-1)
	}
}

// isCounted: what waits in a channel is counted as it changes; settled, of what waits for
// agents, changes nothing in that.
func isCounted(b *bed, c ledger.Channel, waiting []ledger.Waiting, settled []ledger.Settlement) {
	b.Helper()
	count := func(want int) {
		b.Helper()
		if n, err := b.CountPending(b.Context(), c.Key); int(n) != want || err != nil {
			b.Errorf("counted %d, %v, want %d", n, err, want)
		}
	}
	n := len(waiting)
	count(n)
	conv := b.conversation(b.own(c), "c")
	b.must(out(conv, "newer", ledger.Queued))
	count(n + 1)
	b.must(&ledger.Unit{Conversation: conv, Settle: []ledger.Settlement{{ID: waiting[0].ID, State: ledger.Delivered}, {ID: waiting[1].ID, State: ledger.Failed}}})
	count(n - 1)
	if len(settled) > 0 {
		b.must(&ledger.Unit{Conversation: conv, Settle: settled})
		count(n - 1)
	}
}
