package hub_test

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// watched tells which texts are on their way to the disk.
type watched struct {
	hub.Ledger
	texts chan<- string
}

func (w watched) Append(u *ledger.Unit, done func(ledger.Result)) {
	var texts []string // the engine fills the rows in
	for _, row := range u.Out {
		texts = append(texts, row.Text)
	}
	w.Ledger.Append(u, done)
	for _, text := range texts {
		w.texts <- text
	}
}

// A message that finds its conversation's lane empty does not overtake one that
// is on its way to the queue, but not committed yet.
func TestNoneOvertakesTheQueue(t *testing.T) {
	t.Parallel()
	planned := make(chan string, 10)
	h := hosttest.Start(t, func(s *hosttest.Setup) {
		s.Store.BusyTimeout = await.Limit
		s.Ledger = func(l hub.Ledger) hub.Ledger { return watched{l, planned} }
	})
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
	for await.Value(t, "3 found the lane empty, and waits for its commit", planned) != "3" {
	}
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
