package hub_test

import (
	"fmt"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// replyContexts are JSON values whose bytes must come back as they were.
var replyContexts = map[string]string{
	"string":              `"wx-msg-001"`,
	"escapes":             `"\u0041\/\n\ud83c\udf09é"`,
	"lone surrogate":      `"\ud800"`,
	"empty string":        `""`,
	"beyond 2^53":         `9007199254740993`,
	"beyond any integer":  `123456789012345678901234567890`,
	"trailing zero":       `1.50`,
	"exponent":            `1E+2`,
	"minus zero":          `-0`,
	"beyond any float":    `1e400`,
	"true":                `true`,
	"false":               `false`,
	"null":                `null`,
	"empty object":        `{}`,
	"empty array":         `[]`,
	"odd spacing":         "{ \"b\" :\t[ 1 ,2.0,\n{ } ], \"a\":null }",
	"equal keys":          `{"a":1,"a":2}`,
	"html":                `"<a href='x'>&amp;</a>"`,
	"separators":          "\"\u2028\u2029\"",
	"object like a frame": `{"type":"ping","reply_ctx":1}`,
}

func TestReplyCtx(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"slow": hosttest.NewSlowEcho()}))
	for _, agent := range []string{"echo", "slow"} {
		row := h.Channel(agent, hosttest.WithAgent(agent))
		c := h.Attach(t, row, hosttest.AllCaps)
		for name, ctx := range replyContexts {
			t.Run(agent+" "+name, func(t *testing.T) {
				routing := `"session_key":"a:b:c","conversation_id":` + hosttest.Quote(name) + `,"reply_ctx":` + ctx
				c.Send(`{"type":"message",` + routing + `,"text":"x"}`)
				c.Want(`{"type":"send",` + routing + `,"text":"` + agent + `: x"}`)
				c.Send(`{ "reply_ctx" : ` + ctx + ` , "type":"card_action","session_key":"a:b:c","conversation_id":` + hosttest.Quote(name) + `,"action":"cmd:/notify"}`)
				c.Want(`{"type":"send",` + routing + `,"text":"Notices are on. Use /notify on or /notify off."}`)
				h.MustSend(row, name, "unasked")
				c.Want(`{"type":"send",` + routing + `,"text":"unasked"}`)
			})
		}
		t.Run(agent+" absent", func(t *testing.T) {
			c.Send(`{"type":"message","conversation_id":"absent","text":"x"}`)
			c.Want(`{"type":"send","session_key":"","conversation_id":"absent","reply_ctx":null,"text":"` + agent + `: x"}`)
		})
	}
}

// The bytes survive the database: of an answer that waited, and of the
// conversation's latest.
func TestReplyCtxStored(t *testing.T) {
	t.Parallel()
	slow := hosttest.NewHeld()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"held": slow}))
	row := h.Channel("stored", hosttest.WithAgent("held"), hosttest.WithQueue)
	c := h.Attach(t, row)
	for name, ctx := range replyContexts {
		c.Send(`{"type":"message","session_key":"k","conversation_id":` + hosttest.Quote(name) + `,"reply_ctx":` + ctx + `,"text":"x"}`)
		await.Value(t, "turn", slow.Turns)
	}
	_ = c.WS.Close()
	await.Until(t, "detached", func() bool { return !h.Attached(row) })
	for range replyContexts {
		slow.Answer(t, "a")
	}
	await.Until(t, "answers wait", func() bool {
		n, err := h.Store.CountPending(t.Context(), row.Key)
		return err == nil && n == int64(len(replyContexts))
	})
	h = h.Again(hosttest.WithAgents(map[string]hub.Agent{"held": slow}))
	c = h.Attach(t, row)
	want := map[string]bool{}
	for name, ctx := range replyContexts {
		want[`{"type":"send","session_key":"k","conversation_id":`+hosttest.Quote(name)+`,"reply_ctx":`+ctx+`,"text":"a"}`] = true
	}
	for range replyContexts {
		if got := c.MustNext(); !want[got] {
			t.Errorf("read %s", got)
		} else {
			delete(want, got)
		}
	}
	for name, ctx := range replyContexts {
		h.MustSend(row, name, "unasked")
		c.Want(`{"type":"send","session_key":"k","conversation_id":` + hosttest.Quote(name) + `,"reply_ctx":` + ctx + `,"text":"unasked"}`)
	}
}

// Several people's messages are in flight in one conversation: each answer
// carries the routing of its own question.
func TestRoutingInFlight(t *testing.T) {
	t.Parallel()
	slow := hosttest.NewHeld()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"held": slow}))
	routing := func(i int) string {
		return fmt.Sprintf(`"session_key":"p:room:u%d","conversation_id":"room","reply_ctx":{"msg": %d.0}`, i%3, i)
	}
	question := func(i int) string {
		return fmt.Sprintf(`{"type":"message",%s,"user_id":"u%d","user_name":"User %d","text":"q%d"}`, routing(i), i%3, i%3, i)
	}
	t.Run("answered at once", func(t *testing.T) {
		c := h.Attach(t, h.Channel("at-once"))
		var want []string
		for i := range 100 {
			c.Send(question(i))
			want = append(want, fmt.Sprintf(`{"type":"send",%s,"text":"echo: q%d"}`, routing(i), i))
		}
		c.Want(want...)
	})
	t.Run("answered later", func(t *testing.T) {
		row := h.Channel("later", hosttest.WithAgent("held"))
		c := h.Attach(t, row)
		for i := range 5 {
			c.Send(question(i))
		}
		c.Send(`{"type":"message",` + routing(9) + `,"user_id":"u9","text":"/agent nobody"}`)
		if got := c.MustNext(); got[:len(`{"type":"send",`+routing(9))] != `{"type":"send",`+routing(9) {
			t.Errorf("read %s", got)
		}
		for i := range 5 {
			turn := await.Value(t, "turn", slow.Turns)
			if turn.Message.Text != fmt.Sprintf("q%d", i) || turn.UserID != fmt.Sprintf("u%d", i%3) || turn.UserName != fmt.Sprintf("User %d", i%3) ||
				turn.Conversation != "room" || turn.Channel != "later" || turn.Repeated {
				t.Errorf("turn %d = %+v", i, turn)
			}
			slow.Answer(t, fmt.Sprintf("a%d", i))
			c.Want(fmt.Sprintf(`{"type":"send",%s,"text":"a%d"}`, routing(i), i))
			// Nobody's question: the latest's routing.
			h.MustSend(row, "room", "unasked")
			c.Want(`{"type":"send",` + routing(9) + `,"text":"unasked"}`)
		}
	})
}

func TestConversation(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("conversation")
	c := h.Attach(t, row)
	for name, tt := range map[string]struct{ given, session, effective string }{
		"both":                  {`"session_key":"s","conversation_id":"c"`, "s", "c"},
		"conversation alone":    {`"conversation_id":"c"`, "", "c"},
		"session alone":         {`"session_key":"s"`, "s", "s"},
		"empty conversation":    {`"session_key":"s","conversation_id":""`, "s", "s"},
		"null conversation":     {`"session_key":"s","conversation_id":null`, "s", "s"},
		"neither":               {`"user_id":"u"`, "", ""},
		"both empty":            {`"session_key":"","conversation_id":""`, "", ""},
		"nothing is cleaned up": {`"session_key":" S ","conversation_id":" C\u0000/é "`, " S ", " C\x00/é "},
	} {
		t.Run(name, func(t *testing.T) {
			c.Send(`{"type":"message",` + tt.given + `,"text":"x"}`)
			c.Want(`{"type":"send","session_key":` + hosttest.Quote(tt.session) + `,"conversation_id":` + hosttest.Quote(tt.effective) + `,"reply_ctx":null,"text":"echo: x"}`)
			all := h.History(row)
			if last := all[len(all)-1]; last.Conversation != tt.effective || last.Origin.SessionKey != tt.session {
				t.Errorf("stored in %q with session %q", last.Conversation, last.Origin.SessionKey)
			}
		})
	}
}

// The author is stored as given: the name to show, the id for access.
func TestAuthor(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("author")
	c := h.Attach(t, row)
	c.Send(`{"type":"message","user_id":"u1","user_name":"Alice","text":"x"}`, `{"type":"message","user_id":"u2","text":"y"}`, `{"type":"message","user_name":"Bob","text":"z"}`)
	for range 3 {
		c.MustNext()
	}
	var got []ledger.Origin
	for _, e := range h.History(row) {
		if e.Direction == ledger.In {
			got = append(got, e.Origin)
		}
	}
	for i, want := range []ledger.Origin{{UserID: "u1", UserName: "Alice"}, {UserID: "u2"}, {UserName: "Bob"}} {
		if got[i] != want {
			t.Errorf("origin %d = %+v, want %+v", i, got[i], want)
		}
	}
}
