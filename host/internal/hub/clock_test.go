package hub_test

import (
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// A wall clock that is set forward or back changes neither the order of
// messages, nor when one is tried again or must be acknowledged.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	var wall hosttest.WallClock
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.Store.Now, s.Ack = wall.Now, 2*time.Second })
	row := h.Channel("talks")
	c := h.Attach11(t, row, "ack")
	var last ledger.MessageID
	again := 0 // how often the message that is to be tried again came meanwhile
	says := func(text string) {
		t.Helper()
		c.Send(`{"type":"message","conversation_id":"c","user_id":"u","text":` + hosttest.Quote(text) + `}`)
		f := c.NextSent("send")
		for ; f.ConversationID == "retried" || f.MessageID == last.String(); f = c.NextSent("send") {
			if f.ConversationID == "retried" { // else it was acknowledged late
				again++
			}
		}
		if f.Text != "echo: "+text {
			t.Fatalf("came %+v", f)
		}
		c.OK(f.MessageID)
		id, err := ledger.ParseMessageID(f.MessageID)
		if err != nil || id <= last {
			t.Errorf("%s: id %s after %s, %v", text, id, last, err)
		}
		last = id
	}
	says("before")
	h.MustSend(row, "retried", "not now")
	f := c.NextSent("send")
	c.OK(f.MessageID, `"error":"busy"`, `"retryable":true`) // tried again after about 1 s
	for _, jump := range []time.Duration{24 * time.Hour, -time.Hour, -30 * 24 * time.Hour} {
		wall.Jump(jump)
		says(jump.String())
	}
	// Tried again, and since it is not acknowledged, sent once more.
	for ; again < 2; again++ {
		if got := c.NextSent("send"); got.MessageID != f.MessageID {
			t.Errorf("came %+v", got)
		}
	}
	c.OK(f.MessageID)
	c.Quiet()
	if e := h.Last(row, ledger.Out); e.ID != last {
		t.Errorf("the newest is %s, want %s", e.ID, last)
	}
}

// What waits for a minute is not a day old because the clock was set.
func TestClockJumpExpiresNothing(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			t.Parallel()
			var wall hosttest.WallClock
			h := hosttest.Start(t, func(s *hosttest.Setup) { s.Store.Now, s.TTL = wall.Now, time.Hour })
			short := h.Channel("short", hosttest.WithQueue, func(c *ledger.Channel) { c.Limits.TTLSeconds = 1 })
			long := h.Channel("long", hosttest.WithQueue)
			h.MustSend(short, "c", "for a second")
			h.MustSend(long, "c", "for an hour")
			wall.Jump(jump)
			h.WantHistory(short, "out expired/ttl for a second") // in its time, by which the other was looked at too
			h.WantHistory(long, "out queued for an hour")
		})
	}
}
