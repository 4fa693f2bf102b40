package hub_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

func TestRateLimited(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.Rate = 20 })
	row := h.Channel("rate")
	c := h.Attach(t, row)
	var all [][]byte
	for range 50 {
		all = append(all, hosttest.RawFrame(true, hosttest.OpText, `{"type":"ping","message_id":"m1"}`))
	}
	c.Raw(bytes.Join(all, nil))
	pongs, refused := 0, 0
	for range all {
		got := c.MustNext()
		switch {
		case got == `{"type":"pong"}`:
			pongs++
		case strings.HasPrefix(got, `{"type":"error","code":"rate_limited","message":"more than 20 frames a second`) && strings.HasSuffix(got, `"ref":"m1"}`):
			refused++
		default:
			t.Fatalf("read %s", got)
		}
	}
	if pongs < 3 || refused == 0 {
		t.Errorf("%d pongs and %d refusals, want at least 3 and 1", pongs, refused)
	}
	// Coming back does not help, an operator does.
	refusals := func(pings int, text string) {
		t.Helper()
		c := h.Attach(t, row)
		c.Raw(bytes.Join(slices.Repeat(all[:1], pings), nil))
		found := false
		for range pings {
			found = strings.Contains(c.MustNext(), text) || found
		}
		if !found {
			t.Errorf("of %d frames none was refused with %q", pings, text)
		}
	}
	refusals(40, "more than 20 frames a second")
	row.Rate = 100
	h.Hub.Update(row)
	refusals(400, "more than 100 frames a second")
	row.Rate = 0
	h.Hub.Update(row)
	c = h.Attach(t, row)
	// A refused message is not stored; later there is room again.
	await.Until(t, "message is taken", func() bool {
		c.Send(hosttest.Say("c", "again"))
		return c.MustNext() == hosttest.Answer("c", "echo: again")
	})
	h.WantHistory(row, "in handled again", "out sent echo: again")
	if hub.DefaultRate != 20_000 {
		t.Errorf("default = %d", hub.DefaultRate)
	}
}

// A conversation has at most 256 messages that wait for an answer.
func TestRateLimitedByWaitingTurns(t *testing.T) {
	t.Parallel()
	slow := hosttest.NewHeld()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"held": slow}))
	row := h.Channel("waiting", hosttest.WithAgent("held"))
	c := h.Attach(t, row)
	for range 256 {
		c.Send(hosttest.Say("c", "x"))
	}
	c.Send(`{"type":"message","session_key":"k","conversation_id":"c","text":"one too many","message_id":"m257"}`)
	c.WantError("rate_limited", "m257", "256")
	c.Send(hosttest.Say("d", "another conversation"))
	await.Until(t, "258th frame is stored", func() bool { return len(h.History(row)) == 257 })
	await.Value(t, "turn", slow.Turns)
	await.Value(t, "turn", slow.Turns)
	h.Operator("PATCH", "/channels/waiting", `{"agent":"echo"}`, 200)
	for range 2 {
		slow.Answer(t, "done")
	}
	// The rest, in order, by whom the channel is routed to now.
	got := map[string]int{}
	for range 257 {
		got[c.MustNext()]++
	}
	if got[hosttest.Answer("c", "echo: x")] != 255 || got[hosttest.Answer("c", "done")] != 1 || got[hosttest.Answer("d", "done")] != 1 {
		t.Errorf("read %v", got)
	}
}

func TestStorageUnavailable(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.Store.BusyTimeout = 300 * time.Millisecond })
	row := h.Channel("storage")
	c := h.Attach(t, row)
	c.Works()
	unlock := hosttest.LockStore(t, h.Dir)
	c.Send(`{"type":"message","text":"lost","conversation_id":"c","message_id":"m1"}`)
	c.WantError("storage_unavailable", "m1", "again")
	c.Send(`{"type":"card_action","action":"lost","conversation_id":"c"}`)
	c.WantError("storage_unavailable", "", "again")
	c.Send(hosttest.Say("new conversation", "lost"), `{"type":"ping"}`)
	c.Want(`{"type":"pong"}`) // it needs no storage
	c.WantError("storage_unavailable", "", "again")
	if _, err := h.Send(row, "c", "lost"); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("Send = %v, want %v", err, ledger.ErrUnavailable)
	}
	unlock()
	c.Send(hosttest.Say("c", "kept"))
	c.Want(hosttest.Answer("c", "echo: kept"))
	c.Send(hosttest.Say("new conversation", "kept"))
	c.Want(hosttest.Answer("new conversation", "echo: kept"))
	h.WantHistory(row, "in handled does it work?", "out sent echo: does it work?",
		"in handled kept", "out sent echo: kept", "in handled kept", "out sent echo: kept")
}

// panicking panics wherever it is called.
type panicking struct{}

func (a panicking) Handle(context.Context, hub.Turn, hub.Reply) error { panic("agent in Handle") }

// purePanic panics when asked for an answer in the question's commit.
type purePanic struct{ panicking }

func (purePanic) Answer(*hub.Turn) ([]message.Message, bool) { panic("agent in Answer") }

var _ hub.Pure = purePanic{}

func TestAgentPanics(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"pure": purePanic{}, "handle": panicking{}, "fails": hosttest.Failing{Err: errors.New("no idea")}}))
	const sorry = "Sorry, no answer could be made. Please try again."
	t.Run("in Answer", func(t *testing.T) {
		row := h.Channel("pure", hosttest.WithAgent("pure"))
		c := h.Attach(t, row)
		c.Send(`{"type":"message","text":"x","message_id":"m1"}`)
		c.WantError("internal", "m1", "agent")
		c.Send(hosttest.Say("c", "/stop")) // commands go on
		c.Want(hosttest.Answer("c", "Nothing is running."))
		h.WantHistory(row, "in handled /stop", "out sent Nothing is running.")
	})
	for name, reason := range map[string]string{"handle": "agent_failed", "fails": "agent_failed"} {
		t.Run(name, func(t *testing.T) {
			row := h.Channel(name, hosttest.WithAgent(name))
			c := h.Attach(t, row)
			c.Send(hosttest.Say("c", "x"))
			c.Want(hosttest.Answer("c", sorry))
			h.WantHistory(row, "in failed/"+reason+" x", "out sent "+sorry)
			c.Send(hosttest.Say("c", "/notify off"))
			c.Want(hosttest.Answer("c", "Notices are off."))
			c.Send(hosttest.Say("c", "y"))
			h.WantHistory(row, "in failed/"+reason+" x", "out sent "+sorry, "in handled /notify off", "out sent Notices are off.", "in failed/"+reason+" y")
			c.Quiet()
		})
	}
}
