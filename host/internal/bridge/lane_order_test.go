package bridge_test

import (
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// A message that finds its conversation's lane empty does not overtake one that
// is on its way to the queue, but not committed yet.
func TestNoneOvertakesTheQueue(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.Store.BusyTimeout = time.Minute })
	row := h.Channel("q")
	c := h.Attach11(t, row, "ack")
	h.MustSend(row, "c", "1")
	first := c.NextSent("send")
	unlock := hosttest.LockStore(t, h.Dir)
	done := make(chan error, 2)
	send := func(text string) {
		go func() {
			_, err := h.Send(row, "c", text)
			done <- err
		}()
	}
	send("2") // the lane is taken: it is to be queued
	await.Until(t, "2 waits for its commit", func() bool { a, _ := h.Hub.Attached(row.Key); return a.Queue == 1 })
	c.OK(first.MessageID) // the lane is empty …
	c.Quiet()             // … now
	send("3")
	time.Sleep(50 * time.Millisecond) // that it found the lane empty leaves no trace before its commit
	unlock()
	for range 2 {
		if err := await.Value(t, "commit", done); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"2", "3"} {
		f := c.NextSent("send")
		if f.Text != want {
			t.Fatalf("came %q, want %q", f.Text, want)
		}
		c.OK(f.MessageID)
	}
	h.WantHistory(row, "out delivered 1", "out delivered 2", "out delivered 3")
}
