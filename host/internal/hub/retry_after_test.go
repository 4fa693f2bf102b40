package hub_test

import (
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// A time that the adapter names is waited out: it holds no other conversation, and counts
// as no try, of which this channel has one alone.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("r", hosttest.WithQueue, func(c *ledger.Channel) { c.Limits.Attempts = 1 })
	c := h.Attach11(t, row, "ack")
	h.MustSend(row, "c", "one")
	one := c.NextSent("send")
	for range 2 {
		refused := time.Now()
		c.Send(hosttest.AckFrame(one.MessageID, `"error":"flood wait"`, `"retryable":true`, `"retry_after_ms":1500`))
		h.MustSend(row, "c", "behind")
		h.MustSend(row, "d", "other")
		other := c.NextSent("send")
		c.Send(hosttest.AckFrame(other.MessageID))
		again := c.NextSent("send")
		if waited := time.Since(refused); other.Text != "other" || again.MessageID != one.MessageID || waited < 1500*time.Millisecond {
			t.Errorf("meanwhile came %+v; after %s came %+v", other, waited, again)
		}
	}
	c.Send(hosttest.AckFrame(one.MessageID))
	for range 2 {
		c.Send(hosttest.AckFrame(c.NextSent("send").MessageID))
	}
	h.WantHistory(row, "out delivered one", "out delivered behind", "out delivered other", "out delivered behind", "out delivered other")

	// One that does not say when has no try more.
	h.MustSend(row, "e", "last")
	c.Send(hosttest.AckFrame(c.NextSent("send").MessageID, `"error":"flood wait"`, `"retryable":true`))
	h.WantHistory(row, "out delivered one", "out delivered behind", "out delivered other", "out delivered behind", "out delivered other", "out failed/retries_exhausted last")
}
