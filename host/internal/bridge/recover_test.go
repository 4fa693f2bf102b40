package bridge_test

import (
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Turns that the host's end cut off are handed over again; answered ones not.
func TestRecover(t *testing.T) {
	t.Parallel()
	slow, quick := newHeld(), newSlowEcho()
	named := agents(map[string]hub.Agent{"held": slow, "slow": quick})
	h := start(t, named)
	row := h.channel("recover", withAgent("held"), withQueue)
	done := h.channel("done", withAgent("slow"))
	c, d := h.attach(t, row), h.attach(t, done)
	d.send(say("c", "answered"))
	d.want(answer("c", "slow: answered"))
	receive(t, "turn", quick.turns)
	c.send(say("a", "first"))
	receive(t, "turn", slow.turns)
	c.send(say("a", "second"), `{"type":"card_action","session_key":"s","conversation_id":"b","user_id":"u","user_name":"U","action":"nav:/x","reply_ctx":1.50}`)
	receive(t, "turn", slow.turns)
	c.send(say("a", "/stop and not asked again")) // answered in its own commit
	c.want(answer("a", "Stopped."))
	_ = receive(t, "end", slow.ended)
	receive(t, "turn", slow.turns) // the second
	eventually(t, "stop is settled", func() bool { return h.history(row)[0].State == ledger.Handled })

	h = h.again(named)
	again := map[string]hub.Turn{}
	for range 2 {
		turn := receive(t, "turn again", slow.turns)
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
	slow.answers <- "late"
	slow.answers <- "late"
	c = h.attach(t, row)
	want := map[string]bool{answer("a", "late"): true, `{"type":"send","session_key":"s","conversation_id":"b","reply_ctx":1.50,"text":"late"}`: true}
	for range 2 {
		if got := c.mustNext(); !want[got] {
			t.Errorf("read %s", got)
		}
	}
	c.send(say("a", "fresh"))
	if turn := receive(t, "turn", slow.turns); turn.Repeated || turn.Message.Text != "fresh" {
		t.Errorf("came as %+v", turn)
	}
	slow.answers <- "done"
	c.want(answer("a", "done"))
	eventually(t, "all are handled", func() bool {
		for _, e := range h.history(row) {
			if e.Direction == ledger.In && e.State != ledger.Handled {
				return false
			}
		}
		return true
	})
	h = h.again(named)
	h.attach(t, row).quiet()
	h.attach(t, done).quiet()
	if len(slow.turns) != 0 || len(quick.turns) != 0 {
		t.Errorf("%d and %d turns were handed over though answered", len(slow.turns), len(quick.turns))
	}
}

// Without a queue, what was cut off waits for its adapter, for a while.
func TestRecoverWaits(t *testing.T) {
	t.Parallel()
	slow := newHeld()
	named := agents(map[string]hub.Agent{"held": slow})
	h := start(t, named)
	back, gone := h.channel("back", withAgent("held")), h.channel("gone", withAgent("held"))
	h.attach(t, back).send(say("c", "of one who comes back"))
	h.attach(t, gone).send(say("c", "of one who does not"))
	receive(t, "turn", slow.turns)
	receive(t, "turn", slow.turns)

	h = h.again(named)
	c := h.attach(t, back)
	if turn := receive(t, "turn again", slow.turns); !turn.Repeated || turn.Message.Text != "of one who comes back" {
		t.Errorf("came as %+v", turn)
	}
	slow.answers <- "in time"
	c.want(answer("c", "in time"))
	h.wantHistory(back, "in handled of one who comes back", "out sent in time")
	if len(slow.turns) != 0 {
		t.Error("a turn was handed over before its adapter was back")
	}
	if hub.RecoverGrace != 30*time.Second {
		t.Errorf("default = %s", hub.RecoverGrace)
	}

	h = h.again(named, func(s *setup) { s.grace = time.Millisecond })
	if turn := receive(t, "turn again", slow.turns); !turn.Repeated || turn.Message.Text != "of one who does not" {
		t.Errorf("came as %+v", turn)
	}
	slow.answers <- "too late"
	h.wantHistory(gone, "in handled of one who does not", "out failed/adapter_not_attached too late")
}
