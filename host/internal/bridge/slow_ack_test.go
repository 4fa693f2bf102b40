package bridge_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/torture"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// An adapter with ack that does not read, or a byte now and then, is closed;
// what it was sent comes again when it is back, and a neighbour notices nothing.
func TestTortureSlowReader(t *testing.T) {
	t.Parallel()
	patient := hosttest.Start(t, func(s *hosttest.Setup) { s.SmallBuffer = true })
	impatient := hosttest.Start(t, func(s *hosttest.Setup) { s.SmallBuffer, s.Ack = true, time.Second })
	report := torture.Row{Fault: "adapter with `ack` that does not read"}
	rounds := torture.Times(1, 10)
	ways := []slowWay{
		{"no-byte-of-much", 100, 200_000, 0}, // more than twice MaxOutBytes: as much may be on its way into the socket as waits
		{"nothing-of-little", 10, 100, 0},
	}
	if torture.Long() { // ends by the deadline of a write, 10 s
		ways = append(ways, slowWay{"a-byte-now-and-then", 60, 200_000, 200 * time.Millisecond})
	}
	var mu sync.Mutex
	t.Run("ways", func(t *testing.T) {
		for i := range rounds {
			for _, way := range ways {
				h := patient
				if way.size < hosttest.SmallBuffer { // fits the socket: the acknowledgements are what is missing
					h = impatient
				}
				t.Run(way.name, func(t *testing.T) {
					t.Parallel()
					r := slowReader(t, h, fmt.Sprint(way.name, i), way)
					mu.Lock()
					defer mu.Unlock()
					report.Lost += r.Lost
					report.Duplicated += r.Duplicated
					report.Disordered += r.Disordered
					report.Recovery = append(report.Recovery, r.Recovery...)
				})
			}
		}
	})
	report.Tried = fmt.Sprintf("%d adapters, each with a neighbour", rounds*len(ways))
	torture.Report(t, report)
}

type slowWay struct {
	name          string
	conversations int
	size          int           // bytes of a message
	byteEvery     time.Duration // 0 = it reads nothing at all
}

func slowReader(t *testing.T, h *hosttest.Host, name string, way slowWay) (r torture.Row) {
	row, beside := h.Channel(name, hosttest.WithQueue), h.Channel("beside-"+name, hosttest.WithQueue)
	c, err := hosttest.DialAt(t, h.Addr, hosttest.Credentials{}, true)
	if err != nil {
		t.Fatal(err)
	}
	c.Register11(row, "ack")
	neighbour := h.Attach11(t, beside, "ack")
	const each = 2 // messages of a conversation: one is in flight
	more := 0      // conversations with one message
	pad := strings.Repeat("x", way.size)
	began := time.Now()
	for n := range each {
		for conv := range way.conversations {
			if n == 0 && conv == way.conversations-5 && way.size > hosttest.SmallBuffer && way.byteEvery == 0 {
				await.Until(t, "more waits than may, for longer than it may", func() bool { // so that one is put back
					h.MustSend(row, fmt.Sprint("more", more), "0 more")
					more++
					waiting, err := h.Store.CountPending(t.Context(), row.Key)
					if err != nil {
						t.Fatal(err)
					}
					return waiting > 0
				})
			}
			h.MustSend(row, fmt.Sprint(conv), fmt.Sprint(n, " ", pad))
			if conv%10 != 0 {
				continue
			}
			h.MustSend(beside, "n", fmt.Sprint(conv))
			f := neighbour.NextSent("send")
			if neighbour.OK(f.MessageID); f.Text != fmt.Sprint(conv) {
				r.Disordered++
			}
		}
		if way.byteEvery > 0 {
			_ = c.TCP.SetReadDeadline(time.Now().Add(await.Limit))
			for range 3 {
				if _, err := c.TCP.Read(make([]byte, 1)); err != nil {
					t.Error(err)
				}
				time.Sleep(way.byteEvery)
			}
		}
	}
	if way.byteEvery == 0 { // else it has lost the frames' borders
		// 1006: the machine was so slow that a write had missed its deadline, which
		// leaves no place for a close frame.
		if _, code := c.Rest(); code != 4008 && code != 1006 {
			t.Errorf("closed with %d, want 4008", code)
		}
	}
	await.Until(t, "it is closed", func() bool { return !h.Attached(row) })
	r.Recovery = append(r.Recovery, time.Since(began))
	if got := h.Log.Count("adapter detached channel=" + name + " "); got != 1 || h.Log.Count("adapter detached channel=beside-"+name+" ") != 0 {
		t.Errorf("%d ends of the slow one, and the neighbour's", got)
	}

	c = h.Attach11(t, row, "ack")
	got := map[string]int{}
	for range each*way.conversations + more {
		f := c.NextSent("send")
		if n := got[f.ConversationID]; !strings.HasPrefix(f.Text, fmt.Sprint(n, " ")) {
			r.Disordered++
		}
		got[f.ConversationID]++
		c.OK(f.MessageID)
	}
	c.Quiet()
	for conv := range way.conversations {
		r.Lost += max(0, each-got[fmt.Sprint(conv)])
		r.Duplicated += max(0, got[fmt.Sprint(conv)]-each)
	}
	for conv := range more {
		r.Lost += max(0, 1-got[fmt.Sprint("more", conv)])
		r.Duplicated += max(0, got[fmt.Sprint("more", conv)]-1)
	}
	settles(t, h, row)
	settles(t, h, beside)
	if n := len(h.History(row)); n != each*way.conversations+more {
		t.Errorf("%d messages are kept", n)
	}
	neighbour.Quiet()
	return r
}
