package webchat

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Every frame of the host, through a real one.
func TestEveryFrame(t *testing.T) {
	r := startRig(t, "")
	c := r.client(t, "", nil)
	if p, _ := c.answer("hello\nworld  ", kindText); p.Text != "echo: hello\nworld" {
		t.Errorf("found %q", p.Text)
	}
	if p, _ := c.answer("!caps", kindText); p.Text != "caps: text,card,buttons,image,file,typing,update_message,ack,parts,stream,delete_message,audio,form" {
		t.Errorf("capabilities: found %q", p.Text)
	}
	card, _ := c.answer("!card", kindCard)
	if card.Card.Header.Color != "blue" || len(card.Card.Elements) != 6 || card.Card.Elements[4].CallbackPrefix != "colour:" {
		t.Errorf("card: found %+v", card.Card)
	}
	buttons, _ := c.answer("!buttons", kindButtons)
	if buttons.Text != "Pick one:" || len(buttons.Buttons) != 2 || buttons.Buttons[0][1].Value != "no" {
		t.Errorf("buttons: found %+v", buttons)
	}
	if p, _ := c.answer("!image", kindImage); p.Media.URL != r.host.url+"/assets/echo.png" || p.Media.Caption != "A pontoon bridge" {
		t.Errorf("image: found %+v", p.Media)
	}
	if p, _ := c.answer("!file", kindFile); p.Media.Name != "echo.txt" {
		t.Errorf("file: found %+v", p.Media)
	}
	c.answer("!update", kindText)
	c.until("the edit", func() bool {
		e := c.entries[len(c.entries)-1]
		return said(e) == "text:echo: second version" && e.Edited
	})
	if slices.Contains(c.texts(), "text:echo: first version") {
		t.Error("the edited message is there twice")
	}
	if p, _ := c.answer("!form", kindForm); p.Form.UIID != "echo-form" || len(p.Form.Components) != 3 {
		t.Errorf("form: found %+v", p.Form)
	}
	c.say("!typing")
	c.until("typing on", func() bool { return c.typing })
	c.until("typing off", func() bool { return !c.typing })

	var list struct {
		Messages []struct {
			Conversation string `json:"conversation_id"`
			Session      string `json:"session_key"`
			AuthorID     string `json:"author_id"`
			Author       string
		}
	}
	r.must(&list, "GET", "/channels/web/messages?direction=in", nil)
	for _, m := range list.Messages {
		id := c.conversation()
		if m.Conversation != id || m.Session != "webchat:"+id+":"+id || m.AuthorID != id || m.Author != "you" {
			t.Fatalf("routing: found %+v", m)
		}
	}
	if _, text := r.try("GET", "/channels/web/messages", nil); strings.Contains(string(text), c.key) || strings.Contains(r.log.String(), c.key) {
		t.Error("the key is in history or log")
	}
}

func TestPress(t *testing.T) {
	r := startRig(t, "")
	c := r.client(t, "", nil)
	other := r.client(t, c.key, nil)
	_, buttons := c.answer("!buttons", kindButtons)
	press := func(c *client, index int, value, label string) string {
		id := hexID()
		c.send(map[string]any{"type": "press", "id": id, "message": buttons.ID, "group": 0, "index": index, "value": value, "label": label, "name": "Ann"})
		return id
	}
	id := press(c, 1, "no", "No")
	c.until("the answer", func() bool { return slices.Contains(c.texts(), "text:echo: no") })
	c.until("it is sent", func() bool { return c.of(id) == stateSent && slices.Contains(c.texts(), "press:No") })
	for _, c := range []*client{c, other} {
		c.until("both tabs show what was chosen", func() bool {
			return slices.ContainsFunc(c.entries, func(e *entry) bool {
				return e.ID == buttons.ID && reflect.DeepEqual(e.Pieces[0].Chosen, map[int]int{0: 1})
			})
		})
	}
	press(other, 0, "yes", "Yes")
	other.until("a refusal", func() bool { return len(other.refused) == 1 })
	if why := other.refused[0]["reason"]; why != "this question is already answered" {
		t.Errorf("found %q", why)
	}
	_, card := c.answer("!card", kindCard)
	c.send(map[string]any{"type": "press", "id": hexID(), "message": card.ID, "group": 4, "index": 1, "value": "colour:blue", "label": "Blue"})
	c.until("the select's answer", func() bool { return slices.Contains(c.texts(), "text:echo: colour:blue") })
	c.send(map[string]any{"type": "press", "id": hexID(), "message": "gone", "group": 0, "index": 0, "value": "cmd:/help", "label": "Help"})
	c.until("a button of a forgotten message", func() bool {
		return slices.ContainsFunc(c.texts(), func(s string) bool { return strings.Contains(s, "/notify") })
	})
}

// A page that comes back gets what is new and nothing twice.
func TestResume(t *testing.T) {
	r := startRig(t, "")
	first := r.client(t, "", nil)
	first.answer("one", kindText)
	_, buttons := first.answer("!buttons", kindButtons)
	_ = first.conn.Close()
	r.send(first.conversation(), map[string]any{"text": "while away"})
	eventually(t, "it is stored", func() bool {
		r.adapter.store.mu.Lock()
		defer r.adapter.store.mu.Unlock()
		return len(r.adapter.store.convs[first.conversation()].entries) == len(first.entries)+1
	})
	again := r.client(t, first.key, first)
	again.until("what is new", func() bool { return slices.Contains(again.texts(), "text:while away") })
	whole := r.client(t, first.key, nil)
	whole.until("everything", func() bool { return len(whole.entries) == len(again.entries) })
	if !slices.Equal(whole.texts(), again.texts()) {
		t.Errorf("found %v and %v", whole.texts(), again.texts())
	}
	stranger := r.client(t, "", nil)
	if len(stranger.entries) != 0 {
		t.Errorf("a stranger sees %v", stranger.texts())
	}

	// Another process: nothing is kept, and the conversation is the same.
	r.halt()
	r.run(fmt.Sprintf(`{"listen":%q}`, r.address()))
	r.send(first.conversation(), map[string]any{"text": "from the operator"})
	back := r.client(t, first.key, again)
	back.until("the operator's message", func() bool { return slices.Contains(back.texts(), "text:from the operator") })
	if back.epoch == first.epoch || len(back.entries) != 1 {
		t.Errorf("the new process shows %v", back.texts())
	}
	back.send(map[string]any{"type": "press", "id": hexID(), "message": buttons.ID, "group": 0, "index": 0, "value": "yes", "label": "Yes"})
	back.until("a button from before", func() bool { return slices.Contains(back.texts(), "text:echo: yes") })
}

// While the host is away messages wait, say so, and go in order; a repetition
// is not sent twice.
func TestHostAway(t *testing.T) {
	r := startRig(t, "")
	c := r.client(t, "", nil)
	c.answer("hello", kindText)
	r.kill()
	var ids []string
	for i := range 5 {
		ids = append(ids, c.say(fmt.Sprintf("kept %d", i)))
	}
	c.until("the page is told that it waits", func() bool { return c.of(ids[1]) == stateSending && c.of(ids[0]) == stateWaiting })
	c.send(map[string]any{"type": "say", "id": ids[2], "text": "kept 2"})
	r.again()
	c.until("the last answer", func() bool { return slices.Contains(c.texts(), "text:echo: kept 4") })
	var answers []string
	for _, text := range c.texts() {
		if strings.HasPrefix(text, "text:echo: kept") {
			answers = append(answers, text[len("text:echo: "):])
		}
	}
	if want := []string{"kept 0", "kept 1", "kept 2", "kept 3", "kept 4"}; !slices.Equal(answers, want) {
		t.Errorf("found %q, expected %q", answers, want)
	}
	for _, id := range ids {
		c.until("it is sent", func() bool { return c.of(id) == stateSent })
	}
}

func TestLimits(t *testing.T) {
	r := startRig(t, "")
	c := r.client(t, "", nil)
	if p, _ := c.answer(strings.Repeat("\"", maxText), kindText); !strings.Contains(p.Text, "\"\"\"") {
		t.Errorf("found %.40q", p.Text)
	}
	for text, why := range map[string]string{strings.Repeat("x", maxText+1): "at most 120000 are allowed", " \n\t ": "empty", "\x00\x01": "empty"} {
		c.refused = nil
		c.say(text)
		c.until("a refusal", func() bool { return len(c.refused) == 1 })
		if got := c.refused[0]["reason"].(string); !strings.Contains(got, why) || c.refused[0]["retry"] != float64(0) {
			t.Errorf("found %v, expected %q", c.refused[0], why)
		}
	}
	c.refused = nil
	for range 3 * burst {
		c.say("quick")
	}
	c.until("too fast", func() bool { return len(c.refused) > 0 })
	if c.refused[0]["reason"] != "too fast" || c.refused[0]["retry"].(float64) <= 0 {
		t.Errorf("found %v", c.refused[0])
	}
	c.send(map[string]any{"type": "say", "id": hexID(), "text": "x", "extra": 1})
	timeout := time.After(within)
	for open := true; open; {
		select {
		case _, open = <-c.frames:
		case <-timeout:
			t.Fatal("an unknown field does not end the stream")
		}
	}
}

func TestFilesByPath(t *testing.T) {
	r := startRig(t, "")
	c := r.client(t, "", nil)
	c.answer("hello", kindText)
	dir := t.TempDir()
	png, err := os.ReadFile("../../../host/internal/agent/assets/echo.png")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	picture, page, svg := write("a.png", png), write(`evil"<b>.html`, []byte("<script>alert(1)</script>")), write("x.svg", []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"))
	get := func(path string) (status int, h http.Header, body string) {
		t.Helper()
		resp, err := http.Get(r.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(b)
	}
	newest := func(k kind) *piece {
		t.Helper()
		c.until(string(k), func() bool { return c.entries[len(c.entries)-1].alone(k) != nil })
		return c.entries[len(c.entries)-1].Pieces[0]
	}
	to := sdk.Target{ConversationID: c.conversation()} // the operator's API takes no path; agents may
	if _, err := r.adapter.SendImage(t.Context(), to, wire.Image{Path: picture, Caption: "by path"}); err != nil {
		t.Fatal(err)
	}
	image := newest(kindImage)
	status, h, body := get(image.Media.URL)
	if status != 200 || h.Get("Content-Type") != "image/png" || body != string(png) || image.Media.Bytes != int64(len(png)) {
		t.Errorf("image: %d %v, %d bytes", status, h, len(body))
	}
	if strings.Contains(image.Media.URL+image.Media.Name, "a.png") {
		t.Error("the path is shown to the browser")
	}
	if _, err := r.adapter.SendFile(t.Context(), to, wire.File{Path: page}); err != nil {
		t.Fatal(err)
	}
	file := newest(kindFile)
	_, h, body = get(file.Media.URL)
	if body != "<script>alert(1)</script>" || h.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment; ") ||
		h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("file: %q %v", body, h)
	}
	for _, path := range []string{"/files/AAAAAAAAAAAAAAAAAAAAAAAAAA", "/files/", "/files/" + strings.Repeat("../", 5) + "etc/passwd", "/files/%2e%2e%2fetc%2fpasswd", "/index.html", "/.git/config"} {
		if status, _, _ := get(path); status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, status)
		}
	}
	for what, path := range map[string]string{
		"image/": svg, "regular file": dir, "absolute path": "a.png", "no such file": filepath.Join(dir, "none"),
	} {
		if _, err := newGrant(path, "", true); err == nil || what != "image/" && !strings.Contains(err.Error(), what) {
			t.Errorf("%s: found %v, expected %s", path, err, what)
		}
	}
	// Replaced by another file: what was sent is no longer there.
	if err := os.Rename(svg, picture); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := get(image.Media.URL); status != http.StatusNotFound {
		t.Errorf("a replaced file: status %d", status)
	}
}
