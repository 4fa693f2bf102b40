package bridge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/torture"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// racer is one connection of the takeover race, and what it saw.
type racer struct {
	taken []string   // its questions that the host acknowledged
	got   []received // in the order of its socket
	code  int        // that it was closed with
}

type received struct{ conversation, id string }

// Connections with the same token replace each other all the time, while
// messages flow both ways. One stays; what was acknowledged is kept once, and
// what is sent goes to one connection after the other, never back.
func TestTortureTakeover(t *testing.T) {
	t.Parallel()
	const atOnce, senders = 8, 4
	total := torture.Times(150, 2000)
	h := hosttest.Start(t)
	row := h.Channel("race", hosttest.WithQueue)
	racers := make([]*racer, total)
	var next atomic.Int64
	var racing, sending sync.WaitGroup
	for range atOnce {
		racing.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= total {
					return
				}
				racers[i] = race(t, h, row, i)
				time.Sleep(rand.N(20 * time.Millisecond)) // else nobody is there long enough to be sent anything
			}
		})
	}
	over := make(chan struct{})
	for s := range senders {
		sending.Go(func() {
			for n := range total { // a slow machine races for longer, and must not send more for it
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
				if _, err := h.Send(row, fmt.Sprint("out", s), fmt.Sprint(n)); err != nil {
					t.Errorf("send: %v", err)
					return
				}
			}
		})
	}
	defer func() { // also when it fails
		next.Store(int64(total))
		h.Stop()
		racing.Wait()
	}()
	for attached := 0; attached < total; {
		before := attached
		await.Until(t, "another one attaches", func() bool {
			attached = h.Log.Count("adapter attached") + h.Log.Count("adapter refused")
			return attached > before
		})
	}
	close(over)
	sending.Wait()
	settles(t, h, row)
	await.Until(t, "all but one have ended", func() bool { return h.Log.Count("adapter detached")+h.Log.Count("adapter refused") == total-1 })
	if !h.Attached(row) {
		t.Error("nobody is attached")
	}
	log := h.History(row)                           // a deleted channel's is swept
	h.Operator("DELETE", "/channels/race", "", 204) // ends the one that stayed
	racing.Wait()
	judgeRace(t, log, racers)
}

// race is one connection from register to its end.
func race(t *testing.T, h *hosttest.Host, row ledger.Channel, i int) *racer {
	r := &racer{}
	c, err := hosttest.DialAt(t, h.Addr, hosttest.Credentials{}, false)
	if err != nil {
		t.Error(err)
		return r
	}
	defer func() { _ = c.WS.Close() }()
	write := func(frame string) { // fails once the connection is replaced, which reading tells
		_ = c.WS.WriteMessage(websocket.TextMessage, []byte(frame))
	}
	write(hosttest.RegisterFrame11(row, "ack"))
	for n := range 3 {
		write(fmt.Sprintf(`{"type":"message","conversation_id":"in%d","user_id":"u","text":"%d","message_id":"%d-%d"}`, i, n, i, n))
	}
	for {
		frame, err := c.Next()
		var closed *websocket.CloseError
		if errors.As(err, &closed) {
			r.code = closed.Code
		}
		if err != nil {
			return r
		}
		var f hosttest.Sent
		if err := json.Unmarshal([]byte(frame), &f); err != nil {
			t.Errorf("read %.100s: %v", frame, err)
		}
		switch f.Type {
		case "message_ack":
			if !strings.Contains(frame, `"ok":false`) {
				r.taken = append(r.taken, f.MessageID)
			}
		case "send":
			r.got = append(r.got, received{f.ConversationID, f.MessageID})
			write(hosttest.AckFrame(f.MessageID))
		}
	}
}

// settles waits until nothing of the channel is on its way, for as long as there
// is progress: each message is two syncs of a disk that other tests keep busy.
func settles(t *testing.T, h *hosttest.Host, row ledger.Channel) {
	t.Helper()
	for left := unsettled(h, row); left > 0; {
		before := left
		await.Until(t, "more is settled", func() bool { left = unsettled(h, row); return left < before })
	}
}

// unsettled counts what of the channel is on its way.
func unsettled(h *hosttest.Host, row ledger.Channel) (n int) {
	for _, e := range h.History(row) {
		if e.State != ledger.Delivered && e.State != ledger.Handled {
			n++
		}
	}
	return n
}

func judgeRace(t *testing.T, log []ledger.Entry, racers []*racer) {
	kept, places, lengths := map[string]int{}, map[received]int{}, map[string]int{}
	for _, e := range log {
		if e.Direction == ledger.In {
			kept[e.PlatformID]++
			continue
		}
		places[received{e.Conversation, e.ID.String()}] = lengths[e.Conversation]
		lengths[e.Conversation]++
	}
	report := torture.Row{Fault: "takeover race, adapters with `ack`"}
	replaced := 0
	for _, r := range racers {
		for _, id := range r.taken {
			if kept[id] == 0 {
				report.Lost++
			}
		}
		if r.code == 4001 {
			replaced++
		}
	}
	for _, n := range kept {
		report.Duplicated += n - 1
	}
	if replaced != len(racers)-1 {
		t.Errorf("%d of %d were closed with 4001", replaced, len(racers))
	}
	stays, disordered := staysOf(racers, places)
	report.Disordered += disordered
	for conversation, n := range lengths {
		lost, repeated := handedOn(stays[conversation], n)
		report.Lost += lost
		report.Duplicated += repeated
	}
	report.Disordered += crossed(slices.Collect(maps.Values(stays)))
	report.Tried = fmt.Sprintf("%d connections with one token, %d messages", len(racers), len(log))
	torture.Report(t, report)
}

// stay is what one connection got of a conversation: places in its order.
type stay struct{ racer, first, last int }

// staysOf finds them, by conversation. On one connection a conversation's
// messages follow each other without gap or repeat.
func staysOf(racers []*racer, places map[received]int) (stays map[string][]stay, disordered int) {
	stays = map[string][]stay{}
	for i, r := range racers {
		mine := map[string]*stay{}
		for _, g := range r.got {
			at, known := places[g]
			s := mine[g.conversation]
			switch {
			case !known:
				disordered++
			case s == nil:
				mine[g.conversation] = &stay{i, at, at}
			case at != s.last+1:
				disordered++
			default:
				s.last = at
			}
		}
		for conversation, s := range mine {
			stays[conversation] = append(stays[conversation], *s)
		}
	}
	for _, all := range stays {
		slices.SortFunc(all, func(a, b stay) int { return 2*(a.first-b.first) + (a.last - b.last) })
	}
	return stays, disordered
}

// handedOn counts what no connection got, and what came again though more than
// it had been sent before: of a connection that is replaced only the newest
// message of a conversation may go to the next one too.
func handedOn(stays []stay, n int) (lost, repeated int) {
	last := -1
	for _, s := range stays {
		lost += max(0, s.first-last-1)
		repeated += max(0, last-s.first)
		last = max(last, s.last)
	}
	return lost + n - 1 - last, repeated
}

// crossed counts pairs of connections of which in one conversation the first
// came before the second, and in another one after it.
func crossed(conversations [][]stay) (n int) {
	before := map[[2]int]bool{}
	for _, stays := range conversations {
		for i, a := range stays {
			for _, b := range stays[i+1:] {
				if a.first < b.first || a.last < b.last {
					before[[2]int{a.racer, b.racer}] = true
				}
			}
		}
	}
	for pair := range before {
		if before[[2]int{pair[1], pair[0]}] {
			n++
		}
	}
	return n / 2
}
