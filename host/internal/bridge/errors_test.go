package bridge_test

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

// Every refusal is answered, names its field, and the connection lives on.
func TestErrors(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("errors")
	c := h.Attach(t, row)
	long := strings.Repeat("x", 4097)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct{ name, frame, code, ref, named string }{
		{"text that is no JSON", `hello`, "bad_json", "", "frame"},
		{"cut off", `{"type":"message","message_id":"m1"`, "bad_json", "", "frame"},
		{"empty", ``, "bad_json", "", "empty"},
		{"byte order mark", "\ufeff" + hosttest.Say("c", "x"), "bad_json", "", "byte order mark"},
		{"trailing bytes", hosttest.Say("c", "x") + "x", "bad_json", "", "frame"},
		{"two objects", hosttest.Say("c", "x") + hosttest.Say("c", "y"), "bad_json", "", "frame"},
		{"unknown escape", `{"type":"message","text":"\q"}`, "bad_json", "", "frame"},
		{"control character", "{\"type\":\"message\",\"text\":\"a\nb\"}", "bad_json", "", "frame"},
		{"trailing comma", `{"type":"ping",}`, "bad_json", "", "frame"},

		{"array", `[{"type":"ping"}]`, "not_object", "", "an array"},
		{"string", `"ping"`, "not_object", "", "a string"},
		{"number", ` 5`, "not_object", "", "a number"},
		{"boolean", `true`, "not_object", "", "a boolean"},
		{"null", `null`, "not_object", "", "null"},

		{"unknown type", `{"type":"hello"}`, "unknown_type", "", `"hello"`},
		{"unknown type with id", `{"message_id":"m1","type":"Message"}`, "unknown_type", "m1", `"Message"`},
		{"type of the host", `{"type":"send","text":"x"}`, "unknown_type", "", `"send"`},
		{"empty type", `{"type":""}`, "unknown_type", "", "type"},

		{"no type", `{}`, "missing_field", "", "type"},
		{"type is null", `{"type":null,"message_id":"m1"}`, "missing_field", "m1", "type"},
		{"Type is not type", `{"Type":"message","text":"x"}`, "missing_field", "", "type"},
		{"message without text", `{"type":"message","message_id":"m1"}`, "missing_field", "m1", "text"},
		{"Text is not text", `{"type":"message","Text":"x"}`, "missing_field", "", "text"},
		{"card_action without action", `{"type":"card_action","text":"x","message_id":"m1"}`, "missing_field", "m1", "action"},

		{"type is a number", `{"type":5}`, "wrong_type", "", "type"},
		{"text is a number", `{"type":"message","text":5,"message_id":"m1"}`, "wrong_type", "m1", "text"},
		{"text is null", `{"type":"message","text":null}`, "wrong_type", "", "text"},
		{"text is an object", `{"type":"message","text":{"x":1}}`, "wrong_type", "", "text"},
		{"action is a boolean", `{"type":"card_action","action":true}`, "wrong_type", "", "action"},
		{"action is null", `{"type":"card_action","action":null}`, "wrong_type", "", "action"},
		{"session_key is a number", `{"type":"message","text":"x","session_key":1,"message_id":"m1"}`, "wrong_type", "m1", "session_key"},
		{"conversation_id is a number", `{"type":"message","text":"x","conversation_id":42}`, "wrong_type", "", "conversation_id"},
		{"user_id is an array", `{"type":"message","text":"x","user_id":[]}`, "wrong_type", "", "user_id"},
		{"user_name is false", `{"type":"card_action","action":"x","user_name":false}`, "wrong_type", "", "user_name"},
		{"an id that is none is no ref", `{"type":"message","text":5,"message_id":7}`, "wrong_type", "", "text"},

		{"too deep", `{"type":"message","text":"x","reply_ctx":` + deep(10_001) + `}`, "too_deep", "", "10000"},
		{"too deep behind an id", `{"message_id":"m1","type":"message","text":"x","reply_ctx":` + deep(10_001) + `}`, "too_deep", "m1", "10000"},
		{"too deep before an id", `{"type":"message","text":"x","reply_ctx":` + deep(10_001) + `, "message_id" : "m\u0031" }`, "too_deep", "m1", "10000"},
		{"too deep with an id within", `{"type":"ping","x":{"message_id":"m1","x":` + deep(10_001) + `}}`, "too_deep", "", "10000"},
		{"too deep with an id that is none", `{"message_id":7,"type":"ping","x":` + deep(10_001) + `}`, "too_deep", "", "10000"},
		{"too deep with two ids", `{"message_id":"m0","x":` + deep(10_001) + `,"message_id":"m1"}`, "too_deep", "m1", "10000"},
		{"too deep and cut off", `{"message_id":"m1","x":` + deep(10_001), "too_deep", "", "10000"},
		{"too deep where nobody looks", `{"type":"ping","x":` + deep(10_001) + `}`, "too_deep", "", "10000"},

		{"session_key too long", `{"type":"message","text":"x","session_key":"` + long + `","message_id":"m1"}`, "too_large", "m1", "session_key"},
		{"conversation_id too long", `{"type":"message","text":"x","conversation_id":"` + long + `"}`, "too_large", "", "conversation_id"},
		{"user_id too long", `{"type":"message","text":"x","user_id":"` + long + `"}`, "too_large", "", "user_id"},
		{"user_name too long", `{"type":"card_action","action":"x","user_name":"` + long + `"}`, "too_large", "", "user_name"},
		{"an id too long is no ref", `{"type":"message","text":5,"message_id":"` + long + `"}`, "wrong_type", "", "text"},
		{"too long in bytes, not letters", `{"type":"message","text":"x","user_id":"` + strings.Repeat("ü", 2049) + `"}`, "too_large", "", "4096"},

		{"message_ack", `{"type":"message_ack","message_id":"m1","ok":true}`, "not_supported", "m1", "message_ack"},
		{"reaction", `{"type":"reaction","emoji":"x"}`, "not_supported", "", "reaction"},
		{"message_delete", `{"type":"message_delete","message_id":"m1"}`, "not_supported", "m1", "message_delete"},
		{"message_edit", `{"type":"message_edit","text":"x"}`, "not_supported", "", "message_edit"},
		{"form_submit", `{"type":"form_submit"}`, "not_supported", "", "form_submit"},
		{"upload", `{"type":"upload"}`, "not_supported", "", "upload"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.Send(tt.frame)
			c.WantError(tt.code, tt.ref, tt.named)
			c.Quiet()
		})
	}
	if n := len(h.History(row)); n != 0 {
		t.Errorf("%d messages are stored, want none", n)
	}
	t.Run("just within", func(t *testing.T) {
		id := long[1:]
		c.Send(`{"type":"message","text":"x","session_key":"` + id + `","conversation_id":"` + id + `","user_id":"` + id + `","user_name":"` + id + `","message_id":"` + id + `"}`)
		c.Want(`{"type":"send","session_key":"` + id + `","conversation_id":"` + id + `","reply_ctx":null,"text":"echo: x"}`)
		c.Send(`{"type":"message","text":"x","conversation_id":"c","reply_ctx":` + deep(9_999) + `}`)
		c.Want(`{"type":"send","session_key":"","conversation_id":"c","reply_ctx":` + deep(9_999) + `,"text":"echo: x"}`)
	})
}

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
		slow.Answers <- "done"
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
	for name, reason := range map[string]string{"handle": "unknown_outcome", "fails": "unknown_outcome"} {
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
