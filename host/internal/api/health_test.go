package api_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// lastAck is what the channel's health says of the last acknowledgement; nil = none.
func lastAck(h *hosttest.Host, name string) *time.Time {
	h.T.Helper()
	var c struct {
		Health struct {
			LastAckAt *time.Time `json:"last_ack_at"`
		}
	}
	if status, answer := h.Ask("GET", "/channels/"+name, ""); status != 200 || json.Unmarshal([]byte(answer), &c) != nil {
		h.T.Fatalf("channel %s: %d %s", name, status, answer)
	}
	return c.Health.LastAckAt
}

// When an adapter last confirmed a message is known after a restart too.
func TestLastAckOutlivesTheHost(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("acked")
	plain := h.Channel("plain")
	c := h.Attach11(t, row, "ack")
	if at := lastAck(h, "acked"); at != nil {
		t.Errorf("acknowledged at %s, before anything was sent", at)
	}
	h.MustSend(row, "c", "one")
	c.OK(c.NextSent("send").MessageID)
	await.Until(t, "delivered", func() bool { return h.Last(row, ledger.Out).State == ledger.Delivered })
	h.MustSend(row, "c", "two") // on its way when the host stops
	c.NextSent("send")
	p := h.Attach(t, plain)
	p.Works()
	before := lastAck(h, "acked")
	if before == nil {
		t.Fatal("not acknowledged")
	}

	h = h.Again()
	after := lastAck(h, "acked")
	if after == nil || after.Sub(*before).Abs() > time.Minute {
		t.Errorf("acknowledged at %v, after a restart at %v", before, after)
	}
	if at := lastAck(h, "plain"); at != nil {
		t.Errorf("an adapter of 1.0 acknowledged at %s", at)
	}
}

// lastSent is what the channel's health says of the last message that was written; nil =
// none.
func lastSent(h *hosttest.Host, name string) *time.Time {
	h.T.Helper()
	var c struct {
		Health struct {
			LastSentAt *time.Time `json:"last_sent_at"`
		}
	}
	h.Must(&c, "GET", "/channels/"+name, "")
	return c.Health.LastSentAt
}

// When a message was last written does not go back with a restart, and what only waits
// was never written.
func TestLastSentOutlivesTheHost(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row, waits := h.Channel("sent", hosttest.WithQueue), h.Channel("waits", hosttest.WithQueue)
	h.MustSend(row, "c", "one") // some time before an adapter comes
	h.MustSend(waits, "c", "one")
	c := h.Attach11(t, row, "ack")
	c.OK(c.NextSent("send").MessageID)
	await.Until(t, "delivered", func() bool { return h.Last(row, ledger.Out).State == ledger.Delivered })
	before := lastSent(h, "sent")
	if before == nil {
		t.Fatal("nothing was sent")
	}

	h = h.Again()
	if after := lastSent(h, "sent"); after == nil || after.Before(*before) || after.Sub(*before) > time.Minute {
		t.Errorf("sent at %v, after a restart at %v", before, after)
	}
	if at := lastSent(h, "waits"); at != nil {
		t.Errorf("what waits was sent at %s", at)
	}
}

// punctual is an agent that says itself that it is there.
type punctual struct{ hosttest.SlowEcho }

func (*punctual) Away() (since time.Time, away bool) { return time.Now(), false }

// Of an agent that is there nothing says since when it is away.
func TestAgentThere(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"there": &punctual{*hosttest.NewSlowEcho()}}))
	h.Channel("served", hosttest.WithAgent("there"))
	if h.AgentAway("served") {
		t.Error("the agent is called away")
	}
}

// A text that is there counts, also an empty one.
func TestSendEmptyText(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	c := h.Attach(t, h.Channel("empty"))
	h.Operator("POST", "/channels/empty/messages", `{"conversation_id":"c","text":""}`, 202)
	c.Want(`{"type":"send","session_key":"","conversation_id":"c","reply_ctx":null,"text":""}`)
	h.Operator("POST", "/channels/empty/messages", `{"conversation_id":"c"}`, 422)
	c.Quiet()
}

var threeDecimals = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// Times have the same form everywhere, whatever the clock says.
func TestTimesOfTheAPI(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) {
		at := time.Date(2026, 1, 2, 3, 4, 57, 80_000_000, time.UTC) // .08
		s.Store.Now = func() time.Time { return at }
	})
	row := h.Channel("times")
	c := h.Attach(t, row)
	c.Works()
	for _, path := range []string{"/channels", "/channels/times/messages", "/channels/times/conversations", "/adapters", "/audit", "/messages/" + h.Last(row, ledger.In).ID.String()} {
		status, answer := h.Ask("GET", path, "")
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

// What strangers say can't be replayed, and the answer says why.
func TestReplayOfAStranger(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("few", func(c *ledger.Channel) { c.Users = []string{"bob"} })
	c := h.Attach(t, row)
	c.Send(`{"type":"message","conversation_id":"c","user_id":"eve","text":"let me in"}`)
	await.Until(t, "refused", func() bool { return len(h.History(row)) == 1 })
	id := h.Last(row, ledger.In).ID.String()
	status, answer := h.Ask("POST", "/dead-letters/"+id+"/replay", "")
	if status != 409 || !strings.Contains(answer, "allow_users") || !strings.Contains(answer, "no dead letter") || strings.Contains(answer, "neither failed") {
		t.Errorf("%d %s", status, answer)
	}
	if _, answer := h.Ask("GET", "/dead-letters", ""); strings.Contains(answer, id) {
		t.Errorf("listed: %s", answer)
	}
}
