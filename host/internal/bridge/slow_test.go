package bridge_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// What one commit brings is not the adapter's fault: it reads as fast as it is
// written to.
func TestBurstIsNotSlowness(t *testing.T) { // not parallel: it counts goroutines
	h := start(t, func(s *setup) { s.store.BusyTimeout = time.Minute })
	row := h.channel("burst")
	c := h.attach(t, row)
	c.works()
	const many = 3 * bridge.MaxParcels
	unlock := lockStore(t, h)
	before := runtime.NumGoroutine()
	taken := make(chan int)
	go func() { taken <- h.burst(row, many, 10) }()
	eventually(t, "all wait for the disk", func() bool { return runtime.NumGoroutine() >= before+many })
	unlock()
	for range many {
		c.mustNext()
	}
	if n := receive(t, "burst", taken); n != many {
		t.Errorf("%d of %d messages were taken", n, many)
	}
	c.works()
}

// An adapter that doesn't read is dropped once too much waits for it; what was
// not written is accounted for, and nobody else waits.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]bool{"no queue": false, "queue": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, func(s *setup) { s.smallBuffer = true })
			row := h.channel("slow", func(c *ledger.Channel) { c.Queue = queue })
			c, other := h.slow(t, row), h.attach(t, h.channel("other"))
			other.works()
			events, end := h.hub.Events.Subscribe()
			defer end()
			const size = 200_000
			taken := 0
			for refused := false; !refused; {
				n := h.burst(row, 10, size)
				pending, err := h.store.CountPending(t.Context(), row.Key)
				if err != nil {
					t.Fatal(err)
				}
				refused = n < 10 || pending > 0
				if taken += n; taken*size > 8*bridge.MaxOutBytes {
					t.Fatal("there is no bound")
				}
			}
			other.works()
			got, code := c.rest()
			// On a machine so slow that a write misses its deadline before the bound is
			// reached, nothing can be said any more: that is 1006.
			if code != 4008 && code != 1006 {
				t.Errorf("closed with %d, want 4008", code)
			}
			if code == 4008 && taken*size < bridge.MaxOutBytes {
				t.Fatalf("dropped after %d messages", taken)
			}
			eventually(t, "detached", func() bool { return !h.attached(row) })
			var want []string
			var left []ledger.Entry
			for _, e := range h.history(row) {
				if e.State == ledger.Sent {
					want = append(want, unasked("c", e.Text))
				} else {
					left = append(left, e)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d messages arrived, %d are sent in history", len(got), len(want))
			}
			if len(left) == 0 || len(want)+len(left) != taken {
				t.Errorf("%d sent and %d not, want %d", len(want), len(left), taken)
			}
			// Each is settled once: nobody tries again while nobody can take it.
			settled := 0
			for len(events) > 0 {
				if e, ok := <-events; !ok {
					t.Fatal("more events than anybody could read")
				} else if e.Type == hub.EventState {
					settled++
				}
			}
			if settled > len(left)+1 {
				t.Errorf("%d changes of state of %d messages", settled, len(left))
			}
			c = h.attach(t, row)
			for _, e := range left {
				if code == 1006 && e.Reason == ledger.ReasonUnknownOutcome { // it was being written
					continue
				}
				if queue {
					c.want(unasked("c", e.Text))
				} else if e.State != ledger.Failed || e.Reason != ledger.ReasonNotAttached {
					t.Errorf("%.60s", line(e))
				}
			}
			c.works()
		})
	}
}

// An adapter that sends but doesn't read is dropped too.
func TestSlowReaderOfAnswers(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.smallBuffer = true })
	row := h.channel("pings")
	c := h.slow(t, row)
	bad := frame(true, opText, `{"type":"`+strings.Repeat("x", 64)+`"}`)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for {
			if _, err := c.tcp.Write(bad); err != nil {
				return
			}
		}
	}()
	eventually(t, "dropped", func() bool { return h.log.count("adapter detached channel=pings") == 1 })
	_ = c.tcp.Close()
	<-stop
	h.attach(t, row).works()
}

// While nothing can be committed the host stops reading, and loses nothing.
func TestBackpressure(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.smallBuffer, s.store.BusyTimeout = true, time.Minute })
	row, other := h.channel("pressure", withAgent(hub.AgentNone)), h.channel("other")
	c, beside := h.slow(t, row), h.attach(t, other)
	// So that its first frame is not committed by its own reader, who would wait with it.
	attached := time.Now()
	eventually(t, "it is no longer lively", func() bool { return time.Since(attached) > bridge.LivelyPause })
	unlock := lockStore(t, h)
	const total = 400
	pad := strings.Repeat("x", 20_000)
	var written atomic.Int64
	done := make(chan error, 1)
	go func() {
		for i := range total {
			if _, err := c.tcp.Write(frame(true, opText, say("c", fmt.Sprint(i, " ", pad)))); err != nil {
				done <- err
				return
			}
			written.Add(1)
		}
		done <- nil
	}()
	var last int64
	since := time.Now()
	eventually(t, "writing stalls", func() bool {
		if n := written.Load(); n != last {
			last, since = n, time.Now()
		}
		return last >= bridge.Window && time.Since(since) > 500*time.Millisecond
	})
	if last == total {
		t.Fatal("every frame was read though none could be kept")
	}
	beside.quiet()
	unlock()
	if err := receive(t, "writer", done); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all are stored", func() bool { return len(h.history(row)) == total })
	for i, e := range h.history(row) {
		if e.Text != fmt.Sprint(i, " ", pad) || e.State != ledger.Handled {
			t.Fatalf("message %d is %.40s", i, line(e))
		}
	}
	c.quiet()
}
