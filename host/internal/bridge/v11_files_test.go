package bridge_test

import (
	"bytes"
	"encoding/base64"
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
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

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
	e := h.last(row, ledger.In)
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

// What an image holds inline reaches whoever can't take it so as a link, also
// from the queue; a file of a directory that the operator named goes by path on this machine only.
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
	if e := h.last(row, ledger.Out); !strings.Contains(string(e.Parts), `"data":"iVBOR`) || strings.Contains(string(e.Parts)+string(e.Meta), "token") || e.Text != "Tiny" {
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

	path := filepath.Join(h.shared, "mine", "a.png")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, picture, 0o600)); err != nil {
		t.Fatal(err)
	}
	c = h.attach(t, row, "text", "image")
	h.operator("POST", "/channels/l/messages", `{"conversation_id":"c","image":{"path":`+quote(path)+`}}`, 202)
	if f := c.nextSent("send_image"); f.Image.Path != path || f.Image.URL == "" {
		t.Errorf("came as %+v", f.Image)
	}
	for _, no := range []string{"/etc/passwd", filepath.Join(h.dir, "admin.key"), filepath.Join(h.dir, "pontoon.db"), h.shared + "/mine/../a.png"} {
		h.operator("POST", "/channels/l/messages", `{"conversation_id":"c","file":{"path":`+quote(no)+`}}`, 422)
		h.operator("POST", "/channels/l/messages", `{"conversation_id":"c","parts":[{"type":"file","fileName":"x","path":`+quote(no)+`}]}`, 422)
	}
	c.quiet()
}

// What is stored with a path goes without it once that is none of a directory that
// the operator names: it waited in a queue, or an older host took it.
func TestStoredPath(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("l", withQueue)
	path := filepath.Join(h.shared, "a.png")
	if err := os.WriteFile(path, pngBytes(t), 0o600); err != nil {
		t.Fatal(err)
	}
	h.operator("POST", "/channels/l/messages", `{"conversation_id":"c","image":{"path":`+quote(path)+`}}`, 202)
	again := h.again() // other directories are named
	f := again.attach(t, row, "text", "image").nextSent("send_image")
	if f.Image.Path != "" || f.Image.URL == "" {
		t.Errorf("came as %+v", f.Image)
	}
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
