package bridge_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// lastAck is what the channel's health says of the last acknowledgement; nil = none.
func (h *host) lastAck(name string) *time.Time {
	h.t.Helper()
	var c struct {
		Health struct {
			LastAckAt *time.Time `json:"last_ack_at"`
		}
	}
	if status, answer := h.ask("GET", "/channels/"+name, ""); status != 200 || json.Unmarshal([]byte(answer), &c) != nil {
		h.t.Fatalf("channel %s: %d %s", name, status, answer)
	}
	return c.Health.LastAckAt
}

// When an adapter last confirmed a message is known after a restart too.
func TestLastAckOutlivesTheHost(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("acked")
	plain := h.channel("plain")
	c := h.attach11(t, row, "ack")
	if at := h.lastAck("acked"); at != nil {
		t.Errorf("acknowledged at %s, before anything was sent", at)
	}
	h.mustSend(row, "c", "one")
	c.ok(c.nextSent("send").MessageID)
	eventually(t, "delivered", func() bool { return h.last(row, ledger.Out).State == ledger.Delivered })
	h.mustSend(row, "c", "two") // on its way when the host stops
	c.nextSent("send")
	p := h.attach(t, plain)
	p.works()
	before := h.lastAck("acked")
	if before == nil {
		t.Fatal("not acknowledged")
	}

	h = h.again()
	after := h.lastAck("acked")
	if after == nil || after.Sub(*before).Abs() > time.Minute {
		t.Errorf("acknowledged at %v, after a restart at %v", before, after)
	}
	if at := h.lastAck("plain"); at != nil {
		t.Errorf("an adapter of 1.0 acknowledged at %s", at)
	}
}

// A text that is there counts, also an empty one.
func TestSendEmptyText(t *testing.T) {
	t.Parallel()
	h := start(t)
	c := h.attach(t, h.channel("empty"))
	h.operator("POST", "/channels/empty/messages", `{"conversation_id":"c","text":""}`, 202)
	c.want(`{"type":"send","session_key":"","conversation_id":"c","reply_ctx":null,"text":""}`)
	h.operator("POST", "/channels/empty/messages", `{"conversation_id":"c"}`, 422)
	c.quiet()
}

var threeDecimals = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// Times have the same form everywhere, whatever the clock says.
func TestTimesOfTheAPI(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		at := time.Date(2026, 1, 2, 3, 4, 57, 80_000_000, time.UTC) // .08
		s.store.Now = func() time.Time { return at }
	})
	row := h.channel("times")
	c := h.attach(t, row)
	c.works()
	for _, path := range []string{"/channels", "/channels/times/messages", "/channels/times/conversations", "/adapters", "/audit", "/messages/" + h.last(row, ledger.In).ID.String()} {
		status, answer := h.ask("GET", path, "")
		if status != 200 {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
		found := 0
		for _, m := range regexp.MustCompile(`"(\w+)":"(\d{4}-\d\d-\d\dT[^"]*)"`).FindAllStringSubmatch(answer, -1) {
			if found++; !threeDecimals.MatchString(m[2]) {
				t.Errorf("%s: %s is %s", path, m[1], m[2])
			}
		}
		if found == 0 {
			t.Errorf("%s has no time: %s", path, answer)
		}
	}
}

// A message of an operator that begins a conversation is of its first turn.
func TestFirstTurnOfAnOperator(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("turns", withAgent("none"))
	h.attach(t, row)
	events, end := h.hub.Events.Subscribe()
	defer end()
	h.mustSend(row, "c", "hello")
	for {
		e := receive(t, "event", events)
		if e.Type != hub.EventCreated {
			continue
		}
		if e.Message.Turn != 0 {
			t.Errorf("turn %d is published", e.Message.Turn)
		}
		break
	}
	if e := h.last(row, ledger.Out); e.Turn != 0 {
		t.Errorf("turn %d is kept", e.Turn)
	}
}

// What strangers say can't be replayed, and the answer says why.
func TestReplayOfAStranger(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("few", func(c *ledger.Channel) { c.Users = []string{"bob"} })
	c := h.attach(t, row)
	c.send(`{"type":"message","conversation_id":"c","user_id":"eve","text":"let me in"}`)
	eventually(t, "refused", func() bool { return len(h.history(row)) == 1 })
	id := h.last(row, ledger.In).ID.String()
	status, answer := h.ask("POST", "/dead-letters/"+id+"/replay", "")
	if status != 409 || !strings.Contains(answer, "allow_users") || !strings.Contains(answer, "no dead letter") || strings.Contains(answer, "neither failed") {
		t.Errorf("%d %s", status, answer)
	}
	if _, answer := h.ask("GET", "/dead-letters", ""); strings.Contains(answer, id) {
		t.Errorf("listed: %s", answer)
	}
}
