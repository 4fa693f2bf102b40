package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// A client can't set the metadata by which the host links, changes or takes back
// messages: REST names the key that it refuses, and an adapter's frame has no metadata.
func TestReservedMetadata(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	row := h.Channel("c", hosttest.WithQueue)
	h.Make("other", "")
	theirs := h.ByName("other")
	o, err := h.Files.PutBytes(t.Context(), theirs.ID, []byte("secret"), attach.Claim{Name: "a.txt", MimeType: "text/plain"})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{message.MetaLinks: `{"0":"` + o.ID() + `"}`}
	all := ""
	for _, key := range message.HostKeys() {
		value := values[key]
		if value == "" {
			value = `"1"`
		}
		all += `,"` + key + `":` + value
		status, text := h.Ask("POST", "/channels/c/messages", `{"conversation_id":"r","text":"x","metadata":{"own":1,"`+key+`":`+value+`}}`)
		if status != http.StatusUnprocessableEntity || !strings.Contains(text, "metadata."+key+": found a key that only the host sets") {
			t.Errorf("%s: %d %.300s", key, status, text)
		}
	}
	if left := h.Messages("c"); len(left) != 0 {
		t.Errorf("stored: %+v", left)
	}
	h.Must(nil, "POST", "/channels/c/messages", `{"conversation_id":"r","text":"x","metadata":{"own":1,"stage":"s"}}`)
	c := h.Attach11(t, row, "parts ack")
	c.NextSent("send_parts")
	c.Send(`{"type":"message","conversation_id":"r","message_id":"m","text":"hello","metadata":{` + all[1:] + `}}`)
	c.NextSent("message_ack")
	_, text := h.Ask("GET", "/channels/c/messages?direction=in", "")
	if !strings.Contains(text, "hello") || strings.Contains(text, `"links"`) || strings.Contains(text, `"edits"`) {
		t.Errorf("an adapter's message came with metadata: %s", text)
	}
}

// A url of this host is one of its own by what its token says, however the host and
// the path in it are written.
func TestFileOfAnotherChannelByAnotherName(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	h.Make("c1", `,"queue":true`)
	h.Make("c2", `,"queue":true`)
	o, err := h.Files.PutBytes(t.Context(), h.ByName("c2").ID, []byte("secret of c2"), attach.Claim{Name: "a.txt", MimeType: "text/plain"})
	if err != nil {
		t.Fatal(err)
	}
	url := h.Files.Sign(o.Ref(), http.MethodGet, 0)
	for name, alias := range map[string]string{
		"asItIs":       url,
		"anotherName":  strings.Replace(url, "127.0.0.1", "localhost", 1),
		"userInfo":     strings.Replace(url, "http://", "http://u:p@", 1),
		"doubleSlash":  strings.Replace(url, "/storage/", "//storage/", 1),
		"dotSegment":   strings.Replace(url, "/storage/", "/./storage/", 1),
		"encodedQuery": strings.Replace(url, "?token=", "?%74oken=", 1),
		"upperScheme":  strings.Replace(url, "http://", "HTTP://", 1),
		"fragment":     url + "#x",
	} {
		for _, content := range []string{`"file":{"url":"` + alias + `"}`, `"parts":[{"type":"file","fileName":"a.txt","uploadStatus":"completed","url":"` + alias + `"}]`} {
			status, text := h.Ask("POST", "/channels/c1/messages", `{"conversation_id":"q",`+content+`}`)
			if status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %d %s", name, status, text)
			}
		}
	}
	if left := h.Messages("c1"); len(left) != 0 {
		t.Errorf("stored: %+v", left)
	}
	own := strings.Replace(url, "127.0.0.1", "localhost", 1)
	h.Must(nil, "POST", "/channels/c2/messages", `{"conversation_id":"q","file":{"url":"`+own+`"}}`)
	foreign := "https://elsewhere.example/a.txt?token=x.y.z"
	h.Must(nil, "POST", "/channels/c1/messages", `{"conversation_id":"q","file":{"url":"`+foreign+`"}}`)
}

// Text that would be stored as other characters than came is refused, with its place.
func TestTextRefused(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	h.Make("c", `,"queue":true`)
	for text, want := range map[string]string{
		"a\xffb":       "body: found bytes that are not UTF-8 at byte 34",
		`a\ud800b`:     `body: found \\ud800 at byte 34, half of a surrogate pair`,
		`\udc00\ud800`: `body: found \\udc00 at byte 33`,
	} {
		status, answer := h.Ask("POST", "/channels/c/messages", `{"conversation_id":"r", "text": "`+text+`"}`)
		if status != http.StatusBadRequest || !strings.Contains(answer, want) {
			t.Errorf("%q: %d %s", text, status, answer)
		}
	}
	h.Must(nil, "POST", "/channels/c/messages", `{"conversation_id":"r","text":"\ud83d\ude00 \\ud800"}`)
	if left := h.Messages("c"); len(left) != 1 || left[0].Text != `😀 \ud800` {
		t.Errorf("stored: %+v", left)
	}
}
