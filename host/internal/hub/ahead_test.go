package hub_test

import (
	"fmt"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// ahead is what of its profile an adapter says that takes so many messages ahead.
func ahead(n int) string { return fmt.Sprintf(`"profile":{"in_flight":%d}`, n) }

func sendAll(h *hosttest.Host, row ledger.Channel, texts ...string) {
	for _, text := range texts {
		h.MustSend(row, "c", text)
	}
}

func wantSent(t *testing.T, c *hosttest.Client, texts ...string) (all []hosttest.Sent) {
	t.Helper()
	for _, text := range texts {
		f := c.NextSent("send")
		if f.Text != text {
			t.Fatalf("came %+v, want %s", f, text)
		}
		all = append(all, f)
	}
	return all
}

// As many messages of a conversation are in flight as the adapter takes ahead, and an
// operator makes that fewer, and never more.
func TestSeveralInFlight(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("f")
	c := h.Attach11(t, row, "ack", ahead(3))
	sendAll(h, row, "1", "2", "3", "4", "5")
	first := wantSent(t, c, "1", "2", "3")
	c.Quiet()
	h.WantHistory(row, "out sent 1", "out sent 2", "out sent 3", "out queued 4", "out queued 5")
	c.OK(first[1].MessageID) // it came before
	wantSent(t, c, "4")
	c.Quiet()
	c.OK(first[0].MessageID)
	wantSent(t, c, "5")
	h.WantHistory(row, "out delivered 1", "out delivered 2", "out sent 3", "out sent 4", "out sent 5")
	h.Operator("PATCH", "/channels/f", `{"profile":{"in_flight":2}}`, 200)
	sendAll(h, row, "6")
	c.OK(first[2].MessageID)
	c.Quiet()
	h.Operator("PATCH", "/channels/f", `{"profile":{"in_flight":60}}`, 200)
	wantSent(t, c, "6")
	sendAll(h, row, "7")
	c.Quiet()
	h.WantHistory(row, "out delivered 1", "out delivered 2", "out delivered 3", "out sent 4", "out sent 5", "out sent 6", "out queued 7")
}

// One that the adapter takes later comes before all that was in flight behind it, and
// alone until it is taken. Before it the adapter is told that the conversation goes on.
func TestRefusedTakesBackThoseBehind(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("f")
	c := h.Attach11(t, row, "ack", ahead(8))
	sendAll(h, row, "1", "2", "3")
	first := wantSent(t, c, "1", "2", "3")
	c.OK(first[0].MessageID)
	c.OK(first[1].MessageID, `"error":"flood wait","retryable":true`)
	c.OK(first[2].MessageID) // of one that was taken back: it counts for nothing
	c.WantError("unknown_message", first[2].MessageID, "in flight")
	again := wantSent(t, c, "2")
	c.Quiet()
	if !again[0].Resumed || again[0].MessageID != first[1].MessageID {
		t.Errorf("came again as %+v", again)
	}
	sendAll(h, row, "4")
	c.Quiet()
	c.OK(again[0].MessageID)
	behind := wantSent(t, c, "3", "4")
	if behind[0].Resumed || behind[0].MessageID != first[2].MessageID {
		t.Errorf("came behind it: %+v", behind)
	}
	c.OK(behind[0].MessageID)
	c.OK(behind[1].MessageID)
	h.WantHistory(row, "out delivered 1", "out delivered 2", "out delivered 3", "out delivered 4")
}

// Also where one is given up that was refused too often, the next one says that the
// conversation goes on.
func TestGivenUpIsResumedBehind(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("f")
	h.Operator("PATCH", "/channels/f", `{"queue_limits":{"attempts":1}}`, 200)
	c := h.Attach11(t, row, "ack", ahead(8))
	sendAll(h, row, "1", "2")
	first := wantSent(t, c, "1", "2")
	c.OK(first[0].MessageID, `"error":"flood wait","retryable":true`)
	again := wantSent(t, c, "2")
	if !again[0].Resumed {
		t.Errorf("came again as %+v", again)
	}
	c.OK(again[0].MessageID, `"error":"flood wait","retryable":true`)
	h.WantHistory(row, "out failed/retries_exhausted 1", "out failed/retries_exhausted 2")
	sendAll(h, row, "3", "4")
	last := wantSent(t, c, "3", "4")
	if !last[0].Resumed || last[1].Resumed {
		t.Errorf("came then: %+v", last)
	}
}

// What a lost session had in flight comes again in its order, and a message of several
// frames comes alone.
func TestSeveralComeAgain(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("f", hosttest.WithQueue)
	c := h.Attach11(t, row, "ack", ahead(8))
	sendAll(h, row, "1", "2")
	wantSent(t, c, "1", "2")
	_ = c.WS.Close()
	c = h.Attach11(t, row, "ack", `"profile":{"in_flight":8,"max_text":5}`)
	sendAll(h, row, "3 and more", "4")
	came := wantSent(t, c, "1", "2")
	c.Quiet()
	for _, f := range came {
		c.OK(f.MessageID)
	}
	for _, part := range []string{"3 and", "more"} {
		f := wantSent(t, c, part)
		c.Quiet()
		c.OK(f[0].MessageID)
	}
	c.OK(wantSent(t, c, "4")[0].MessageID)
	h.WantHistory(row, "out delivered 1", "out delivered 2", "out delivered 3 and more", "out delivered 4")
}
