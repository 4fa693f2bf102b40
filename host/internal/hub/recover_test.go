package hub_test

import (
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// Turns that the host's end cut off are handed over again; answered ones not.
func TestRecover(t *testing.T) {
	t.Parallel()
	slow, quick := hosttest.NewHeld(), hosttest.NewSlowEcho()
	named := hosttest.WithAgents(map[string]hub.Agent{"held": slow, "slow": quick})
	h := hosttest.Start(t, named)
	row := h.Channel("recover", hosttest.WithAgent("held"), hosttest.WithQueue)
	done := h.Channel("done", hosttest.WithAgent("slow"))
	c, d := h.Attach(t, row), h.Attach(t, done)
	d.Send(hosttest.Say("c", "answered"))
	d.Want(hosttest.Answer("c", "slow: answered"))
	await.Value(t, "turn", quick.Turns)
	c.Send(hosttest.Say("a", "first"))
	await.Value(t, "turn", slow.Turns)
	c.Send(hosttest.Say("a", "second"), `{"type":"card_action","session_key":"s","conversation_id":"b","user_id":"u","user_name":"U","action":"nav:/x","reply_ctx":1.50}`)
	await.Value(t, "turn", slow.Turns)
	c.Send(hosttest.Say("a", "/stop and not asked again")) // answered in its own commit
	c.Want(hosttest.Answer("a", "Stopped."))
	_ = await.Value(t, "end", slow.Ended)
	await.Value(t, "turn", slow.Turns) // the second
	await.Until(t, "stop is settled", func() bool { return h.History(row)[0].State == ledger.Handled })

	h = h.Again(named)
	again := map[string]hub.Turn{}
	for range 2 {
		turn := await.Value(t, "turn again", slow.Turns)
		again[turn.Message.Text] = turn
	}
	for text, want := range map[string]hub.Turn{
		"second": {Conversation: "a", UserID: "u"}, "nav:/x": {Conversation: "b", UserID: "u", UserName: "U"},
	} {
		if got := again[text]; !got.Repeated || got.Conversation != want.Conversation || got.UserID != want.UserID || got.UserName != want.UserName || got.Channel != "recover" {
			t.Errorf("%s came as %+v", text, got)
		}
	}
	if got := again["nav:/x"].Message.Meta.String("action"); got != "nav:/x" {
		t.Errorf("action = %q", got)
	}
	slow.Answer(t, "late")
	slow.Answer(t, "late")
	c = h.Attach(t, row)
	want := map[string]bool{hosttest.Answer("a", "late"): true, `{"type":"send","session_key":"s","conversation_id":"b","reply_ctx":1.50,"text":"late"}`: true}
	for range 2 {
		if got := c.MustNext(); !want[got] {
			t.Errorf("read %s", got)
		}
	}
	c.Send(hosttest.Say("a", "fresh"))
	if turn := await.Value(t, "turn", slow.Turns); turn.Repeated || turn.Message.Text != "fresh" {
		t.Errorf("came as %+v", turn)
	}
	slow.Answer(t, "done")
	c.Want(hosttest.Answer("a", "done"))
	await.Until(t, "all are handled", func() bool {
		for _, e := range h.History(row) {
			if e.Direction == ledger.In && e.State != ledger.Handled {
				return false
			}
		}
		return true
	})
	h = h.Again(named)
	h.Attach(t, row).Quiet()
	h.Attach(t, done).Quiet()
	if len(slow.Turns) != 0 || len(quick.Turns) != 0 {
		t.Errorf("%d and %d turns were handed over though answered", len(slow.Turns), len(quick.Turns))
	}
}

// A host that is killed leaves what it has committed, and hands over again what was
// not answered; what was answered, and what was written, stays.
func TestRecoverAfterKill(t *testing.T) {
	t.Parallel()
	slow := hosttest.NewHeld()
	named := hosttest.WithAgents(map[string]hub.Agent{"held": slow})
	h := hosttest.Start(t, named)
	row := h.Channel("killed", hosttest.WithAgent("held"), hosttest.WithQueue)
	c := h.Attach(t, row)
	c.Send(hosttest.Say("a", "answered"))
	await.Value(t, "turn", slow.Turns)
	slow.Answer(t, "in time")
	c.Want(hosttest.Answer("a", "in time"))
	c.Send(hosttest.Say("a", "open"))
	await.Value(t, "turn", slow.Turns)
	c.Vanish(h, row)
	h.MustSend(row, "a", "waits")

	h = h.Killed(named)
	if turn := await.Value(t, "turn again", slow.Turns); !turn.Repeated || turn.Message.Text != "open" {
		t.Errorf("came as %+v", turn)
	}
	slow.Answer(t, "late")
	h.WantHistory(row, "in handled answered", "out sent in time", "in handled open", "out queued waits", "out queued late")
	h.Attach(t, row).Want(`{"type":"send","session_key":"k","conversation_id":"a","reply_ctx":"r","text":"waits"}`, hosttest.Answer("a", "late"))
	if len(slow.Turns) != 0 {
		t.Error("what was answered was handed over again")
	}
}

// Without a queue, what was cut off waits for its adapter, for a while.
func TestRecoverWaits(t *testing.T) {
	t.Parallel()
	slow := hosttest.NewHeld()
	named := hosttest.WithAgents(map[string]hub.Agent{"held": slow})
	h := hosttest.Start(t, named)
	back, gone := h.Channel("back", hosttest.WithAgent("held")), h.Channel("gone", hosttest.WithAgent("held"))
	h.Attach(t, back).Send(hosttest.Say("c", "of one who comes back"))
	h.Attach(t, gone).Send(hosttest.Say("c", "of one who does not"))
	await.Value(t, "turn", slow.Turns)
	await.Value(t, "turn", slow.Turns)

	h = h.Again(named)
	c := h.Attach(t, back)
	if turn := await.Value(t, "turn again", slow.Turns); !turn.Repeated || turn.Message.Text != "of one who comes back" {
		t.Errorf("came as %+v", turn)
	}
	slow.Answer(t, "in time")
	c.Want(hosttest.Answer("c", "in time"))
	h.WantHistory(back, "in handled of one who comes back", "out sent in time")
	if len(slow.Turns) != 0 {
		t.Error("a turn was handed over before its adapter was back")
	}
	if hub.RecoverGrace != 30*time.Second {
		t.Errorf("default = %s", hub.RecoverGrace)
	}

	h = h.Again(named, func(s *hosttest.Setup) { s.Grace = time.Millisecond })
	if turn := await.Value(t, "turn again", slow.Turns); !turn.Repeated || turn.Message.Text != "of one who does not" {
		t.Errorf("came as %+v", turn)
	}
	slow.Answer(t, "too late")
	h.WantHistory(gone, "in handled of one who does not", "out failed/adapter_not_attached too late")
}
