package webchat

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk"
)

// An answer grows in its place, and its end is the whole of it.
func TestStreamGrows(t *testing.T) {
	r := startRig(t, "")
	c := r.client(t, "", nil)
	c.say("!stream one two three")
	var seen []string
	c.until("the whole answer", func() bool {
		if len(c.entries) == 0 {
			return false
		}
		e := c.entries[len(c.entries)-1]
		if e.Client == "" && (len(seen) == 0 || seen[len(seen)-1] != said(e)) {
			seen = append(seen, said(e))
		}
		return said(e) == "text:echo: one two three" && !e.Growing
	})
	if len(c.entries) != 2 || len(seen) < 2 || !strings.HasPrefix(seen[len(seen)-1], seen[0]) {
		t.Errorf("%d entries, seen %q", len(c.entries), seen)
	}

	// A draft without an end looks finished once something else is said.
	to := sdk.Target{ConversationID: c.conversation()}
	if _, err := r.adapter.Stream(t.Context(), to, sdk.Draft{ID: "m1", Text: "half"}); err != nil {
		t.Fatal(err)
	}
	c.until("the draft", func() bool { e := c.entries[len(c.entries)-1]; return said(e) == "text:half" && e.Growing })
	r.send(c.conversation(), map[string]any{"text": "after it"})
	c.until("its end", func() bool {
		n := len(c.entries)
		return said(c.entries[n-1]) == "text:after it" && !c.entries[n-2].Growing
	})
}

// A form is answered once, in every tab.
func TestForm(t *testing.T) {
	r := startRig(t, "")
	c := r.client(t, "", nil)
	other := r.client(t, c.key, nil)
	form, shown := c.answer("!form", kindForm)
	submit := func(c *client, id string, values map[string]any) {
		c.send(map[string]any{"type": "submit", "id": id, "message": shown.ID, "form": form.Form.UIID, "values": values, "label": "Your name: Ann"})
	}
	id := hexID()
	submit(c, id, map[string]any{"name": "Ann <b>", "colour": "red"})
	c.until("the answer", func() bool { return slices.Contains(c.texts(), "text:echo: colour: red\nname: Ann <b>") })
	for _, c := range []*client{c, other} {
		c.until("what was answered", func() bool {
			return c.of(id) == stateSent && slices.ContainsFunc(c.entries, func(e *entry) bool { return e.ID == shown.ID && e.Pieces[0].Values["name"] == "Ann <b>" })
		})
	}
	submit(other, hexID(), map[string]any{"name": "Bob"})
	other.until("a refusal", func() bool { return len(other.refused) == 1 })
	if why := other.refused[0]["reason"]; why != "this form is already sent" {
		t.Errorf("found %q", why)
	}
	for why, values := range map[string]map[string]any{
		"expected text, yes or no": {"name": 7}, "found something else": {"name": []any{"a", 1}}, "at most": {"name": strings.Repeat("x", maxText+1)},
	} {
		c.refused = nil
		submit(c, hexID(), values)
		c.until("a refusal", func() bool { return len(c.refused) == 1 })
		if got := c.refused[0]["reason"].(string); !strings.Contains(got, why) {
			t.Errorf("found %q, expected %q", got, why)
		}
	}
}

// post uploads a file as the page does.
func (r *rig) post(t *testing.T, c *client, name string, body []byte, header map[string]string) (status int, id string) {
	t.Helper()
	req, err := http.NewRequest("POST", r.url+"/upload", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Origin": r.url, "Webchat-Key": c.key, "Webchat-Name": name} {
		req.Header.Set(k, v)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ ID string }
	if resp.StatusCode == http.StatusOK && json.Unmarshal(text, &made) != nil {
		t.Errorf("answered %s", text)
	}
	return resp.StatusCode, made.ID
}

// A file reaches the host with its message, also when the host was away, and is
// shown to its user; what a browser could run is a download.
func TestUpload(t *testing.T) {
	r := startRig(t, "")
	c := r.client(t, "", nil)
	c.answer("hello", kindText)
	png, err := os.ReadFile("../../../host/internal/agent/assets/echo.png")
	if err != nil {
		t.Fatal(err)
	}
	_, picture := r.post(t, c, "a%20picture.png", png, nil)
	_, page := r.post(t, c, "x.html", []byte("<script>alert(1)</script>"), nil)
	if picture == "" || page == "" {
		t.Fatal("not uploaded")
	}
	r.kill()
	id := hexID()
	c.send(map[string]any{"type": "say", "id": id, "text": "", "files": []string{picture, page}})
	c.until("it waits", func() bool { return c.of(id) == stateWaiting })
	r.again()
	c.until("it is sent", func() bool { return c.of(id) == stateSent })
	mine := c.entries[slices.IndexFunc(c.entries, func(e *entry) bool { return e.Client == id })]
	if len(mine.Files) != 2 || mine.Files[0].Name != "a picture.png" || !mine.Files[0].Image || mine.Files[1].Image || mine.Files[0].Bytes != int64(len(png)) {
		t.Fatalf("shown as %+v", mine.Files)
	}
	for i, want := range []struct{ mime, disposition, body string }{
		{"image/png", "", string(png)}, {"application/octet-stream", "attachment", "<script>alert(1)</script>"},
	} {
		resp, err := http.Get(r.url + mine.Files[i].URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		h := resp.Header
		if err != nil || string(body) != want.body || h.Get("Content-Type") != want.mime || !strings.HasPrefix(h.Get("Content-Disposition"), want.disposition) ||
			h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("file %d: %d bytes, %v, %v", i, len(body), h, err)
		}
	}
	var list struct {
		Messages []struct {
			Parts []struct{ Type, FileName, MimeType, URL string }
		}
	}
	r.must(&list, "GET", "/channels/web/messages?direction=in&limit=1", nil)
	parts := list.Messages[0].Parts
	if len(parts) != 2 || parts[0].Type != "vision" || parts[0].MimeType != "image/png" || parts[1].Type != "file" || parts[1].FileName != "x.html" || parts[1].MimeType != "application/octet-stream" {
		t.Errorf("the host has %+v", list.Messages[0])
	}

	// Nobody else's, nothing without a key, not what is too large.
	thief := r.client(t, "", nil)
	thief.send(map[string]any{"type": "say", "id": hexID(), "text": "x", "files": []string{picture}})
	thief.until("a refusal", func() bool { return len(thief.refused) == 1 })
	if why := thief.refused[0]["reason"]; why != "a file is no longer here: attach it again" {
		t.Errorf("found %q", why)
	}
	for what, h := range map[string]map[string]string{
		"no key": {"Webchat-Key": ""}, "foreign page": {"Origin": "http://evil.example"}, "no page": {"Origin": ""}, "no name": {"Webchat-Name": ""}, "bad name": {"Webchat-Name": "%zz"},
	} {
		if status, _ := r.post(t, c, "a.txt", []byte("x"), h); status != http.StatusForbidden && status != http.StatusBadRequest {
			t.Errorf("%s: status %d", what, status)
		}
	}
	if status, _ := r.post(t, c, "a.bin", make([]byte, maxUpload+1), nil); status != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: status %d", status)
	}
	if status, _ := r.post(t, c, "a.bin", nil, nil); status != http.StatusBadRequest {
		t.Errorf("empty: status %d", status)
	}
	dir := r.adapter.store.dir
	r.halt()
	if _, err := os.Stat(dir); !os.IsNotExist(err) || dir == "" {
		t.Errorf("%q is still there: %v", dir, err)
	}
}

// Files that are kept have bounds; what the host still has to get is not dropped.
func TestUploadsAreBounded(t *testing.T) {
	s := newStore(defaultBounds)
	t.Cleanup(s.forgetUploads)
	keep := func() (*upload, error) {
		t.Helper()
		f, err := s.spool()
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString("text")
		if err != nil || f.Close() != nil {
			t.Fatal(err)
		}
		return s.keep("c", f.Name(), "a.txt")
	}
	var first *upload
	for i := range keptFiles + 5 {
		up, err := keep()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = up
		}
	}
	if len(s.byID) != keptFiles || len(s.order) != keptFiles || s.kept != 4*keptFiles || s.byID[first.id] != nil {
		t.Errorf("%d files, %d bytes", len(s.byID), s.kept)
	}
	for _, up := range s.order {
		up.waits = 1
	}
	if _, err := keep(); err == nil {
		t.Error("one that waits for the host was dropped")
	}
}

// What the operator deletes is gone from the page, wherever it came from.
func TestDeleted(t *testing.T) {
	r := startRig(t, "")
	c := r.client(t, "", nil)
	c.answer("say this", kindText)
	var list struct{ Messages []struct{ ID string } }
	r.must(&list, "GET", "/channels/web/messages?direction=out&limit=1", nil)
	r.must(nil, "DELETE", "/channels/web/messages/"+list.Messages[0].ID, nil)
	c.until("it is gone", func() bool {
		return slices.Contains(c.texts(), "deleted:") && !slices.Contains(c.texts(), "text:echo: say this")
	})
	eventually(t, "the host knows", func() bool {
		var list struct{ Messages []struct{ State string } }
		r.must(&list, "GET", "/channels/web/messages?direction=out&limit=1", nil)
		return list.Messages[0].State == "delivered"
	})
}
