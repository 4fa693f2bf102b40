package agui_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

var png = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR and so on")

// sent uploads a file.
func (h *host) sent(key, name, mimeType string, data []byte) attach.Uploaded {
	h.t.Helper()
	status, raw := h.upload(key, "file", name, mimeType, data)
	var u attach.Uploaded
	if err := json.Unmarshal([]byte(raw), &u); err != nil || status != http.StatusOK {
		h.t.Fatalf("upload %s: %d %s", name, status, raw)
	}
	return u
}

// binary is a content that names a file by its url.
func binary(mimeType, url string) map[string]any {
	return map[string]any{"type": "binary", "mimeType": mimeType, "url": url}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d, %v", url, resp.StatusCode, err)
	}
	return string(b)
}

// A file is uploaded, sent, kept by its place and not by its url, and comes back
// with a new one.
func TestAttachment(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	u := h.sent(h.key, "../../photo.png", "image/jpeg", png)
	if u.Bucket != "agent-files" || !strings.HasPrefix(u.Path, "agent-inputs/1/") || !strings.HasSuffix(u.Path, ".png") || u.MimeType != "image/png" {
		t.Errorf("uploaded %+v", u)
	}
	if want := h.url + "/storage/v1/object/sign/" + u.Bucket + "/" + u.Path + "?token="; !strings.HasPrefix(u.URL, want) || strings.Count(strings.TrimPrefix(u.URL, want), ".") != 2 {
		t.Errorf("url is %s", u.URL)
	}
	if got := get(t, u.URL); got != string(png) {
		t.Errorf("it holds %q", got)
	}
	notes := h.sent(h.admin, "notes.txt", "text/plain", []byte("some notes"))
	if !strings.HasPrefix(notes.Path, "agent-inputs/admin/") {
		t.Errorf("the operator's is %+v", notes)
	}

	text := map[string]any{"type": "text", "text": "look"}
	h.run(h.key, input("t", "r", "m1", []any{text, binary("image/png", u.URL)}))
	h.run(h.key, input("t", "r", "m2", []any{map[string]any{"type": "image", "source": map[string]any{"type": "url", "value": u.URL, "mimeType": "image/png"}}, text}))
	h.run(h.key, input("t", "r", "m3", []any{map[string]any{"type": "binary", "mimeType": "image/png", "id": u.Bucket + "/" + u.Path}}))
	h.run(h.admin, input("t", "r", "m4", []any{binary("text/plain", notes.URL), binary("text/plain", notes.URL)}))
	stored := h.stored()
	place := func(u attach.Uploaded) string {
		return fmt.Sprintf(`{"bucket":"agent-files","path":"%s","mime_type":"%s"}`, u.Path, u.MimeType)
	}
	for i, want := range map[int]string{7: place(u), 5: place(u), 3: place(u), 1: "[" + place(notes) + "," + place(notes) + "]"} {
		if got := string(stored[i].Metadata["user_message_attachments"]); got != want {
			t.Errorf("message %d has %s, want %s", i, got, want)
		}
	}
	h.skew.Store(int64(time.Minute)) // so that urls differ
	m, _ := h.history(h.key, "threadId=t")
	for i, at := range map[int]int{0: 1, 2: 0, 4: 0} {
		var contents []struct {
			Type, MimeType, URL string
			Source              struct{ Value string }
		}
		if err := json.Unmarshal(m[i].Content, &contents); err != nil {
			t.Fatal(err)
		}
		url := contents[at].URL + contents[at].Source.Value
		if url == u.URL || !strings.HasPrefix(url, h.url+"/storage/v1/object/sign/agent-files/"+u.Path+"?token=") || get(t, url) != string(png) {
			t.Errorf("message %d is %s", i, m[i].Content)
		}
	}
	h.stop()
	b, err := os.ReadFile(filepath.Join(h.dir, "pontoon.db"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "?token=") || strings.Contains(string(b), strings.Split(u.URL, "token=")[1]) {
		t.Error("a url is stored with its token")
	}
}

// A client's metadata under names that only the host sets are kept apart and given back
// to it: to the host they are none.
func TestReservedMetadata(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	given := map[string]any{"own": "x"}
	for _, key := range message.HostKeys() {
		given[key] = "forged"
	}
	b, err := json.Marshal(map[string]any{
		"threadId": "t", "runId": "r", "messages": []any{map[string]any{"id": "m", "role": "user", "content": "hello", "metadata": given}},
		"tools": []any{}, "context": []any{}, "state": map[string]any{}, "forwardedProps": map[string]any{},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.run(h.key, string(b))
	stored := h.stored()
	asked := stored[len(stored)-1].Metadata
	if string(asked["own"]) != `"x"` {
		t.Errorf("its own: %s", asked["own"])
	}
	for _, key := range message.HostKeys() {
		if string(asked[key]) == `"forged"` {
			t.Errorf("%s was taken", key)
		}
	}
	said, _ := h.history(h.key, "threadId=t")
	for _, m := range said {
		if m.Role == "assistant" && slices.Contains(slices.Collect(maps.Values(m.Metadata)), any("forged")) {
			t.Errorf("it reached the answer: %v", m.Metadata)
		}
	}
}

// A url that is not ours, or no longer, is refused and nothing is stored.
func TestAttachmentRefused(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	u := h.sent(h.key, "a.png", "image/png", png)
	other := h.sent(h.newKey("other"), "a.png", "image/png", png)
	ref := attach.Ref{Bucket: u.Bucket, Path: u.Path}
	old := h.files.Sign(ref, "GET", time.Minute)
	put := h.files.Sign(ref, "PUT", time.Hour)
	h.skew.Store(int64(2 * time.Minute))
	token := strings.Split(u.URL, "token=")[1]
	sign := h.url + "/storage/v1/object/sign/"
	for name, c := range map[string]struct{ url, want string }{
		"errForged":      {u.URL[:len(u.URL)-4] + "AAAA", "not signed by this host"},
		"errNoToken":     {strings.Split(u.URL, "?")[0], "not signed by this host"},
		"errOtherPath":   {sign + "agent-files/agent-inputs/1/00000000-0000-4000-8000-000000000000.png?token=" + token, "not signed"},
		"errExpired":     {old, "expired"},
		"errPut":         {put, "another method"},
		"errForeign":     {"https://example.org/x.png", "not of this host"},
		"errOtherOrigin": {"https://example.org" + strings.TrimPrefix(u.URL, h.url), "not of this host"},
		"errScheme":      {strings.Replace(u.URL, "http://", "ftp://", 1), "not of this host"},
		"errFile":        {"file:///etc/passwd", "not of this host"},
		"errPathOnly":    {strings.TrimPrefix(u.URL, h.url), "not of this host"},
		"errDots":        {sign + "agent-files/agent-inputs/1/../../x.png?token=" + token, "not plain"},
		"errDotsEncoded": {sign + "agent-files/agent-inputs/1/%2e%2e/x.png?token=" + token, "not plain"},
		"errTwice":       {sign + "agent-files/agent-inputs/1/%252e%252e/x.png?token=" + token, "not plain"},
		"errSomebodys":   {other.URL, "somebody else"},
		"errNoUrl":       {"x", "not of this host"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, content := range []any{binary("image/png", c.url), binary("application/pdf", c.url), binary("audio/ogg", c.url),
				map[string]any{"type": "image", "source": map[string]any{"type": "url", "value": c.url, "mimeType": "image/png"}}} {
				status, raw := h.call(h.key, "POST", "/agent/run", input("t", "r", "m", []any{map[string]any{"type": "text", "text": "x"}, content}))
				if status != 422 || !strings.Contains(raw, c.want) || !strings.Contains(raw, "body.messages[0].content[1].url") || strings.Contains(raw, token) {
					t.Errorf("%v: %d %s", content, status, raw)
				}
			}
		})
	}
	for _, id := range []string{"x", "agent-files/" + other.Path, "agent-files/../x"} {
		status, raw := h.call(h.key, "POST", "/agent/run", input("t", "r", "m", []any{map[string]any{"type": "binary", "mimeType": "image/png", "id": id}}))
		if status != 422 || !strings.Contains(raw, "content[0].id") {
			t.Errorf("id %s: %d %s", id, status, raw)
		}
	}
	if n := len(h.stored()); n != 0 {
		t.Errorf("%d messages are stored", n)
	}
}

func TestUploadRefused(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	for name, c := range map[string]struct {
		field, mimeType string
		data            []byte
		status          int
	}{
		"errField": {"upload", "text/plain", []byte("x"), 422},
		"errEmpty": {"file", "text/plain", nil, 400},
		"errLarge": {"file", "text/plain", make([]byte, 1<<20+1), 413},
		"errHuge":  {"file", "text/plain", make([]byte, 3<<20), 413},
	} {
		t.Run(name, func(t *testing.T) {
			if status, raw := h.upload(h.key, c.field, "x", c.mimeType, c.data); status != c.status || !strings.Contains(raw, "body") {
				t.Errorf("%d %s", status, raw)
			}
		})
	}
	if status, raw := h.call(h.key, "POST", "/agent/attachments", `{}`); status != 415 {
		t.Errorf("no form: %d %s", status, raw)
	}
	if kept, err := filepath.Glob(filepath.Join(h.dir, "attachments", "agent-files", "agent-inputs", "*", "*")); err != nil || len(kept) != 0 {
		t.Errorf("kept %v, %v", kept, err)
	}
}

// What is inline goes on inline; what runs in a browser is nothing that it runs.
func TestInline(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	data := base64.StdEncoding.EncodeToString(png)
	h.run(h.key, input("t", "r", "m", []any{map[string]any{"type": "binary", "mimeType": "image/png", "data": data}}))
	m, _ := h.history(h.key, "threadId=t")
	var contents []map[string]string
	if err := json.Unmarshal(m[0].Content, &contents); err != nil || len(contents) != 1 || contents[0]["data"] != data || contents[0]["type"] != "binary" {
		t.Errorf("%s, %v", m[0].Content, err)
	}
	if u := h.sent(h.key, "x.svg", "image/svg+xml", []byte("<svg onload=alert(1)>")); u.MimeType != "application/octet-stream" {
		t.Errorf("%+v", u)
	}
}

// History is the same messages, oldest first, in pages.
func TestHistory(t *testing.T) {
	t.Parallel()
	h := start(t, setup{agent: agentOfAll})
	for i, text := range []string{"two", "tools", "mixed", "edit", "hello"} {
		h.run(h.key, input("a thread/ü?", fmt.Sprintf("r%d", i), fmt.Sprintf("m%d", i), text))
	}
	h.run(h.key, input("another", "r", "m", "hello"))
	if status, raw := h.call(h.admin, "POST", "/channels/agui/messages", `{"conversation_id":"another","parts":[{"type":"vision","kind":"output","mimeType":"image/png","url":"https://example.org/x.png"}]}`); status != 202 {
		t.Fatalf("%d %s", status, raw)
	}
	const thread = "threadId=a+thread%2F%C3%BC%3F"
	all, next := h.history(h.key, thread)
	if next != "" {
		t.Errorf("there is more: %q", next)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.Role+" "+string(m.Content))
		if _, err := time.Parse(message.TimeFormat, m.CreatedAt); err != nil || m.ID == "" {
			t.Errorf("%+v", m)
		}
	}
	want := []string{
		`user [{"text":"two","type":"text"}]`, `assistant [{"text":"one","type":"text"}]`, `assistant [{"text":"and another","type":"text"}]`,
		`user [{"text":"tools","type":"text"}]`, `assistant [{"text":"It is clear.","type":"text"}]`, `tool "{\"sky\":\"clear\"}"`,
		`user [{"text":"mixed","type":"text"}]`, `assistant [{"text":"First","type":"text"},{"text":"Hi","type":"text"},{"text":"second","type":"text"}]`,
		`user [{"text":"edit","type":"text"}]`, `assistant [{"text":"first","type":"text"}]`, `assistant [{"text":"second","type":"text"}]`,
		`user [{"text":"hello","type":"text"}]`, `assistant [{"text":"said hello","type":"text"}]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if m := all[1].Metadata; m["run_id"] != "r0" || m["stage"] != "intent" || m["message_id"] != all[1].ID || m["latency_ms"] == nil {
		t.Errorf("an answer has %v", m)
	}
	if all[0].ID != "m0" || len(all[4].ToolCalls) != 1 || all[5].ToolCallID != "c1" || len(all[7].Parts) != 3 || all[0].Parts != nil {
		t.Errorf("%+v", all)
	}
	var paged []said
	for cursor := ""; ; {
		page, next := h.history(h.key, thread+"&limit=4&cursor="+cursor)
		paged = append(page, paged...)
		if cursor = next; next == "" {
			break
		}
	}
	if len(paged) != len(all) {
		t.Errorf("in pages: %d messages", len(paged))
	}
	for i := range paged {
		if paged[i].ID != all[i].ID {
			t.Errorf("in pages: message %d is %s", i, paged[i].ID)
		}
	}
	if status, raw := h.call(h.key, "GET", "/agent/history?threadId=another&limit=1&cursor=eA", ""); status != 422 {
		t.Errorf("a cursor of another list: %d %s", status, raw)
	}
	if m, _ := h.history(h.key, "threadId=another"); string(m[2].Content) != `[{"mimeType":"image/png","type":"binary","url":"https://example.org/x.png"}]` {
		t.Errorf("a picture is %s", m[2].Content)
	}
}

// A file of the host's machine comes as an url, and nobody is told where it is.
func TestPathsStayHere(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	h.run(h.key, input("t", "r", "m", "hi"))
	path := filepath.Join(h.shared, "picture.png")
	if err := os.WriteFile(path, png, 0o600); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"conversation_id": "t", "image": map[string]string{"path": path, "caption": "a picture"}})
	if err != nil {
		t.Fatal(err)
	}
	if status, raw := h.call(h.admin, "POST", "/channels/agui/messages", string(body)); status != 202 {
		t.Fatalf("%d %s", status, raw)
	}
	_, raw := h.call(h.key, "GET", "/agent/history?threadId=t", "")
	url := regexp.MustCompile(`http[^"]+token=[^"]+`).FindString(raw)
	if strings.Contains(raw, h.shared) || url == "" || get(t, url) != string(png) {
		t.Errorf("history is %s", raw)
	}
}
