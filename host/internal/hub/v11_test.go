package hub_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// The ids are those of REST; a card has its keys in lower case only.
func TestIdentity(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("i")
	c := h.Attach11(t, row, "card")
	c.Send(hosttest.Say("c", "!card"))
	got := c.MustNext()
	id := h.Last(row, ledger.Out).ID.String()
	if !strings.Contains(got, `"message_id":"`+id+`"`) || strings.Contains(got, `"Content"`) || !strings.Contains(got, `"content"`) {
		t.Errorf("message %s came as %s", id, got)
	}
}

// A message that the platform sends twice is kept and answered once, also
// after a restart.
func TestRepeatedMessage(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("r", hosttest.WithQueue)
	twice := `{"type":"message","conversation_id":"c","text":"once","message_id":"tg-1"}`
	c := h.Attach11(t, row, "")
	c.Send(twice, twice)
	if f := c.NextSent("send"); f.Text != "echo: once" {
		t.Errorf("answered %+v", f)
	}
	h = h.Again()
	c = h.Attach11(t, row, "")
	c.Send(twice)
	c.Quiet()
	h.WantHistory(row, "in handled once", "out sent echo: once")

	old := h.Channel("old") // protocol 1.0 knows no ids
	c = h.Attach(t, old)
	c.Send(twice, twice)
	h.WantHistory(old, "in handled once", "out sent echo: once", "in handled once", "out sent echo: once")
}

func TestPartsBothWays(t *testing.T) {
	t.Parallel()
	seen := hosttest.NewHeld()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"held": seen}))
	row := h.Channel("p", hosttest.WithAgent("held"))
	c := h.Attach11(t, row, "parts buttons")
	parts := `[{"type":"text","text":"Hello"},{"type":"hologram","x":12345678901234567890},{"type":"vision","kind":"sideways","mimeType":"image/png","url":"https://x.example/a.png","path":"/etc/passwd","PATH":"/etc/passwd","Url":"file:///etc/passwd"}]`
	c.Send(`{"type":"message","conversation_id":"c","parts":` + parts + `}`)
	turn := await.Value(t, "turn", seen.Turns)
	kept := `[{"type":"text","text":"Hello","id":"p1"},{"type":"hologram","x":12345678901234567890,"id":"p2"},{"type":"vision","kind":"sideways","mimeType":"image/png","url":"https://x.example/a.png","id":"p3"}]`
	if got := string(message.AppendParts(nil, turn.Message.Parts)); got != kept || turn.Message.Text != "Hello" {
		t.Errorf("the agent got %q with %s, want %s", turn.Message.Text, got, kept)
	}
	e := h.Last(row, ledger.In)
	if string(e.Parts) != kept || !strings.Contains(string(e.Meta), `"field":"path"`) || !strings.Contains(string(e.Meta), `"field":"kind"`) {
		t.Errorf("kept as %s with %s", e.Parts, e.Meta)
	}
	seen.Answer(t, "seen")
	f := c.NextSent("send_parts")
	if f.Text != "seen" || string(f.Parts) != `[{"type":"text","text":"seen","id":"p1"}]` || f.MessageID != h.Last(row, ledger.Out).ID.String() {
		t.Errorf("answered %+v", f)
	}

	// Text and parts that differ: parts count, the text is kept.
	c.Send(`{"type":"message","conversation_id":"c","text":"given","parts":[{"type":"text","text":"meant"}]}`)
	if turn = await.Value(t, "turn", seen.Turns); turn.Message.Text != "meant" || turn.Message.Meta.String(message.MetaText) != "given" {
		t.Errorf("the agent got %+v", turn.Message)
	}
	seen.Answer(t, "")
	for frame, named := range map[string]string{
		`{"type":"message","message_id":"m1","parts":[{"type":"text"},1]}`:                                                     "parts[1]: found a number",
		`{"type":"message","message_id":"m1","parts":[]}`:                                                                      "text: absent",
		`{"type":"message","message_id":"m1","parts":[` + strings.Repeat(`{"type":"text","text":""},`, 100) + `{"type":"x"}]}`: "101 parts",
		`{"type":"message","message_id":"m1","attachments":[{"attachment_id":"agent-files/x"}]}`:                               "attachments[0].attachment_id",
		`{"type":"message","message_id":"m1","attachments":[{"url":"file:///etc/passwd"}]}`:                                    "attachments[0].url",
		`{"type":"reaction","message_id":"m1","emoji":"x"}`:                                                                    "reaction",
	} {
		c.Send(frame)
		var e struct {
			Message string
			Ref     *string
		}
		if c.Read(&e); e.Ref == nil || *e.Ref != "m1" || !strings.Contains(e.Message, named) {
			t.Errorf("%.80s: answered %+v, want %q named", frame, e, named)
		}
	}
	if n := len(h.History(row)); n != 3 {
		t.Errorf("%d messages kept", n)
	}
}

// Edits, deletions and reactions are kept with what they are about; nobody
// answers them, and answers still go where they went.
func TestAside(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("a", func(c *ledger.Channel) { c.Users = []string{"u"} })
	c := h.Attach11(t, row, "reaction delete_message")
	c.Send(`{"type":"message","session_key":"k","conversation_id":"c","user_id":"u","text":"helo","message_id":"tg-1","reply_ctx":"r"}`)
	c.NextSent("send")
	id := h.History(row)[0].ID.String()
	c.Send(
		`{"type":"message_edit","user_id":"u","message_id":"tg-1","text":"hello"}`,
		`{"type":"reaction","user_id":"u","message_id":"tg-1","emoji":"👍"}`,
		`{"type":"reaction","user_id":"u","conversation_id":"d","message_id":"tg-9","emoji":"👍","remove":true}`,
		`{"type":"reaction","user_id":"stranger","message_id":"tg-1","emoji":"👎"}`,
		`{"type":"message_delete","user_id":"u","message_id":"tg-1"}`,
	)
	c.Quiet()
	h.WantHistory(row, "in handled helo", "out sent echo: helo", "in handled hello", "in handled 👍", "in handled 👍", "in failed/rejected ", "in handled ")
	entries := h.History(row)
	for i, want := range map[int]string{
		2: `{"edits":"` + id + `","platform_id":"tg-1"}`,
		3: `{"platform_id":"tg-1","reaction":"👍","reacts_to":"` + id + `"}`,
		4: `{"platform_id":"tg-9","reaction":"👍","reacts_to":"","removed":true}`,
		6: `{"deletes":"` + id + `","platform_id":"tg-1"}`,
	} {
		if got := string(entries[i].Meta); got != want {
			t.Errorf("message %d has %s, want %s", i, got, want)
		}
		if in := entries[i].Conversation; in != map[bool]string{true: "d", false: "c"}[i == 4] || entries[i].Turn != 0 {
			t.Errorf("message %d is in conversation %q, turn %d", i, in, entries[i].Turn)
		}
	}
	for range 2 { // remembered, and read again
		h.MustSend(row, "c", "unasked")
		if f := c.NextSent("send"); f.ReplyCtx != "r" {
			t.Errorf("went to %+v", f)
		}
		h = h.Again()
		c = h.Attach11(t, row, "reaction delete_message")
	}
}

func TestFormSubmit(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("f")
	c := h.Attach11(t, row, "form")
	c.Send(hosttest.Say("c", "!form"))
	if f := c.NextSent("send_form"); !strings.Contains(string(f.UI), `"uiId":"echo-form"`) {
		t.Errorf("came as %s", f.UI)
	}
	c.Send(`{"type":"form_submit","session_key":"k","conversation_id":"c","user_id":"u","ui_id":"echo-form","values":{"name":"<Ann>","agree":true,"colours":["red","blue"]},"message_id":"tg-2","reply_ctx":"r"}`)
	if f := c.NextSent("send"); f.Text != "echo: agree: true\ncolours: red, blue\nname: <Ann>" {
		t.Errorf("answered %q", f.Text)
	}
	var parts []map[string]any
	if err := json.Unmarshal(h.Last(row, ledger.In).Parts, &parts); err != nil || fmt.Sprint(parts) != "[map[id:p1 type:ui_submit uiId:echo-form values:map[agree:true colours:[red blue] name:<Ann>]]]" {
		t.Errorf("kept as %v, %v", parts, err)
	}
}

// Deletions and reactions of the operator, and what they become for adapters
// that know neither.
func TestActs(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("x")
	c := h.Attach11(t, row, "reaction delete_message")
	c.Send(`{"type":"message","session_key":"k","conversation_id":"c","text":"hi","message_id":"tg-1","reply_ctx":"r"}`)
	answered := c.NextSent("send").MessageID
	asked := h.History(row)[0].ID.String()
	h.Operator("PUT", "/channels/x/messages/"+asked+"/reactions/%F0%9F%91%80", "", 202)
	if f := c.NextSent("send_reaction"); f.MessageID != "tg-1" || f.Emoji != "👀" || f.Remove || f.ConversationID != "c" {
		t.Errorf("came as %+v", f)
	}
	h.Operator("DELETE", "/channels/x/messages/"+asked+"/reactions/%F0%9F%91%80", "", 202)
	if f := c.NextSent("send_reaction"); f.MessageID != "tg-1" || !f.Remove {
		t.Errorf("came as %+v", f)
	}
	h.Operator("DELETE", "/channels/x/messages/"+answered, "", 202)
	if f := c.NextSent("delete_message"); f.MessageID != answered || f.PreviewHandle != "" {
		t.Errorf("came as %+v", f)
	}
	h.Operator("DELETE", "/channels/x/messages/0000000000001", "", 404)
	h.Operator("PUT", "/channels/x/messages/"+asked+"/reactions/%0A", "", 422)

	old := h.Attach(t, row)
	h.Operator("DELETE", "/channels/x/messages/"+answered, "", 202)
	h.Operator("PUT", "/channels/x/messages/"+asked+"/reactions/x", "", 202)
	old.Quiet()
	if e := h.Last(row, ledger.Out); !strings.Contains(string(e.Notes), `{"from":"reaction","to":"none"`) || e.State != ledger.Sent {
		t.Errorf("kept as %s with %s", e.State, e.Notes)
	}
}

// A message of an operator that begins a conversation is of its first turn.
func TestFirstTurnOfAnOperator(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("turns", hosttest.WithAgent("none"))
	h.Attach(t, row)
	events, end := h.Hub.Events.Subscribe()
	defer end()
	h.MustSend(row, "c", "hello")
	for {
		e := await.Value(t, "event", events)
		if e.Type != hub.EventCreated {
			continue
		}
		if e.Message.Turn != 0 {
			t.Errorf("turn %d is published", e.Message.Turn)
		}
		break
	}
	if e := h.Last(row, ledger.Out); e.Turn != 0 {
		t.Errorf("turn %d is kept", e.Turn)
	}
}
