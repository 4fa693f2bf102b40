package bridge_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/store"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// attach11 registers under protocol 1.1.
func (h *host) attach11(t *testing.T, row store.Channel, caps string, more ...string) *client {
	t.Helper()
	c := h.dial(t, credentials{})
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

func registerFrame11(row store.Channel, caps string, more ...string) string {
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

func (h *host) last(row store.Channel, d store.Direction) store.Entry {
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
	row := h.channel("n", func(c *store.Channel) {
		c.Accept, c.Profile = []string{"buttons", "parts", "stream", "ack"}, wire.Profile{MaxText: 40, MaxButtons: 3}
	})
	for name, tt := range map[string]struct{ frame, want string }{
		"1.1": {
			registerFrame11(row, "card buttons parts ack telepathy"),
			`{"type":"register_ack","ok":true,"protocol":"1.1","channel":{"id":"` + row.ID + `","name":"n"},"capabilities":["text","buttons","parts"],"limits":{"max_frame_bytes":262144,"ping_interval_ms":54000,"window":64}}`,
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
	if fmt.Sprint(got.Declared, " ", got.Unknown, " ", got.Effective, " ", got.Protocol) != "[card ack parts telepathy] [telepathy] text,parts 1.1" {
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
	row := h.channel("p", func(c *store.Channel) { c.Profile = wire.Profile{MaxText: 12} })
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
	id := h.last(row, store.Out).ID.String()
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
	parts := `[{"type":"text","text":"Hello"},{"type":"hologram","x":12345678901234567890},{"type":"vision","kind":"sideways","mimeType":"image/png","url":"https://x.example/a.png","path":"/etc/passwd"}]`
	c.send(`{"type":"message","conversation_id":"c","parts":` + parts + `}`)
	turn := receive(t, "turn", seen.turns)
	kept := `[{"type":"text","text":"Hello","id":"p1"},{"type":"hologram","x":12345678901234567890,"id":"p2"},{"type":"vision","kind":"sideways","mimeType":"image/png","url":"https://x.example/a.png","id":"p3"}]`
	if got := string(message.AppendParts(nil, turn.Message.Parts)); got != kept || turn.Message.Text != "Hello" {
		t.Errorf("the agent got %q with %s, want %s", turn.Message.Text, got, kept)
	}
	e := h.last(row, store.In)
	if string(e.Parts) != kept || !strings.Contains(string(e.Meta), `"field":"path"`) || !strings.Contains(string(e.Meta), `"field":"kind"`) {
		t.Errorf("kept as %s with %s", e.Parts, e.Meta)
	}
	seen.answers <- "seen"
	f := c.nextSent("send_parts")
	if f.Text != "seen" || string(f.Parts) != `[{"type":"text","text":"seen","id":"p1"}]` || f.MessageID != h.last(row, store.Out).ID.String() {
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

func pngBytes(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 3))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (h *host) http(method, url string, body []byte) (int, http.Header, []byte) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, got
}

// A file goes to the host by HTTP, to the agent as a part with a fresh url, and
// is kept by its name alone.
func TestUpload(t *testing.T) {
	t.Parallel()
	seen := newHeld()
	h := start(t, agents(map[string]hub.Agent{"held": seen}))
	row, other := h.channel("u", withAgent("held")), h.channel("other", withAgent("held"))
	c := h.attach11(t, row, "parts")
	picture := pngBytes(t)
	c.send(fmt.Sprintf(`{"type":"upload","name":"a.png","mime_type":"image/png","size_bytes":%d,"message_id":"u1"}`, len(picture)))
	var ack wire.UploadAck
	if c.read(&ack); ack.MessageID != "u1" || ack.Error != "" || !strings.HasPrefix(ack.URL, "http://"+h.addr+"/storage/v1/object/sign/agent-files/") || ack.ExpiresAt == "" {
		t.Fatalf("answered %+v", ack)
	}
	early := `{"type":"message","conversation_id":"c","message_id":"m0","attachments":[{"attachment_id":` + quote(ack.AttachmentID) + `}]}`
	c.send(early)
	c.wantError("wrong_type", "m0", "attachments[0].attachment_id")
	if status, _, body := h.http("PUT", ack.URL, picture); status != 201 {
		t.Fatalf("PUT: %d %s", status, body)
	}
	c.send(`{"type":"message","conversation_id":"c","text":"look","attachments":[{"attachment_id":` + quote(ack.AttachmentID) + `,"caption":"A picture"},{"url":"https://x.example/b.pdf","name":"b.pdf","mime_type":"application/pdf"}]}`)
	turn := receive(t, "turn", seen.turns)
	v, err := message.As[message.VisionPart](turn.Message.Parts[1])
	if err != nil || turn.Message.Text != "look" || v.Caption != "A picture" || v.MimeType != "image/png" || len(turn.Message.Parts) != 3 {
		t.Fatalf("the agent got %q, %s, %v", turn.Message.Text, message.AppendParts(nil, turn.Message.Parts), err)
	}
	if status, header, body := h.http("GET", v.URL, nil); status != 200 || header.Get("Content-Type") != "image/png" || !bytes.Equal(body, picture) {
		t.Errorf("GET: %d %v", status, header)
	}
	e := h.last(row, store.In)
	if strings.Contains(string(e.Parts), "token") || strings.Contains(string(e.Parts), h.addr) || !strings.Contains(string(e.Meta), `"user_message_attachments":{"bucket":"agent-files","path":"agent-inputs/`+row.ID) {
		t.Errorf("kept as %s with %s", e.Parts, e.Meta)
	}
	seen.answers <- ""

	// Nobody else's, and not what the host did not sign.
	thief := h.attach11(t, other, "parts")
	thief.send(early)
	thief.wantError("wrong_type", "m0", "attachments[0].attachment_id")
	for _, url := range []string{strings.Replace(v.URL, "token=", "token=x", 1), strings.Split(v.URL, "?")[0], strings.TrimPrefix(strings.Split(v.URL, "?")[0], "http://"+h.addr)} {
		thief.send(`{"type":"message","conversation_id":"c","message_id":"m1","parts":[{"type":"vision","kind":"input","mimeType":"image/png","url":` + quote(url) + `}]}`)
		thief.wantError("wrong_type", "m1", "parts[0].url")
	}
	if n := len(h.history(other)); n != 0 {
		t.Errorf("%d messages kept of the thief", n)
	}
	for frame, named := range map[string]string{
		`{"type":"upload","name":"a","mime_type":"image/png","size_bytes":0}`:                   "bytes",
		`{"type":"upload","name":"a","mime_type":"image/png","size_bytes":9000000000}`:          "too large",
		`{"type":"upload","name":"a","mime_type":"application/x-msdownload","size_bytes":1000}`: "type",
	} {
		c.send(frame)
		var no wire.UploadAck
		if c.read(&no); no.URL != "" || !strings.Contains(no.Error, named) {
			t.Errorf("%s: answered %+v", frame, no)
		}
	}
}

// Sound goes both ways, and is a file or a link where it can't be heard.
func TestAudio(t *testing.T) {
	t.Parallel()
	seen := newHeld()
	h := start(t, agents(map[string]hub.Agent{"held": seen}))
	row := h.channel("a", withAgent("held"))
	sound := `{"conversation_id":"c","parts":[{"type":"audio-output","mimeType":"audio/ogg","status":"completed","durationMs":1500,"url":"https://x.example/a.ogg"}]}`
	c := h.attach11(t, row, "audio")
	h.operator("POST", "/channels/a/messages", sound, 202)
	if f := c.nextSent("send_audio"); f.Audio != (wire.Audio{URL: "https://x.example/a.ogg", MimeType: "audio/ogg", DurationMS: 1500}) {
		t.Errorf("came as %+v", f.Audio)
	}
	c.send(`{"type":"message","conversation_id":"c","attachments":[{"url":"https://x.example/b.ogg","mime_type":"audio/ogg"}]}`)
	turn := receive(t, "turn", seen.turns)
	if got := string(message.AppendParts(nil, turn.Message.Parts)); got != `[{"type":"audio-input","mimeType":"audio/ogg","status":"completed","url":"https://x.example/b.ogg","id":"p1"}]` {
		t.Errorf("the agent got %s", got)
	}
	seen.answers <- ""
	c = h.attach11(t, row, "file")
	h.operator("POST", "/channels/a/messages", sound, 202)
	if f := c.nextSent("send_file"); f.File.URL != "https://x.example/a.ogg" {
		t.Errorf("came as %+v", f.File)
	}
	old := h.attach(t, row)
	h.operator("POST", "/channels/a/messages", sound, 202)
	if f := old.nextSent("send"); f.Text != "https://x.example/a.ogg" || f.MessageID != "" {
		t.Errorf("came as %+v", f)
	}
}

// Edits, deletions and reactions are kept with what they are about; nobody
// answers them, and answers still go where they went.
func TestAside(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("a", func(c *store.Channel) { c.Users = []string{"u"} })
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
	if err := json.Unmarshal(h.last(row, store.In).Parts, &parts); err != nil || fmt.Sprint(parts) != "[map[id:p1 type:ui_submit uiId:echo-form values:map[agree:true colours:[red blue] name:<Ann>]]]" {
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
	h.operator("DELETE", "/channels/x/messages/0000000000001", "", 422)
	h.operator("PUT", "/channels/x/messages/"+asked+"/reactions/%0A", "", 422)

	old := h.attach(t, row)
	h.operator("DELETE", "/channels/x/messages/"+answered, "", 202)
	h.operator("PUT", "/channels/x/messages/"+asked+"/reactions/x", "", 202)
	old.quiet()
	if e := h.last(row, store.Out); !strings.Contains(string(e.Notes), `{"from":"reaction","to":"none"`) || e.State != store.Sent {
		t.Errorf("kept as %s with %s", e.State, e.Notes)
	}
}

// What an image holds inline reaches whoever can't take it so as a link, also
// from the queue; a file of the data directory goes by path on this machine only.
func TestInlineAndPath(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("l", withQueue)
	picture := pngBytes(t)
	inline := `{"conversation_id":"c","parts":[{"type":"vision","kind":"output","mimeType":"image/png","caption":"Tiny","data":"` + base64.StdEncoding.EncodeToString(picture) + `"}]}`
	h.operator("POST", "/channels/l/messages", inline, 202)
	c := h.attach(t, row, "text", "image")
	f := c.nextSent("send_image")
	if status, _, body := h.http("GET", f.Image.URL, nil); status != 200 || !bytes.Equal(body, picture) || f.Image.Caption != "Tiny" {
		t.Errorf("came as %+v, which gives %d", f.Image, status)
	}
	if e := h.last(row, store.Out); !strings.Contains(string(e.Parts), `"data":"iVBOR`) || strings.Contains(string(e.Parts)+string(e.Meta), "token") || e.Text != "Tiny" {
		t.Errorf("kept as %q with %s, %s", e.Text, e.Parts, e.Meta)
	}
	rich := h.attach11(t, row, "parts")
	h.operator("POST", "/channels/l/messages", inline, 202)
	if f := rich.nextSent("send_parts"); !strings.Contains(string(f.Parts), `"data":"iVBOR`) {
		t.Errorf("came as %s", f.Parts)
	}
	large := pngOf(t, 700)
	h.operator("POST", "/channels/l/messages", strings.Replace(inline, base64.StdEncoding.EncodeToString(picture), base64.StdEncoding.EncodeToString(large), 1), 202)
	f = rich.nextSent("send_parts")
	parts, err := message.ParseParts(f.Parts)
	if err != nil || message.TextField(parts[0].Raw(), "data") != "" {
		t.Fatalf("came as %.300s, %v", f.Parts, err)
	}
	if status, _, body := h.http("GET", parts[0].Address(), nil); status != 200 || !bytes.Equal(body, large) {
		t.Errorf("GET: %d, %d bytes", status, len(body))
	}

	path := filepath.Join(h.dir, "mine", "a.png")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, picture, 0o600)); err != nil {
		t.Fatal(err)
	}
	c = h.attach(t, row, "text", "image")
	h.operator("POST", "/channels/l/messages", `{"conversation_id":"c","image":{"path":`+quote(path)+`}}`, 202)
	if f := c.nextSent("send_image"); f.Image.Path != path || f.Image.URL == "" {
		t.Errorf("came as %+v", f.Image)
	}
	for _, no := range []string{"/etc/passwd", filepath.Join(h.dir, "admin.key"), filepath.Join(h.dir, "pontoon.db"), h.dir + "/mine/../admin.key"} {
		h.operator("POST", "/channels/l/messages", `{"conversation_id":"c","file":{"path":`+quote(no)+`}}`, 422)
		h.operator("POST", "/channels/l/messages", `{"conversation_id":"c","parts":[{"type":"file","fileName":"x","path":`+quote(no)+`}]}`, 422)
	}
	c.quiet()
}

// pngOf is a picture of n by n random-looking pixels, which do not compress.
func pngOf(t *testing.T, n int) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, n, n))
	x := uint32(1)
	for i := range img.Pix {
		x = x*1664525 + 1013904223
		img.Pix[i] = byte(x >> 24)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// streaming is an agent that the test makes speak.
type streaming struct {
	do chan func(context.Context, hub.Reply) error
}

func (s streaming) Handle(ctx context.Context, _ hub.Turn, r hub.Reply) error {
	for {
		select {
		case f := <-s.do:
			if f == nil {
				return nil
			}
			if err := f(ctx, r); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s streaming) show(text string) {
	s.do <- func(_ context.Context, r hub.Reply) error { r.Stream(text); return nil }
}

func (s streaming) say(m message.Message) {
	s.do <- func(ctx context.Context, r hub.Reply) error { _, err := r.Send(ctx, m); return err }
}

func TestStream(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]string{"text": "stream", "parts": "stream parts"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := streaming{make(chan func(context.Context, hub.Reply) error)}
			h := start(t, agents(map[string]hub.Agent{"s": s}))
			row := h.channel("s", withAgent("s"))
			c := h.attach11(t, row, caps)
			want := func(f sent, text string) {
				t.Helper()
				parts := "[]"
				if name == "parts" {
					parts = `[{"type":"text","text":` + quote(text) + `,"id":"p1"}]`
				}
				if f.Text != text || string(f.Parts) != parts {
					t.Errorf("read %+v with parts %s, want %q", f, f.Parts, text)
				}
			}
			c.send(say("c", "go"))
			s.show("one")
			first := c.nextSent("stream")
			want(first, "one")
			if e := h.last(row, store.Out); e.Status != message.StatusStreaming || e.State != store.Sent || e.Text != "" {
				t.Errorf("kept as %+v", e.Row)
			}
			s.show("one two")
			want(c.nextSent("stream"), "one two")
			s.say(message.Text("one two three"))
			s.do <- nil
			end := c.nextSent("stream_end")
			want(end, "one two three")
			if end.MessageID != first.MessageID {
				t.Errorf("ended %s, began %s", end.MessageID, first.MessageID)
			}
			h.wantHistory(row, "in handled go", "out sent one two three")
			if e := h.last(row, store.Out); e.Status != message.StatusCompleted || e.ReplyTo == 0 {
				t.Errorf("kept as %+v", e.Row)
			}

			// The agent fails: what it said stands, marked as broken.
			c.send(say("c", "fail"))
			s.show("half an ans")
			c.nextSent("stream")
			s.do <- func(context.Context, hub.Reply) error { return errors.New("agent broke") }
			broken := c.nextSent("stream_end")
			want(broken, "half an ans")
			for _, e := range h.history(row) {
				if (e.ID.String() == broken.MessageID) != (e.Status == message.StatusError) {
					t.Errorf("kept as %+v", e.Row)
				}
			}
			c.mustNext() // the host's apology
			eventually(t, "the question fails", func() bool { return h.last(row, store.In).State == store.Failed })

			// The user stops it: nothing is broken.
			c.send(say("c", "stop"))
			s.show("half")
			c.nextSent("stream")
			c.send(say("c", "/stop"))
			frames := []sent{{}, {}}
			for i := range frames {
				c.read(&frames[i])
			}
			if frames[0].Text == "half" {
				frames[0], frames[1] = frames[1], frames[0]
			}
			if frames[0].Text != "Stopped." || frames[1].Type != "stream_end" || frames[1].Text != "half" {
				t.Errorf("read %+v", frames)
			}
		})
	}
}

// An answer with more than text ends its stream first.
func TestStreamEndsWithButtons(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	h := start(t, agents(map[string]hub.Agent{"s": s}))
	row := h.channel("s", withAgent("s"))
	c := h.attach11(t, row, "stream buttons")
	c.send(say("c", "go"))
	s.show("Pick")
	c.nextSent("stream")
	s.say(message.New(message.NewText("Pick one"), message.NewButtons("Which?", [][]wire.Button{{{Text: "a", Value: "b"}}})))
	s.do <- nil
	if end, rest := c.nextSent("stream_end"), c.nextSent("send_buttons"); end.Text != "Pick one" || rest.Text != "Which?" || rest.MessageID != end.MessageID+"/2" {
		t.Errorf("read %+v and %+v", end, rest)
	}
	c.send(say("c", "a"))
	eventually(t, "the choice is taken", func() bool { return strings.Contains(string(h.last(row, store.In).Meta), `"action":"b"`) })
	s.do <- nil
}

// An adapter that goes while an answer is streamed gets it whole when it is
// back, or it fails; who shows no streams gets the answer alone.
func TestStreamInterrupted(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	h := start(t, agents(map[string]hub.Agent{"s": s}))
	for name, queue := range map[string]bool{"queue": true, "none": false} {
		row := h.channel(name, withAgent("s"), func(c *store.Channel) { c.Queue = queue })
		c := h.attach11(t, row, "stream")
		c.send(say("c", "go"))
		s.show("one")
		id := c.nextSent("stream").MessageID
		_ = c.ws.Close()
		eventually(t, "the adapter goes", func() bool { return !h.attached(row) })
		s.show("one two")
		s.say(message.Text("one two three"))
		s.do <- nil
		if !queue {
			h.wantHistory(row, "in handled go", "out failed/adapter_not_attached one two three")
			continue
		}
		h.wantHistory(row, "in handled go", "out queued one two three")
		c = h.attach11(t, row, "stream")
		if f := c.nextSent("stream_end"); f.Text != "one two three" || f.MessageID != id {
			t.Errorf("read %+v", f)
		}
		old := h.attach(t, row)
		old.send(say("c", "again"))
		s.show("four")
		s.say(message.Text("four five"))
		s.do <- nil
		old.want(answer("c", "four five"))
	}
}

// A host that is stopped in the middle of an answer does not take it for one:
// the question is handed over again.
func TestStreamAcrossRestart(t *testing.T) {
	t.Parallel()
	s := streaming{make(chan func(context.Context, hub.Reply) error)}
	h := start(t, agents(map[string]hub.Agent{"s": s}))
	row := h.channel("s", withAgent("s"))
	c := h.attach11(t, row, "stream")
	c.send(say("c", "go"))
	s.show("one")
	c.nextSent("stream")
	h = h.again(agents(map[string]hub.Agent{"s": s}))
	h.wantHistory(row, "in received go", "out sent ")
	if e := h.last(row, store.Out); e.Status != message.StatusError {
		t.Errorf("kept as %+v", e.Row)
	}
	c = h.attach11(t, row, "stream")
	s.say(message.Text("the answer"))
	s.do <- nil
	if f := c.nextSent("send"); f.Text != "the answer" {
		t.Errorf("read %+v", f)
	}
	h.wantHistory(row, "in handled go", "out sent ", "out sent the answer")
}
