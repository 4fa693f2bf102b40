package bridge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/torture"
	"github.com/pontoon-bridge/pontoon/sdk/transport/toxic"
)

// An adapter whose connection falls silent without an end is given up within
// the silence that the protocol allows. Its slot is free for it to come back,
// and with acknowledgement nothing is lost: what was under way comes again.
func TestTortureHalfOpen(t *testing.T) {
	t.Parallel()
	h := start(t, quickPulse)
	row := torture.Row{Fault: "half-open TCP, adapter with `ack`"}
	times := torture.Times(1, 20)
	results := make(chan halfOpen, 2*times)
	t.Run("connections", func(t *testing.T) {
		for i := range times {
			for _, how := range []string{toxic.Drop, toxic.Stall} {
				t.Run(fmt.Sprint(how, i), func(t *testing.T) {
					t.Parallel()
					results <- h.halfOpen(t, fmt.Sprint("half-open-", how, i), how)
				})
			}
		}
	})
	close(results)
	for r := range results {
		row.Lost += r.lost
		row.Duplicated += r.twice
		row.Disordered += r.disordered
		row.Recovery = append(row.Recovery, r.noticed)
	}
	row.Tried = fmt.Sprintf("%d connections; silence of %s allowed", 2*times, testSilence)
	torture.Report(t, row)
}

type halfOpen struct {
	lost, twice, disordered int
	noticed                 time.Duration
}

// halfOpen lets one adapter fall silent with messages under way both ways, and
// come back by another way.
func (h *host) halfOpen(t *testing.T, name, how string) (r halfOpen) {
	row := h.channel(name)
	proxy := toxic.New(t, h.addr)
	c, err := dialAt(t, proxy.Addr(), credentials{}, false)
	if err != nil {
		t.Fatal(err)
	}
	c.register11(row, "ack")
	ask := func(c *client, text string) {
		c.send(`{"type":"message","conversation_id":"in","user_id":"u","text":` + quote(text) + `,"message_id":` + quote(text) + `}`)
	}
	ask(c, "heard")
	c.mustNext() // the acknowledgement
	heard := c.nextSent("send")
	c.ok(heard.MessageID)
	h.mustSend(row, "a", "1")
	first := c.nextSent("send")
	h.mustSend(row, "b", "confirmed")
	confirmed := c.nextSent("send")
	c.ok(confirmed.MessageID)
	eventually(t, "confirmed", func() bool { return stateOf(h.history(row), "confirmed") == ledger.Delivered })

	proxy.Silence(how)
	began := time.Now()
	c.ok(first.MessageID) // never arrives
	ask(c, "unheard")     // nor does this
	h.mustSend(row, "a", "2")
	h.mustSend(row, "c", "3")
	eventually(t, "the silence is noticed", func() bool { return !h.attached(row) })
	r.noticed = time.Since(began)

	again := h.attach11(t, row, "ack")
	got := map[string]int{}
	for range 3 {
		f := again.nextSent("send")
		if got[f.Text]++; f.Text == "1" && f.MessageID != first.MessageID {
			t.Error("sent again under another id")
		}
		if f.Text == "2" && got["1"] == 0 {
			r.disordered++
		}
		again.ok(f.MessageID)
	}
	ask(again, "unheard")
	ask(again, "heard") // as one does who knows no better
	var ack sent
	again.read(&ack)
	f := again.nextSent("send")
	again.ok(f.MessageID)
	again.read(&ack)
	again.quiet()
	for _, text := range []string{"1", "2", "3"} {
		if got[text] == 0 {
			r.lost++
		}
		r.twice += max(0, got[text]-1)
	}
	eventually(t, "everything is settled", func() bool {
		for _, e := range h.history(row) {
			if e.State != ledger.Delivered && e.State != ledger.Handled {
				return false
			}
		}
		return true
	})
	if n := len(h.history(row)); n != 8 { // two questions with answers, four that nobody asked for
		t.Errorf("%d messages are kept, want 8", n)
	}
	return r
}

func stateOf(entries []ledger.Entry, text string) ledger.State {
	for _, e := range entries {
		if e.Text == text {
			return e.State
		}
	}
	return ledger.Failed
}
