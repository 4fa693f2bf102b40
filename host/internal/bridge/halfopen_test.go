package bridge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/torture"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/transport/toxic"
)

// An adapter whose connection falls silent without an end is given up within
// the silence that the protocol allows. Its slot is free for it to come back,
// and with acknowledgement nothing is lost: what was under way comes again.
func TestTortureHalfOpen(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, quickPulse)
	row := torture.Row{Fault: "half-open TCP, adapter with `ack`"}
	times := torture.Times(1, 20)
	results := make(chan silence, 2*times)
	t.Run("connections", func(t *testing.T) {
		for i := range times {
			for _, how := range []string{toxic.Drop, toxic.Stall} {
				t.Run(fmt.Sprint(how, i), func(t *testing.T) {
					t.Parallel()
					results <- halfOpen(t, h, fmt.Sprint("half-open-", how, i), how)
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

type silence struct {
	lost, twice, disordered int
	noticed                 time.Duration
}

// halfOpen lets one adapter fall silent with messages under way both ways, and
// come back by another way.
func halfOpen(t *testing.T, h *hosttest.Host, name, how string) (r silence) {
	row := h.Channel(name)
	proxy := toxic.New(t, h.Addr)
	c, err := hosttest.DialAt(t, proxy.Addr(), hosttest.Credentials{}, false)
	if err != nil {
		t.Fatal(err)
	}
	c.Register11(row, "ack")
	ask := func(c *hosttest.Client, text string) {
		c.Send(`{"type":"message","conversation_id":"in","user_id":"u","text":` + hosttest.Quote(text) + `,"message_id":` + hosttest.Quote(text) + `}`)
	}
	ask(c, "heard")
	c.MustNext() // the acknowledgement
	heard := c.NextSent("send")
	c.OK(heard.MessageID)
	h.MustSend(row, "a", "1")
	first := c.NextSent("send")
	h.MustSend(row, "b", "confirmed")
	confirmed := c.NextSent("send")
	c.OK(confirmed.MessageID)
	await.Until(t, "confirmed", func() bool { return stateOf(h.History(row), "confirmed") == ledger.Delivered })

	proxy.Silence(how)
	began := time.Now()
	c.OK(first.MessageID) // never arrives
	ask(c, "unheard")     // nor does this
	h.MustSend(row, "a", "2")
	h.MustSend(row, "c", "3")
	await.Until(t, "the silence is noticed", func() bool { return !h.Attached(row) })
	r.noticed = time.Since(began)

	again := h.Attach11(t, row, "ack")
	got := map[string]int{}
	for range 3 {
		f := again.NextSent("send")
		if got[f.Text]++; f.Text == "1" && f.MessageID != first.MessageID {
			t.Error("sent again under another id")
		}
		if f.Text == "2" && got["1"] == 0 {
			r.disordered++
		}
		again.OK(f.MessageID)
	}
	ask(again, "unheard")
	ask(again, "heard") // as one does who knows no better
	var ack hosttest.Sent
	again.Read(&ack)
	f := again.NextSent("send")
	again.OK(f.MessageID)
	again.Read(&ack)
	again.Quiet()
	for _, text := range []string{"1", "2", "3"} {
		if got[text] == 0 {
			r.lost++
		}
		r.twice += max(0, got[text]-1)
	}
	await.Until(t, "everything is settled", func() bool {
		for _, e := range h.History(row) {
			if e.State != ledger.Delivered && e.State != ledger.Handled {
				return false
			}
		}
		return true
	})
	if n := len(h.History(row)); n != 8 { // two questions with answers, four that nobody asked for
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
