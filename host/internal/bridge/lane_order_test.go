package bridge_test

import (
	"testing"
	"time"
)

// A message that finds its conversation's lane empty does not overtake one that
// is on its way to the queue, but not committed yet.
func TestNoneOvertakesTheQueue(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.store.BusyTimeout = time.Minute })
	row := h.channel("q")
	c := h.attach11(t, row, "ack")
	h.mustSend(row, "c", "1")
	first := c.nextSent("send")
	unlock := lockStore(t, h)
	done := make(chan error, 2)
	send := func(text string) {
		go func() {
			_, err := h.send(row, "c", text)
			done <- err
		}()
	}
	send("2") // the lane is taken: it is to be queued
	eventually(t, "2 waits for its commit", func() bool { a, _ := h.hub.Attached(row.Key); return a.Queue == 1 })
	c.ok(first.MessageID) // the lane is empty …
	c.quiet()             // … now
	send("3")
	time.Sleep(50 * time.Millisecond) // that it found the lane empty leaves no trace before its commit
	unlock()
	for range 2 {
		if err := receive(t, "commit", done); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"2", "3"} {
		f := c.nextSent("send")
		if f.Text != want {
			t.Fatalf("came %q, want %q", f.Text, want)
		}
		c.ok(f.MessageID)
	}
	h.wantHistory(row, "out delivered 1", "out delivered 2", "out delivered 3")
}
