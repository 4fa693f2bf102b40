package bridge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// What nobody takes expires, and says so.
func TestTTL(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.ttl = 400 * time.Millisecond })
	row := h.channel("t", withQueue)
	events, end := h.hub.Events.Subscribe()
	defer end()
	h.mustSend(row, "c", "old")
	h.wantHistory(row, "out expired/ttl old")
	for e := range events {
		if e.Type == hub.EventState && e.State == ledger.Expired && e.Reason == ledger.ReasonTTL {
			break
		}
	}
	c := h.attach(t, row)
	c.quiet()
	h.mustSend(row, "c", "new")
	if f := c.nextSent("send"); f.Text != "new" {
		t.Errorf("came %+v", f)
	}

	// Behind one that is in flight, too.
	rich := h.attach11(t, row, "ack")
	h.mustSend(row, "c", "flies")
	h.mustSend(row, "c", "waits")
	f := rich.nextSent("send")
	h.wantHistory(row, "out expired/ttl old", "out sent new", "out sent flies", "out expired/ttl waits")
	rich.ok(f.MessageID)
	rich.quiet()
}

// What is replayed may wait as long as if it were new, and no longer.
func TestTTLOfReplayed(t *testing.T) {
	t.Parallel()
	var wall clock
	set := func(s *setup) { s.store.Now = wall.now }
	h := start(t, set)
	row, nobody := h.channel("t", withQueue), h.channel("nobody", withQueue)
	short := h.channel("short", withQueue, func(c *ledger.Channel) { c.Limits.TTLSeconds = 1 })
	const many = 70 // more than are looked through at a time
	in := func(state string) (lines []string) {
		for i := range many {
			lines = append(lines, fmt.Sprintf("out %s %d", state, i))
		}
		return lines
	}
	later := func(d time.Duration) { // of a host that runs, it would be a jump of the clock
		wall.jump(d)
		h = h.again(set)
	}
	h.mustSend(nobody, "c", "x")
	for i := range many {
		h.mustSend(row, fmt.Sprint("c", i%2), fmt.Sprint(i))
	}
	later(48 * time.Hour)
	h.wantHistory(row, in("expired/ttl")...)
	h.wantHistory(nobody, "out expired/ttl x")
	h.operator("POST", "/dead-letters/replay", "", 202)
	later(time.Hour)
	h.mustSend(short, "c", "1")
	h.wantHistory(short, "out expired/ttl 1")
	h.mustSend(short, "c", "2")
	h.wantHistory(short, "out expired/ttl 1", "out expired/ttl 2") // by when all queues were looked through
	h.wantHistory(row, in("queued")...)
	c := h.attach11(t, row, "ack")
	for range many {
		c.ok(c.nextSent("send").MessageID)
	}
	h.wantHistory(row, in("delivered")...)
	h.wantHistory(nobody, "out queued x")
	later(24 * time.Hour)
	h.wantHistory(nobody, "out expired/ttl x")
}
