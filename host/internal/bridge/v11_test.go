package bridge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// attach11 registers under protocol 1.1.
func (h *host) attach11(t *testing.T, row ledger.Channel, caps string, more ...string) *client {
	t.Helper()
	return h.dial(t, credentials{}).register11(row, caps, more...)
}

func (c *client) register11(row ledger.Channel, caps string, more ...string) *client {
	t := c.t
	t.Helper()
	c.send(registerFrame11(row, caps, more...))
	var ack struct {
		OK           bool
		Protocol     string
		Capabilities []string
	}
	c.read(&ack)
	want := "text"
	if caps != "" {
		set, _ := wire.ParseCapsFor("1.1", strings.Fields(caps))
		want = (set | wire.CapText).String()
	}
	if got := strings.Join(ack.Capabilities, ","); !ack.OK || ack.Protocol != "1.1" || got != want {
		t.Fatalf("acknowledged with %+v, want %s", ack, want)
	}
	return c
}

func registerFrame11(row ledger.Channel, caps string, more ...string) string {
	f := strings.TrimSuffix(registerFrame(tokenOf(row.Name), caps), "}")
	return f + `,"protocol":"1.1"` + strings.Join(append([]string{""}, more...), ",") + `}`
}

// read decodes the next frame into v.
func (c *client) read(v any) {
	c.t.Helper()
	if got := c.mustNext(); json.Unmarshal([]byte(got), v) != nil {
		c.t.Fatalf("read %.300s, which does not fit %T", got, v)
	}
}

// sent is a content frame of the host under 1.1.
type sent struct {
	Type           string
	MessageID      string `json:"message_id"`
	ConversationID string `json:"conversation_id"`
	ReplyCtx       string `json:"reply_ctx"`
	PreviewHandle  string `json:"preview_handle"`
	Text           string
	Parts          json.RawMessage
	UI             json.RawMessage
	Emoji          string
	Remove         bool
	Image          wire.Image
	File           wire.File
	Audio          wire.Audio
}

func (c *client) nextSent(kind string) sent {
	c.t.Helper()
	var f sent
	c.read(&f)
	if f.Type != kind {
		c.t.Fatalf("read %+v, want a %s", f, kind)
	}
	return f
}

func (h *host) last(row ledger.Channel, d ledger.Direction) ledger.Entry {
	h.t.Helper()
	entries := h.history(row)
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Direction == d {
			return entries[i]
		}
	}
	h.t.Fatalf("no message %s", d)
	panic("unreachable")
}

func TestNegotiation(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("n", func(c *ledger.Channel) {
		c.Accept, c.Profile = []string{"buttons", "parts", "stream", "ack"}, ledger.Profile{MaxText: 40, MaxButtons: 3}
	})
	for name, tt := range map[string]struct{ frame, want string }{
		"1.1": {
			registerFrame11(row, "card buttons parts ack telepathy"),
			`{"type":"register_ack","ok":true,"protocol":"1.1","channel":{"id":"` + row.ID + `","name":"n"},"capabilities":["text","buttons","ack","parts"],"limits":{"max_frame_bytes":262144,"ping_interval_ms":54000,"window":64}}`,
		},
		"newer": {
			strings.Replace(registerFrame11(row, ""), `"1.1"`, `"2.7"`, 1),
			`{"type":"register_ack","ok":true,"protocol":"1.1","channel":{"id":"` + row.ID + `","name":"n"},"capabilities":["text"],"limits":{"max_frame_bytes":262144,"ping_interval_ms":54000,"window":64}}`,
		},
		"1.0":     {strings.Replace(registerFrame11(row, "parts"), `"1.1"`, `"1.0"`, 1), ackOK},
		"none":    {registerFrame(tokenOf("n"), "parts", "telepathy"), ackOK},
		"no name": {strings.Replace(registerFrame11(row, "parts"), `"1.1"`, `11`, 1), ackOK},
	} {
		t.Run(name, func(t *testing.T) {
			c := h.dial(t, credentials{})
			c.send(tt.frame)
			c.want(tt.want)
			c.send(say("c", "!caps"))
			if caps := c.nextSent(map[bool]string{true: "send_parts", false: "send"}[name == "1.1"]).Text; !strings.HasPrefix(caps, "caps: text") {
				t.Errorf("answered %q", caps)
			}
		})
	}

	// What does not count is shown to the operator; so is who said what.
	c := h.dial(t, credentials{})
	c.send(registerFrame11(row, "card ack parts telepathy", `"profile":{"max_text":20,"markdown":"basic"}`))
	c.mustNext()
	got, _ := h.hub.Attached(row.Key)
	if fmt.Sprint(got.Declared, " ", got.Unknown, " ", got.Effective, " ", got.Protocol) != "[card ack parts telepathy] [telepathy] text,ack,parts 1.1" {
		t.Errorf("shown as %+v", got)
	}
	bad := h.dial(t, credentials{})
	bad.send(registerFrame11(row, "", `"profile":{"max_text":"long"}`))
	bad.want(ackFailed(wire.RefusedFirstFrame))
}

// The operator's profile goes before the adapter's, field by field.
func TestProfileOf11(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("p", func(c *ledger.Channel) { c.Profile = ledger.Profile{MaxText: 12} })
	c := h.attach11(t, row, "buttons", `"profile":{"max_text":5,"max_buttons":2}`)
	h.mustSend(row, "c", "twelve runes and more")
	first, second := c.nextSent("send"), c.nextSent("send")
	if first.Text != "twelve runes" || second.Text != "and more" || second.MessageID != first.MessageID+"/2" {
		t.Errorf("cut into %+v and %+v", first, second)
	}
	h.operator("POST", "/channels/p/messages", `{"conversation_id":"c","text":"Pick","buttons":[[{"text":"a","value":"a"},{"text":"b","value":"b"},{"text":"c","value":"c"}]]}`, 202)
	if f := c.nextSent("send"); f.Text != "Pick\n[a] [b]" {
		t.Errorf("three buttons of two came as %+v", f)
	}
}

// The ids are those of REST; a card has its keys in lower case only.
func TestIdentity(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("i")
	c := h.attach11(t, row, "card")
	c.send(say("c", "!card"))
	got := c.mustNext()
	id := h.last(row, ledger.Out).ID.String()
	if !strings.Contains(got, `"message_id":"`+id+`"`) || strings.Contains(got, `"Content"`) || !strings.Contains(got, `"content"`) {
		t.Errorf("message %s came as %s", id, got)
	}
}

// A message that the platform sends twice is kept and answered once, also
// after a restart.
func TestRepeatedMessage(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("r", withQueue)
	twice := `{"type":"message","conversation_id":"c","text":"once","message_id":"tg-1"}`
	c := h.attach11(t, row, "")
	c.send(twice, twice)
	if f := c.nextSent("send"); f.Text != "echo: once" {
		t.Errorf("answered %+v", f)
	}
	h = h.again()
	c = h.attach11(t, row, "")
	c.send(twice)
	c.quiet()
	h.wantHistory(row, "in handled once", "out sent echo: once")

	old := h.channel("old") // protocol 1.0 knows no ids
	c = h.attach(t, old)
	c.send(twice, twice)
	h.wantHistory(old, "in handled once", "out sent echo: once", "in handled once", "out sent echo: once")
}

func TestPartsBothWays(t *testing.T) {
	t.Parallel()
	seen := newHeld()
	h := start(t, agents(map[string]hub.Agent{"held": seen}))
	row := h.channel("p", withAgent("held"))
	c := h.attach11(t, row, "parts buttons")
	parts := `[{"type":"text","text":"Hello"},{"type":"hologram","x":12345678901234567890},{"type":"vision","kind":"sideways","mimeType":"image/png","url":"https://x.example/a.png","path":"/etc/passwd","PATH":"/etc/passwd","Url":"file:///etc/passwd"}]`
	c.send(`{"type":"message","conversation_id":"c","parts":` + parts + `}`)
	turn := receive(t, "turn", seen.turns)
	kept := `[{"type":"text","text":"Hello","id":"p1"},{"type":"hologram","x":12345678901234567890,"id":"p2"},{"type":"vision","kind":"sideways","mimeType":"image/png","url":"https://x.example/a.png","id":"p3"}]`
	if got := string(message.AppendParts(nil, turn.Message.Parts)); got != kept || turn.Message.Text != "Hello" {
		t.Errorf("the agent got %q with %s, want %s", turn.Message.Text, got, kept)
	}
	e := h.last(row, ledger.In)
	if string(e.Parts) != kept || !strings.Contains(string(e.Meta), `"field":"path"`) || !strings.Contains(string(e.Meta), `"field":"kind"`) {
		t.Errorf("kept as %s with %s", e.Parts, e.Meta)
	}
	seen.answers <- "seen"
	f := c.nextSent("send_parts")
	if f.Text != "seen" || string(f.Parts) != `[{"type":"text","text":"seen","id":"p1"}]` || f.MessageID != h.last(row, ledger.Out).ID.String() {
		t.Errorf("answered %+v", f)
	}

	// Text and parts that differ: parts count, the text is kept.
	c.send(`{"type":"message","conversation_id":"c","text":"given","parts":[{"type":"text","text":"meant"}]}`)
	if turn = receive(t, "turn", seen.turns); turn.Message.Text != "meant" || turn.Message.Meta.String(message.MetaText) != "given" {
		t.Errorf("the agent got %+v", turn.Message)
	}
	seen.answers <- ""
	for frame, named := range map[string]string{
		`{"type":"message","message_id":"m1","parts":[{"type":"text"},1]}`:                                                     "parts[1]: found a number",
		`{"type":"message","message_id":"m1","parts":[]}`:                                                                      "text: absent",
		`{"type":"message","message_id":"m1","parts":[` + strings.Repeat(`{"type":"text","text":""},`, 100) + `{"type":"x"}]}`: "101 parts",
		`{"type":"message","message_id":"m1","attachments":[{"attachment_id":"agent-files/x"}]}`:                               "attachments[0].attachment_id",
		`{"type":"message","message_id":"m1","attachments":[{"url":"file:///etc/passwd"}]}`:                                    "attachments[0].url",
		`{"type":"reaction","message_id":"m1","emoji":"x"}`:                                                                    "reaction",
	} {
		c.send(frame)
		var e errorFrame
		if c.read(&e); e.Ref == nil || *e.Ref != "m1" || !strings.Contains(e.Message, named) {
			t.Errorf("%.80s: answered %+v, want %q named", frame, e, named)
		}
	}
	if n := len(h.history(row)); n != 3 {
		t.Errorf("%d messages kept", n)
	}
}

// Edits, deletions and reactions are kept with what they are about; nobody
// answers them, and answers still go where they went.
func TestAside(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("a", func(c *ledger.Channel) { c.Users = []string{"u"} })
	c := h.attach11(t, row, "reaction delete_message")
	c.send(`{"type":"message","session_key":"k","conversation_id":"c","user_id":"u","text":"helo","message_id":"tg-1","reply_ctx":"r"}`)
	c.nextSent("send")
	id := h.history(row)[0].ID.String()
	c.send(
		`{"type":"message_edit","user_id":"u","message_id":"tg-1","text":"hello"}`,
		`{"type":"reaction","user_id":"u","message_id":"tg-1","emoji":"👍"}`,
		`{"type":"reaction","user_id":"u","conversation_id":"d","message_id":"tg-9","emoji":"👍","remove":true}`,
		`{"type":"reaction","user_id":"stranger","message_id":"tg-1","emoji":"👎"}`,
		`{"type":"message_delete","user_id":"u","message_id":"tg-1"}`,
	)
	c.quiet()
	h.wantHistory(row, "in handled helo", "out sent echo: helo", "in handled hello", "in handled 👍", "in handled 👍", "in failed/rejected ", "in handled ")
	entries := h.history(row)
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
		h.mustSend(row, "c", "unasked")
		if f := c.nextSent("send"); f.ReplyCtx != "r" {
			t.Errorf("went to %+v", f)
		}
		h = h.again()
		c = h.attach11(t, row, "reaction delete_message")
	}
}

func TestFormSubmit(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("f")
	c := h.attach11(t, row, "form")
	c.send(say("c", "!form"))
	if f := c.nextSent("send_form"); !strings.Contains(string(f.UI), `"uiId":"echo-form"`) {
		t.Errorf("came as %s", f.UI)
	}
	c.send(`{"type":"form_submit","session_key":"k","conversation_id":"c","user_id":"u","ui_id":"echo-form","values":{"name":"<Ann>","agree":true,"colours":["red","blue"]},"message_id":"tg-2","reply_ctx":"r"}`)
	if f := c.nextSent("send"); f.Text != "echo: agree: true\ncolours: red, blue\nname: <Ann>" {
		t.Errorf("answered %q", f.Text)
	}
	var parts []map[string]any
	if err := json.Unmarshal(h.last(row, ledger.In).Parts, &parts); err != nil || fmt.Sprint(parts) != "[map[id:p1 type:ui_submit uiId:echo-form values:map[agree:true colours:[red blue] name:<Ann>]]]" {
		t.Errorf("kept as %v, %v", parts, err)
	}
}

// Deletions and reactions of the operator, and what they become for adapters
// that know neither.
func TestActs(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("x")
	c := h.attach11(t, row, "reaction delete_message")
	c.send(`{"type":"message","session_key":"k","conversation_id":"c","text":"hi","message_id":"tg-1","reply_ctx":"r"}`)
	answered := c.nextSent("send").MessageID
	asked := h.history(row)[0].ID.String()
	h.operator("PUT", "/channels/x/messages/"+asked+"/reactions/%F0%9F%91%80", "", 202)
	if f := c.nextSent("send_reaction"); f.MessageID != "tg-1" || f.Emoji != "👀" || f.Remove || f.ConversationID != "c" {
		t.Errorf("came as %+v", f)
	}
	h.operator("DELETE", "/channels/x/messages/"+asked+"/reactions/%F0%9F%91%80", "", 202)
	if f := c.nextSent("send_reaction"); f.MessageID != "tg-1" || !f.Remove {
		t.Errorf("came as %+v", f)
	}
	h.operator("DELETE", "/channels/x/messages/"+answered, "", 202)
	if f := c.nextSent("delete_message"); f.MessageID != answered || f.PreviewHandle != "" {
		t.Errorf("came as %+v", f)
	}
	h.operator("DELETE", "/channels/x/messages/0000000000001", "", 404)
	h.operator("PUT", "/channels/x/messages/"+asked+"/reactions/%0A", "", 422)

	old := h.attach(t, row)
	h.operator("DELETE", "/channels/x/messages/"+answered, "", 202)
	h.operator("PUT", "/channels/x/messages/"+asked+"/reactions/x", "", 202)
	old.quiet()
	if e := h.last(row, ledger.Out); !strings.Contains(string(e.Notes), `{"from":"reaction","to":"none"`) || e.State != ledger.Sent {
		t.Errorf("kept as %s with %s", e.State, e.Notes)
	}
}
