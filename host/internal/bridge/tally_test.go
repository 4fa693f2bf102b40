package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// tallyOf is what the hub counted of a channel.
func (h *host) tallyOf(row ledger.Channel) hub.ChannelTally {
	h.t.Helper()
	for _, t := range h.hub.Tallies() {
		if t.Key == row.Key {
			return t
		}
	}
	h.t.Fatalf("channel %s is not counted", row.Name)
	return hub.ChannelTally{}
}

// wantOutcomes compares what was counted: those that are not named are 0.
func (h *host) wantOutcomes(row ledger.Channel, want map[hub.Outcome]uint64) {
	h.t.Helper()
	var got hub.ChannelTally
	eventuallyOr(h.t, func() bool {
		got = h.tallyOf(row)
		for i, o := range hub.Outcomes {
			if got.Outcomes[i] != want[o] {
				return false
			}
		}
		return true
	}, func() string {
		text := "counted"
		for i, o := range hub.Outcomes {
			if got.Outcomes[i] != want[o] {
				text += fmt.Sprintf("\n%s %s %s: %d, want %d", o.Direction, o.State, o.Reason, got.Outcomes[i], want[o])
			}
		}
		return text
	})
}

// TestTally: what happens in a channel is counted, once.
func TestTally(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.ttl = 2 * time.Second })
	plain := h.channel("plain", func(c *ledger.Channel) { c.Users = []string{"u"} })
	c := h.attach11(t, plain, "")
	c.send(`{"type":"message","conversation_id":"c","user_id":"u","text":"hi","message_id":"1"}`)
	c.nextSent("send")
	c.send(`{"type":"message","conversation_id":"c","user_id":"u","text":"hi","message_id":"1"}`) // again
	c.send(`{"type":"message","conversation_id":"c","user_id":"stranger","text":"no"}`)
	h.wantOutcomes(plain, map[hub.Outcome]uint64{
		{Direction: ledger.Out, State: ledger.Sent}:                                 1,
		{Direction: ledger.In, State: ledger.Failed, Reason: ledger.ReasonRejected}: 1,
	})
	got := h.tallyOf(plain)
	if got.Received != 2 || got.Sent != 1 || got.Refused != 0 || got.Latency.Total() != 1 || !got.Attached || got.Queue != 0 {
		t.Errorf("plain: %+v", got)
	}

	acks := h.channel("acks", withQueue)
	a := h.attach11(t, acks, "ack")
	for _, answer := range []string{"", `"error":"no"`, `"error":"lost","ambiguous":true`} {
		h.mustSend(acks, "c", "text "+answer)
		id := a.nextSent("send").MessageID
		if got := h.tallyOf(acks); got.Flights != 1 {
			t.Errorf("%d in flight", got.Flights)
		}
		if answer == "" {
			a.ok(id)
		} else {
			a.ok(id, answer)
		}
	}
	want := map[hub.Outcome]uint64{
		{Direction: ledger.Out, State: ledger.Delivered}:                                   1,
		{Direction: ledger.Out, State: ledger.Failed, Reason: ledger.ReasonRejected}:       1,
		{Direction: ledger.Out, State: ledger.Failed, Reason: ledger.ReasonUnknownOutcome}: 1,
	}
	h.wantOutcomes(acks, want)
	if got := h.tallyOf(acks); got.Latency.Total() != 1 || got.Sent != 3 {
		t.Errorf("acks: %+v", got)
	}

	// What waits is seen, and what has waited for too long is counted.
	_ = a.ws.Close()
	eventually(t, "the adapter goes", func() bool { return !h.attached(acks) })
	h.mustSend(acks, "c", "old")
	if got := h.tallyOf(acks); got.Queue != 1 || got.Peak != 1 || got.Attached {
		t.Errorf("waiting: %+v", got)
	}
	id, err := h.store.OldestQueued(t.Context(), acks.Key)
	if err != nil || id == 0 {
		t.Errorf("oldest queued %v, %v", id, err)
	}
	want[hub.Outcome{Direction: ledger.Out, State: ledger.Expired, Reason: ledger.ReasonTTL}] = 1
	h.wantOutcomes(acks, want)
	if id, err := h.store.OldestQueued(t.Context(), acks.Key); err != nil || id != 0 {
		t.Errorf("oldest queued %v, %v, want none", id, err)
	}
	dead, err := h.store.CountDead(t.Context())
	if err != nil || !dead.Whole || dead.ByChannel()[acks.Key] != 3 || dead.ByChannel()[plain.Key] != 0 {
		t.Errorf("dead letters %v, %v", dead, err)
	}
	peaks := func() int {
		for _, t := range h.hub.TakePeaks() {
			if t.Key == acks.Key {
				return t.Peak
			}
		}
		return -1
	}
	if first, second := peaks(), peaks(); first != 1 || second != 0 {
		t.Errorf("peaks %d, then %d", first, second)
	}
}

// TestTallyLimited: frames over the rate are counted.
func TestTallyLimited(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.rate = 1 })
	row := h.channel("r", withAgent("none"))
	c := h.attach(t, row)
	c.send(say("c", "1"), say("c", "2"), say("c", "3"))
	eventually(t, "the third is over the rate", func() bool { return h.tallyOf(row).Limited >= 1 })
}

// TestAgentTally: how turns end, how long they take and when the first text comes.
func TestAgentTally(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	h := start(t, func(o *setup) {
		o.agents["streams"], o.agents["fails"] = s, failing{errors.New("no")}
		o.retry = time.Hour
	})
	row := h.channel("s", withAgent("streams"))
	c := h.attach11(t, row, "stream")
	of := func(name string) (one hub.AgentCounts) {
		for _, a := range h.hub.AgentTallies() {
			if a.Name == name {
				return a
			}
		}
		return hub.AgentCounts{}
	}
	c.send(say("c", "hi"))
	answered := make(chan struct{})
	s.do <- func(ctx context.Context, r hub.Reply) error {
		defer close(answered)
		if n := of("streams").Active; n != 1 {
			t.Errorf("%d turns are active", n)
		}
		r.Stream("he")
		r.Stream("hello")
		_, err := r.Send(ctx, message.Text("hello"))
		return err
	}
	receive(t, "answer", answered)
	s.do <- nil
	eventually(t, "the turn is counted", func() bool { return of("streams").Turns[0] == 1 })
	if a := of("streams"); a.Active != 0 || a.Took.Total() != 1 || a.First.Total() != 1 || a.Turns != [4]uint64{1} {
		t.Errorf("streams: %+v", a)
	}
	// The whole answer is what counts as late, not its beginning.
	eventually(t, "its delivery is timed", func() bool { return h.tallyOf(row).Latency.Total() == 1 })

	bad := h.channel("bad", withAgent("fails"))
	b := h.attach(t, bad)
	b.send(say("c", "hi"))
	eventually(t, "the failure is counted", func() bool { return of("fails").Turns[1] == 1 })
	h.wantOutcomes(bad, map[hub.Outcome]uint64{
		{Direction: ledger.Out, State: ledger.Sent}:                                       1, // the apology
		{Direction: ledger.In, State: ledger.Failed, Reason: ledger.ReasonUnknownOutcome}: 1,
	})
}
