package api_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// A file of a directory that the operator named goes by its path to an adapter on
// this machine, with a url beside it; any other is refused in words that say what
// is expected.
func TestFilesByPath(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	dir, other := h.Shared, t.TempDir()
	good := filepath.Join(dir, "deep", "a.txt")
	if err := os.Mkdir(filepath.Dir(good), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{good: "hello", filepath.Join(dir, ".hidden"): "hello", filepath.Join(other, "b.txt"): "secret"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large.bin")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 100<<20); err != nil { // a file with holes
		t.Fatal(err)
	}
	p := h.Peer(h.Make("c", ""), "text", "file")
	send := func(path string) (int, string) {
		return h.Ask("POST", "/channels/c/messages", `{"conversation_id":"r","file":{"path":"`+path+`"}}`)
	}
	if status, text := send(good); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, text)
	}
	file := p.Next("send_file")["file"].(map[string]any)
	url, _ := file["url"].(string)
	if content := h.Get(url).Body; file["path"] != good || content != "hello" {
		t.Errorf("came as %v, with %q at the url", file, content)
	}
	for path, want := range map[string]string{
		filepath.Join(other, "b.txt"):      "found one in another directory, expected one that the operator named with pontoon serve --files DIR",
		filepath.Join(dir, "out", "b.txt"): "through no symlink",
		filepath.Join(dir, "absent"):       "found nothing there",
		filepath.Join(dir, ".hidden"):      "hidden",
		filepath.Join(dir, "deep"):         "expected a regular file",
		"deep/a.txt":                       "expected an absolute one",
		large:                              "found 104857600 bytes, expected at most 26214400",
	} {
		if status, text := send(path); status != http.StatusUnprocessableEntity || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// A signed url of another channel's attachment is no right to it: each message that
// names one could read it for ever. It is refused whoever names it, and nothing is stored.
func TestFileOfAnotherChannel(t *testing.T) {
	t.Parallel()
	urls, answered := make(chan string, 1), make(chan error, 1)
	lies := hosttest.AgentFunc(func(ctx context.Context, _ hub.Turn, r hub.Reply) error {
		_, err := r.Send(ctx, message.Message{Parts: []message.Part{message.NewImage(wire.Image{URL: <-urls})}})
		answered <- err
		return nil
	})
	h := hosttest.Start(t, hosttest.Whole, hosttest.WithAgents(map[string]hub.Agent{"liar": lies}))
	h.Channel("c1", hosttest.WithAgent("liar"))
	h.Make("c2", "")
	row := h.ByName("c2")
	o, err := h.Files.PutBytes(t.Context(), row.ID, []byte("secret of c2"), attach.Claim{Name: "a.txt", MimeType: "text/plain"})
	if err != nil {
		t.Fatal(err)
	}
	url := h.Files.Sign(o.Ref(), http.MethodGet, 0)
	key := h.NewKey("one", `"scopes":["send","read"],"channels":["c1"]`)
	for name, content := range map[string]string{
		"file": `"file":{"url":"` + url + `"}`, "image": `"image":{"url":"` + url + `"}`,
		"parts": `"parts":[{"type":"file","fileName":"a.txt","uploadStatus":"completed","url":"` + url + `"}]`,
	} {
		status, text := h.As(key, "POST", "/channels/c1/messages", `{"conversation_id":"q",`+content+`}`)
		if status != http.StatusUnprocessableEntity || !strings.Contains(text, "another channel") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	c := h.Attach11(t, h.ByName("c1"), "parts")
	for name, named := range map[string]string{
		"attachments": `"attachments":[{"url":"` + url + `","name":"a.txt"}]`,
		"parts":       `"parts":[{"type":"file","fileName":"a.txt","uploadStatus":"completed","url":"` + url + `"}]`,
	} {
		c.Send(`{"type":"message","conversation_id":"q","message_id":"` + name + `","text":"look",` + named + `}`)
		c.WantError("wrong_type", name, "another channel")
	}
	if status, text := h.As(key, "GET", "/channels/c1/messages", ""); status != http.StatusOK || strings.Contains(text, "a.txt") {
		t.Errorf("stored: %d %s", status, text)
	}
	urls <- url
	c.Send(`{"type":"message","conversation_id":"r","message_id":"m","text":"hello"}`)
	if err := await.Value(t, "the agent's answer", answered); !errors.Is(err, attach.ErrElsewhere) {
		t.Errorf("an agent's answer: %v", err)
	}
	if status, text := h.Ask("POST", "/channels/c2/messages", `{"conversation_id":"q","file":{"url":"`+url+`"}}`); status/100 != 2 && status != http.StatusConflict {
		t.Errorf("its own channel: %d %s", status, text)
	}
}
