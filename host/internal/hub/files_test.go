package hub_test

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

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
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

// fetch makes a request without a key.
func fetch(h *hosttest.Host, method, url string, body []byte) (int, http.Header, []byte) {
	h.T.Helper()
	r, err := http.NewRequestWithContext(h.T.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		h.T.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.T.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		h.T.Fatal(err)
	}
	return resp.StatusCode, resp.Header, got
}

// A file goes to the host by HTTP, to the agent as a part with a fresh url, and
// is kept by its name alone.
func TestUpload(t *testing.T) {
	t.Parallel()
	seen := hosttest.NewHeld()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"held": seen}))
	row, other := h.Channel("u", hosttest.WithAgent("held")), h.Channel("other", hosttest.WithAgent("held"))
	c := h.Attach11(t, row, "parts")
	picture := pngBytes(t)
	c.Send(fmt.Sprintf(`{"type":"upload","name":"a.png","mime_type":"image/png","size_bytes":%d,"message_id":"u1"}`, len(picture)))
	var ack wire.UploadAck
	if c.Read(&ack); ack.MessageID != "u1" || ack.Error != "" || !strings.HasPrefix(ack.URL, "http://"+h.Addr+"/storage/v1/object/sign/agent-files/") || ack.ExpiresAt == "" {
		t.Fatalf("answered %+v", ack)
	}
	early := `{"type":"message","conversation_id":"c","message_id":"m0","attachments":[{"attachment_id":` + hosttest.Quote(ack.AttachmentID) + `}]}`
	c.Send(early)
	c.WantError("wrong_type", "m0", "attachments[0].attachment_id")
	if status, _, body := fetch(h, "PUT", ack.URL, picture); status != 201 {
		t.Fatalf("PUT: %d %s", status, body)
	}
	c.Send(`{"type":"message","conversation_id":"c","text":"look","attachments":[{"attachment_id":` + hosttest.Quote(ack.AttachmentID) + `,"caption":"A picture"},{"url":"https://x.example/b.pdf","name":"b.pdf","mime_type":"application/pdf"}]}`)
	turn := await.Value(t, "turn", seen.Turns)
	v, err := message.As[message.VisionPart](turn.Message.Parts[1])
	if err != nil || turn.Message.Text != "look" || v.Caption != "A picture" || v.MimeType != "image/png" || len(turn.Message.Parts) != 3 {
		t.Fatalf("the agent got %q, %s, %v", turn.Message.Text, message.AppendParts(nil, turn.Message.Parts), err)
	}
	if status, header, body := fetch(h, "GET", v.URL, nil); status != 200 || header.Get("Content-Type") != "image/png" || !bytes.Equal(body, picture) {
		t.Errorf("GET: %d %v", status, header)
	}
	e := h.Last(row, ledger.In)
	if strings.Contains(string(e.Parts), "token") || strings.Contains(string(e.Parts), h.Addr) || !strings.Contains(string(e.Meta), `"user_message_attachments":{"bucket":"agent-files","path":"agent-inputs/`+row.ID) {
		t.Errorf("kept as %s with %s", e.Parts, e.Meta)
	}
	seen.Answer(t, "")

	// Nobody else's, and not what the host did not sign.
	thief := h.Attach11(t, other, "parts")
	thief.Send(early)
	thief.WantError("wrong_type", "m0", "attachments[0].attachment_id")
	for _, url := range []string{strings.Replace(v.URL, "token=", "token=x", 1), strings.Split(v.URL, "?")[0], strings.TrimPrefix(strings.Split(v.URL, "?")[0], "http://"+h.Addr)} {
		thief.Send(`{"type":"message","conversation_id":"c","message_id":"m1","parts":[{"type":"vision","kind":"input","mimeType":"image/png","url":` + hosttest.Quote(url) + `}]}`)
		thief.WantError("wrong_type", "m1", "parts[0].url")
	}
	if n := len(h.History(other)); n != 0 {
		t.Errorf("%d messages kept of the thief", n)
	}
	for frame, named := range map[string]string{
		`{"type":"upload","name":"a","mime_type":"image/png","size_bytes":0}`:                   "bytes",
		`{"type":"upload","name":"a","mime_type":"image/png","size_bytes":9000000000}`:          "too large",
		`{"type":"upload","name":"a","mime_type":"application/x-msdownload","size_bytes":1000}`: "type",
	} {
		c.Send(frame)
		var no wire.UploadAck
		if c.Read(&no); no.URL != "" || !strings.Contains(no.Error, named) {
			t.Errorf("%s: answered %+v", frame, no)
		}
	}
}

// Sound goes both ways, and is a file or a link where it can't be heard.
func TestAudio(t *testing.T) {
	t.Parallel()
	seen := hosttest.NewHeld()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"held": seen}))
	row := h.Channel("a", hosttest.WithAgent("held"))
	sound := `{"conversation_id":"c","parts":[{"type":"audio-output","mimeType":"audio/ogg","status":"completed","durationMs":1500,"url":"https://x.example/a.ogg"}]}`
	c := h.Attach11(t, row, "audio")
	h.Operator("POST", "/channels/a/messages", sound, 202)
	if f := c.NextSent("send_audio"); f.Audio != (wire.Audio{URL: "https://x.example/a.ogg", MimeType: "audio/ogg", DurationMS: 1500}) {
		t.Errorf("came as %+v", f.Audio)
	}
	c.Send(`{"type":"message","conversation_id":"c","attachments":[{"url":"https://x.example/b.ogg","mime_type":"audio/ogg"}]}`)
	turn := await.Value(t, "turn", seen.Turns)
	if got := string(message.AppendParts(nil, turn.Message.Parts)); got != `[{"type":"audio-input","mimeType":"audio/ogg","status":"completed","url":"https://x.example/b.ogg","id":"p1"}]` {
		t.Errorf("the agent got %s", got)
	}
	seen.Answer(t, "")
	c = h.Attach11(t, row, "file")
	h.Operator("POST", "/channels/a/messages", sound, 202)
	if f := c.NextSent("send_file"); f.File.URL != "https://x.example/a.ogg" {
		t.Errorf("came as %+v", f.File)
	}
	old := h.Attach(t, row)
	h.Operator("POST", "/channels/a/messages", sound, 202)
	if f := old.NextSent("send"); f.Text != "https://x.example/a.ogg" || f.MessageID != "" {
		t.Errorf("came as %+v", f)
	}
}

// What an image holds inline reaches whoever can't take it so as a link, also
// from the queue; a file of a directory that the operator named goes by path on this machine only.
func TestInlineAndPath(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("l", hosttest.WithQueue)
	picture := pngBytes(t)
	inline := `{"conversation_id":"c","parts":[{"type":"vision","kind":"output","mimeType":"image/png","caption":"Tiny","data":"` + base64.StdEncoding.EncodeToString(picture) + `"}]}`
	h.Operator("POST", "/channels/l/messages", inline, 202)
	c := h.Attach(t, row, "text", "image")
	f := c.NextSent("send_image")
	if status, _, body := fetch(h, "GET", f.Image.URL, nil); status != 200 || !bytes.Equal(body, picture) || f.Image.Caption != "Tiny" {
		t.Errorf("came as %+v, which gives %d", f.Image, status)
	}
	if e := h.Last(row, ledger.Out); !strings.Contains(string(e.Parts), `"data":"iVBOR`) || strings.Contains(string(e.Parts)+string(e.Meta), "token") || e.Text != "Tiny" {
		t.Errorf("kept as %q with %s, %s", e.Text, e.Parts, e.Meta)
	}
	rich := h.Attach11(t, row, "parts")
	h.Operator("POST", "/channels/l/messages", inline, 202)
	if f := rich.NextSent("send_parts"); !strings.Contains(string(f.Parts), `"data":"iVBOR`) {
		t.Errorf("came as %s", f.Parts)
	}
	large := pngOf(t, 700)
	h.Operator("POST", "/channels/l/messages", strings.Replace(inline, base64.StdEncoding.EncodeToString(picture), base64.StdEncoding.EncodeToString(large), 1), 202)
	f = rich.NextSent("send_parts")
	parts, err := message.ParseParts(f.Parts)
	if err != nil || message.TextField(parts[0].Raw(), "data") != "" {
		t.Fatalf("came as %.300s, %v", f.Parts, err)
	}
	if status, _, body := fetch(h, "GET", parts[0].Address(), nil); status != 200 || !bytes.Equal(body, large) {
		t.Errorf("GET: %d, %d bytes", status, len(body))
	}

	path := filepath.Join(h.Shared, "mine", "a.png")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, picture, 0o600)); err != nil {
		t.Fatal(err)
	}
	c = h.Attach(t, row, "text", "image")
	h.Operator("POST", "/channels/l/messages", `{"conversation_id":"c","image":{"path":`+hosttest.Quote(path)+`}}`, 202)
	if f := c.NextSent("send_image"); f.Image.Path != path || f.Image.URL == "" {
		t.Errorf("came as %+v", f.Image)
	}
	for _, no := range []string{"/etc/passwd", filepath.Join(h.Dir, "admin.key"), filepath.Join(h.Dir, "pontoon.db"), h.Shared + "/mine/../a.png"} {
		h.Operator("POST", "/channels/l/messages", `{"conversation_id":"c","file":{"path":`+hosttest.Quote(no)+`}}`, 422)
		h.Operator("POST", "/channels/l/messages", `{"conversation_id":"c","parts":[{"type":"file","fileName":"x","path":`+hosttest.Quote(no)+`}]}`, 422)
	}
	c.Quiet()
}

// What is stored with a path goes without it once that is none of a directory that
// the operator names: it waited in a queue, or an older host took it.
func TestStoredPath(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("l", hosttest.WithQueue)
	path := filepath.Join(h.Shared, "a.png")
	if err := os.WriteFile(path, pngBytes(t), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Operator("POST", "/channels/l/messages", `{"conversation_id":"c","image":{"path":`+hosttest.Quote(path)+`}}`, 202)
	again := h.Again() // other directories are named
	f := again.Attach(t, row, "text", "image").NextSent("send_image")
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
