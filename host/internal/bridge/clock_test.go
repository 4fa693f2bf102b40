package bridge_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// clock is a wall clock that can be set.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

// A wall clock that is set forward or back changes neither the order of
// messages, nor when one is tried again or must be acknowledged.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	var wall clock
	h := start(t, func(s *setup) { s.store.Now, s.ack = wall.now, 2*time.Second })
	row := h.channel("talks")
	c := h.attach11(t, row, "ack")
	var last ledger.MessageID
	again := 0 // how often the message that is to be tried again came meanwhile
	says := func(text string) {
		t.Helper()
		c.send(`{"type":"message","conversation_id":"c","user_id":"u","text":` + quote(text) + `}`)
		f := c.nextSent("send")
		for ; f.ConversationID == "retried"; f = c.nextSent("send") {
			again++
		}
		if f.Text != "echo: "+text {
			t.Fatalf("came %+v", f)
		}
		c.ok(f.MessageID)
		id, err := ledger.ParseMessageID(f.MessageID)
		if err != nil || id <= last {
			t.Errorf("%s: id %s after %s, %v", text, id, last, err)
		}
		last = id
	}
	says("before")
	h.mustSend(row, "retried", "not now")
	f := c.nextSent("send")
	c.ok(f.MessageID, `"error":"busy"`, `"retryable":true`) // tried again after about 1 s
	for _, jump := range []time.Duration{24 * time.Hour, -time.Hour, -30 * 24 * time.Hour} {
		wall.jump(jump)
		says(jump.String())
	}
	// Tried again, and since it is not acknowledged, sent once more.
	for ; again < 2; again++ {
		if got := c.nextSent("send"); got.MessageID != f.MessageID {
			t.Errorf("came %+v", got)
		}
	}
	c.ok(f.MessageID)
	c.quiet()
	if e := h.last(row, ledger.Out); e.ID != last {
		t.Errorf("the newest is %s, want %s", e.ID, last)
	}
}

// What waits for a minute is not a day old because the clock was set.
func TestClockJumpExpiresNothing(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			t.Parallel()
			var wall clock
			h := start(t, func(s *setup) { s.store.Now, s.ttl = wall.now, time.Hour })
			short := h.channel("short", withQueue, func(c *ledger.Channel) { c.Limits.TTLSeconds = 1 })
			long := h.channel("long", withQueue)
			h.mustSend(short, "c", "for a second")
			h.mustSend(long, "c", "for an hour")
			wall.jump(jump)
			h.wantHistory(short, "out expired/ttl for a second") // in its time, by which the other was looked at too
			h.wantHistory(long, "out queued for an hour")
		})
	}
}
