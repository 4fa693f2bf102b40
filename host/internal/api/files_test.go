package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
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
	} {
		if status, text := send(path); status != http.StatusUnprocessableEntity || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}
