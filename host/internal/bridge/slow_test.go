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
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// What one commit brings is not the adapter's fault: it reads as fast as it is
// written to.
func TestBurstIsNotSlowness(t *testing.T) { // not parallel: it counts goroutines
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.Store.BusyTimeout = time.Minute })
	row := h.Channel("burst")
	c := h.Attach(t, row)
	c.Works()
	const many = 3 * bridge.MaxParcels
	unlock := hosttest.LockStore(t, h.Dir)
	before := runtime.NumGoroutine()
	taken := make(chan int)
	go func() { taken <- h.Burst(row, many, 10) }()
	// Some of those before may be on their way out.
	await.Until(t, "nearly all wait for the disk", func() bool { return runtime.NumGoroutine() >= before+many-bridge.MaxParcels/2 })
	unlock()
	for range many {
		c.MustNext()
	}
	if n := await.Value(t, "burst", taken); n != many {
		t.Errorf("%d of %d messages were taken", n, many)
	}
	c.Works()
}

// An adapter that doesn't read is dropped once too much waits for it; what was
// not written is accounted for, and nobody else waits.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]bool{"no queue": false, "queue": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hosttest.Start(t, func(s *hosttest.Setup) { s.SmallBuffer = true })
			row := h.Channel("slow", func(c *ledger.Channel) { c.Queue = queue })
			c, other := h.AttachSmall(t, row), h.Attach(t, h.Channel("other"))
			other.Works()
			events, end := h.Hub.Events.Subscribe()
			defer end()
			const size = 200_000
			taken := 0
			for refused := false; !refused; {
				n := h.Burst(row, 10, size)
				pending, err := h.Store.CountPending(t.Context(), row.Key)
				if err != nil {
					t.Fatal(err)
				}
				refused = n < 10 || pending > 0
				if taken += n; taken*size > 8*bridge.MaxOutBytes {
					t.Fatal("there is no bound")
				}
			}
			other.Works()
			got, code := c.Rest()
			// On a machine so slow that a write misses its deadline before the bound is
			// reached, nothing can be said any more: that is 1006.
			if code != 4008 && code != 1006 {
				t.Errorf("closed with %d, want 4008", code)
			}
			if code == 4008 && taken*size < bridge.MaxOutBytes {
				t.Fatalf("dropped after %d messages", taken)
			}
			await.Until(t, "detached", func() bool { return !h.Attached(row) })
			// What was being written when the deadline passed may have arrived or not.
			written := func(e ledger.Entry) bool { return code == 1006 && e.Reason == ledger.ReasonUnknownOutcome }
			var want []string
			var left []ledger.Entry
			await.UntilElse(t, func() bool { // what was not written is settled by commits of its own
				want, left = nil, nil
				for _, e := range h.History(row) {
					if e.State == ledger.Sent || written(e) && slices.Contains(got, hosttest.Unasked("c", e.Text)) {
						want = append(want, hosttest.Unasked("c", e.Text))
					} else {
						left = append(left, e)
					}
				}
				return slices.Equal(got, want)
			}, func() string { return fmt.Sprintf("%d messages arrived, %d are sent in history", len(got), len(want)) })
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
			c = h.Attach(t, row)
			for _, e := range left {
				if written(e) {
					continue
				}
				if queue {
					c.Want(hosttest.Unasked("c", e.Text))
				} else if e.State != ledger.Failed || e.Reason != ledger.ReasonNotAttached {
					t.Errorf("%.60s", hosttest.Line(e))
				}
			}
			c.Works()
		})
	}
}

// An adapter that sends but doesn't read is dropped too.
func TestSlowReaderOfAnswers(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.SmallBuffer = true })
	row := h.Channel("pings")
	c := h.AttachSmall(t, row)
	bad := hosttest.RawFrame(true, hosttest.OpText, `{"type":"`+strings.Repeat("x", 64)+`"}`)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for {
			if _, err := c.TCP.Write(bad); err != nil {
				return
			}
		}
	}()
	await.Until(t, "dropped", func() bool { return h.Log.Count("adapter detached channel=pings") == 1 })
	_ = c.TCP.Close()
	await.Value(t, "its writes fail", stop)
	h.Attach(t, row).Works()
}

// While nothing can be committed the host stops reading, and loses nothing.
func TestBackpressure(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.SmallBuffer, s.Store.BusyTimeout = true, time.Minute })
	row, other := h.Channel("pressure", hosttest.WithAgent(hub.AgentNone)), h.Channel("other")
	c, beside := h.AttachSmall(t, row), h.Attach(t, other)
	// So that its first frame is not committed by its own reader, who would wait with it.
	attached := time.Now()
	await.Until(t, "it is no longer lively", func() bool { return time.Since(attached) > bridge.LivelyPause })
	unlock := hosttest.LockStore(t, h.Dir)
	const total = 400
	pad := strings.Repeat("x", 20_000)
	var written atomic.Int64
	done := make(chan error, 1)
	go func() {
		for i := range total {
			if _, err := c.TCP.Write(hosttest.RawFrame(true, hosttest.OpText, hosttest.Say("c", fmt.Sprint(i, " ", pad)))); err != nil {
				done <- err
				return
			}
			written.Add(1)
		}
		done <- nil
	}()
	var last int64
	since := time.Now()
	await.Until(t, "writing stalls", func() bool {
		if n := written.Load(); n != last {
			last, since = n, time.Now()
		}
		return last >= bridge.Window && time.Since(since) > 500*time.Millisecond
	})
	if last == total {
		t.Fatal("every frame was read though none could be kept")
	}
	beside.Quiet()
	unlock()
	if err := await.Value(t, "writer", done); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "all are stored", func() bool { return len(h.History(row)) == total })
	for i, e := range h.History(row) {
		if e.Text != fmt.Sprint(i, " ", pad) || e.State != ledger.Handled {
			t.Fatalf("message %d is %.40s", i, hosttest.Line(e))
		}
	}
	c.Quiet()
}
