package hub_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// What nobody takes expires, and says so.
func TestTTL(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.TTL = 400 * time.Millisecond })
	row := h.Channel("t", hosttest.WithQueue)
	events, end := h.Hub.Events.Subscribe()
	defer end()
	h.MustSend(row, "c", "old")
	h.WantHistory(row, "out expired/ttl old")
	for e := range events {
		if e.Type == hub.EventState && e.State == ledger.Expired && e.Reason == ledger.ReasonTTL {
			break
		}
	}
	c := h.Attach(t, row)
	c.Quiet()
	h.MustSend(row, "c", "new")
	if f := c.NextSent("send"); f.Text != "new" {
		t.Errorf("came %+v", f)
	}

	// Behind one that is in flight, too.
	rich := h.Attach11(t, row, "ack")
	h.MustSend(row, "c", "flies")
	h.MustSend(row, "c", "waits")
	f := rich.NextSent("send")
	h.WantHistory(row, "out expired/ttl old", "out sent new", "out sent flies", "out expired/ttl waits")
	rich.OK(f.MessageID)
	rich.Quiet()
}

// What is replayed may wait as long as if it were new, and no longer.
func TestTTLOfReplayed(t *testing.T) {
	t.Parallel()
	var wall hosttest.WallClock
	set := func(s *hosttest.Setup) { s.Store.Now = wall.Now }
	h := hosttest.Start(t, set)
	row, nobody := h.Channel("t", hosttest.WithQueue), h.Channel("nobody", hosttest.WithQueue)
	short := h.Channel("short", hosttest.WithQueue, func(c *ledger.Channel) { c.Limits.TTLSeconds = 1 })
	const many = 70 // more than are looked through at a time
	in := func(state string) (lines []string) {
		for i := range many {
			lines = append(lines, fmt.Sprintf("out %s %d", state, i))
		}
		return lines
	}
	later := func(d time.Duration) { // of a host that runs, it would be a jump of the clock
		wall.Jump(d)
		h = h.Again(set)
	}
	h.MustSend(nobody, "c", "x")
	for i := range many {
		h.MustSend(row, fmt.Sprint("c", i%2), fmt.Sprint(i))
	}
	later(48 * time.Hour)
	h.WantHistory(row, in("expired/ttl")...)
	h.WantHistory(nobody, "out expired/ttl x")
	h.Operator("POST", "/dead-letters/replay", "", 202)
	later(time.Hour)
	h.MustSend(short, "c", "1")
	h.WantHistory(short, "out expired/ttl 1")
	h.MustSend(short, "c", "2")
	h.WantHistory(short, "out expired/ttl 1", "out expired/ttl 2") // by when all queues were looked through
	h.WantHistory(row, in("queued")...)
	c := h.Attach11(t, row, "ack")
	for range many {
		c.OK(c.NextSent("send").MessageID)
	}
	h.WantHistory(row, in("delivered")...)
	h.WantHistory(nobody, "out queued x")
	later(24 * time.Hour)
	h.WantHistory(nobody, "out expired/ttl x")
}
