package hub

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

type textForm struct{ _ byte }

func (textForm) Make(m *message.Message) (made any, bytes int) { return m.Text, len(m.Text) }

// What is still being said, and what was found before it, is not kept.
func TestKeptUpToWhatIsStillSaid(t *testing.T) {
	row := func(id ledger.MessageID, text string, s ledger.Status) *ledger.Entry {
		return &ledger.Entry{Row: ledger.Row{ID: id, Text: text, Status: s}}
	}
	h := newHistory(&Turn{ID: 100, past: past{c: &Channel{hub: &Hub{}}}}, 10, textForm{})
	for _, e := range []*ledger.Entry{
		row(6, "six", ledger.StatusCompleted), row(5, "half", ledger.StatusStreaming), row(4, "four", ledger.StatusCompleted), row(3, "three", ledger.StatusError),
	} {
		h.take(e)
	}
	if told := h.tell(); len(told) != 3 || told[0] != "three" || told[2] != "six" {
		t.Errorf("told %v", told)
	}
	k := h.keep()
	if k == nil || k.head != 4 || len(k.said) != 2 || k.said[0].made != "four" {
		t.Errorf("kept %+v", k)
	}
	if h = newHistory(h.t, 10, textForm{}); h.keep() != nil {
		t.Error("nothing was found, and something is kept")
	}
}

// What is kept has a bound, and what was not used for longest goes first.
func TestKeptIsBounded(t *testing.T) {
	p := new(keptPasts)
	for i := range int64(1000) {
		p.put(i, &keptPast{form: textForm{}, bytes: mostKept})
		p.put(i, &keptPast{form: textForm{}, bytes: mostKept}) // takes the place of the one before
		if p.of(0, textForm{}) == nil {
			t.Fatalf("what is used is gone after %d", i)
		}
	}
	if n := len(p.by); n != allKept/mostKept || p.bytes != n*mostKept || p.order.Len() != n || p.of(1, textForm{}) != nil || p.of(999, textForm{}) == nil {
		t.Errorf("%d are kept, %d bytes", n, p.bytes)
	}
	if p.of(999, lineForm{}) != nil {
		t.Error("kept in another form")
	}
	if p.put(999, nil); p.of(999, textForm{}) != nil {
		t.Error("kept though nothing is to be kept")
	}
}

type lineForm struct{ textForm }
