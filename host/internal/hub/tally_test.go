package hub_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// tallyOf is what the hub counted of a channel.
func tallyOf(h *hosttest.Host, row ledger.Channel) hub.ChannelTally {
	h.T.Helper()
	for _, t := range h.Hub.Tallies() {
		if t.Key == row.Key {
			return t
		}
	}
	h.T.Fatalf("channel %s is not counted", row.Name)
	return hub.ChannelTally{}
}

// wantOutcomes compares what was counted: those that are not named are 0.
func wantOutcomes(h *hosttest.Host, row ledger.Channel, want map[hub.Outcome]uint64) {
	h.T.Helper()
	var got hub.ChannelTally
	await.UntilElse(h.T, func() bool {
		got = tallyOf(h, row)
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
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.TTL = 2 * time.Second })
	plain := h.Channel("plain", func(c *ledger.Channel) { c.Users = []string{"u"} })
	c := h.Attach11(t, plain, "")
	c.Send(`{"type":"message","conversation_id":"c","user_id":"u","text":"hi","message_id":"1"}`)
	c.NextSent("send")
	c.Send(`{"type":"message","conversation_id":"c","user_id":"u","text":"hi","message_id":"1"}`) // again
	c.Send(`{"type":"message","conversation_id":"c","user_id":"stranger","text":"no"}`)
	wantOutcomes(h, plain, map[hub.Outcome]uint64{
		{Direction: ledger.Out, State: ledger.Sent}:                                 1,
		{Direction: ledger.In, State: ledger.Failed, Reason: ledger.ReasonRejected}: 1,
	})
	got := tallyOf(h, plain)
	if got.Received != 2 || got.Sent != 1 || got.Refused != 0 || got.Latency.Total() != 1 || !got.Attached || got.Queue != 0 {
		t.Errorf("plain: %+v", got)
	}

	acks := h.Channel("acks", hosttest.WithQueue)
	a := h.Attach11(t, acks, "ack")
	for _, answer := range []string{"", `"error":"no"`, `"error":"lost","ambiguous":true`} {
		h.MustSend(acks, "c", "text "+answer)
		id := a.NextSent("send").MessageID
		if got := tallyOf(h, acks); got.Flights != 1 {
			t.Errorf("%d in flight", got.Flights)
		}
		if answer == "" {
			a.OK(id)
		} else {
			a.OK(id, answer)
		}
	}
	want := map[hub.Outcome]uint64{
		{Direction: ledger.Out, State: ledger.Delivered}:                                   1,
		{Direction: ledger.Out, State: ledger.Failed, Reason: ledger.ReasonRejected}:       1,
		{Direction: ledger.Out, State: ledger.Failed, Reason: ledger.ReasonUnknownOutcome}: 1,
	}
	wantOutcomes(h, acks, want)
	if got := tallyOf(h, acks); got.Latency.Total() != 1 || got.Sent != 3 {
		t.Errorf("acks: %+v", got)
	}

	// What waits is seen, and what has waited for too long is counted.
	_ = a.WS.Close()
	await.Until(t, "the adapter goes", func() bool { return !h.Attached(acks) })
	h.MustSend(acks, "c", "old")
	if got := tallyOf(h, acks); got.Queue != 1 || got.Peak != 1 || got.Attached {
		t.Errorf("waiting: %+v", got)
	}
	id, err := h.Store.OldestQueued(t.Context(), acks.Key)
	if err != nil || id == 0 {
		t.Errorf("oldest queued %v, %v", id, err)
	}
	want[hub.Outcome{Direction: ledger.Out, State: ledger.Expired, Reason: ledger.ReasonTTL}] = 1
	wantOutcomes(h, acks, want)
	if id, err := h.Store.OldestQueued(t.Context(), acks.Key); err != nil || id != 0 {
		t.Errorf("oldest queued %v, %v, want none", id, err)
	}
	dead, err := h.Store.CountDead(t.Context())
	if err != nil || !dead.Whole || dead.ByChannel()[acks.Key] != 3 || dead.ByChannel()[plain.Key] != 0 {
		t.Errorf("dead letters %v, %v", dead, err)
	}
	peaks := func() int {
		for _, t := range h.Hub.TakePeaks() {
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
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.Rate = 1 })
	row := h.Channel("r", hosttest.WithAgent("none"))
	c := h.Attach(t, row)
	c.Send(hosttest.Say("c", "1"), hosttest.Say("c", "2"), hosttest.Say("c", "3"))
	await.Until(t, "the third is over the rate", func() bool { return tallyOf(h, row).Limited >= 1 })
}

// TestAgentTally: how turns end, how long they take and when the first text comes.
func TestAgentTally(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	h := hosttest.Start(t, func(o *hosttest.Setup) {
		o.Agents["streams"], o.Agents["fails"] = s, hosttest.Failing{Err: errors.New("no")}
		o.Retry = time.Hour
	})
	row := h.Channel("s", hosttest.WithAgent("streams"))
	c := h.Attach11(t, row, "stream")
	of := func(name string) (one hub.AgentCounts) {
		for _, a := range h.Hub.AgentTallies() {
			if a.Name == name {
				return a
			}
		}
		return hub.AgentCounts{}
	}
	c.Send(hosttest.Say("c", "hi"))
	answered := make(chan struct{})
	s.does(t, func(ctx context.Context, r hub.Reply) error {
		defer close(answered)
		if n := of("streams").Active; n != 1 {
			t.Errorf("%d turns are active", n)
		}
		r.Stream("he")
		r.Stream("hello")
		_, err := r.Send(ctx, message.Text("hello"))
		return err
	})
	await.Value(t, "answer", answered)
	s.over(t)
	await.Until(t, "the turn is counted", func() bool { return of("streams").Turns[0] == 1 })
	if a := of("streams"); a.Active != 0 || a.Took.Total() != 1 || a.First.Total() != 1 || a.Turns != [4]uint64{1} {
		t.Errorf("streams: %+v", a)
	}
	// The whole answer is what counts as late, not its beginning.
	await.Until(t, "its delivery is timed", func() bool { return tallyOf(h, row).Latency.Total() == 1 })

	bad := h.Channel("bad", hosttest.WithAgent("fails"))
	b := h.Attach(t, bad)
	b.Send(hosttest.Say("c", "hi"))
	await.Until(t, "the failure is counted", func() bool { return of("fails").Turns[1] == 1 })
	wantOutcomes(h, bad, map[hub.Outcome]uint64{
		{Direction: ledger.Out, State: ledger.Sent}:                                    1, // the apology
		{Direction: ledger.In, State: ledger.Failed, Reason: ledger.ReasonAgentFailed}: 1,
	})
}
