package main

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// node runs a program beside the clients.
func node(t *testing.T, env []string, args ...string) string {
	t.Helper()
	dir := nodePackages(t, "agui")
	ctx, cancel := context.WithTimeout(t.Context(), 3*wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir, cmd.Env = dir, slices.Concat(baseEnv, env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// runKey makes a key of scope agent:run.
func (h *host) runKey(name string) string {
	h.t.Helper()
	var k struct{ Key string }
	h.json(&k, "key", "create", name, "--scope", "agent:run", "--expires", "720h")
	return k.Key
}

// The clients of AG-UI take what the host says: streams, tools, files, history
// and errors, with no word of complaint.
func TestAGUIClients(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]string{"present": "@ag-ui/client", "previous": "client-previous"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startHost(t)
			env := []string{"PONTOON_URL=" + h.url, "PONTOON_KEY=" + h.runKey("app"), "PONTOON_ADMIN=" + h.key}
			if out := node(t, env, "client.mjs", client); out != "ok\n" {
				t.Errorf("found %s", out)
			}
		})
	}
}

var jsBlock = regexp.MustCompile("(?s)```js\n(.*?)```")

// The programs of docs/frontends.md run as they are written there.
func TestFrontendsDoc(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../../docs/frontends.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := jsBlock.FindAllSubmatch(doc, -1)
	if len(programs) != 2 {
		t.Fatalf("found %d programs", len(programs))
	}
	h := startHost(t)
	env := []string{"PONTOON_URL=" + h.url, "PONTOON_KEY=" + h.runKey("app")}
	dir := nodePackages(t, "agui")
	for i, name := range []string{"fetch.mjs", "httpagent.mjs"} {
		writeFile(t, filepath.Join(dir, name), string(programs[i][1]))
		if out := node(t, env, name, "hello"); out != "echo: hello\n" {
			t.Errorf("%s prints %q", name, out)
		}
	}
	holds(t, h.cli("messages", "agui"), ": hello  (handled)", "echo: echo: hello  (sent)")
}

// Keys are made, listed and deleted; each is shown once and ends at once.
func TestKeys(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	out := h.cli("key", "create", "app", "--scope", "agent:run")
	key := regexp.MustCompile(`pnk_\S+`).FindString(out)
	if key == "" || !strings.Contains(out, "shown only now") {
		t.Fatalf("printed %q", out)
	}
	history := func() int {
		req, err := http.NewRequest(http.MethodGet, h.url+"/api/v1/agent/history?threadId=t", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := history(); got != http.StatusNotFound { // let in, but there is no thread
		t.Errorf("the key gets %d", got)
	}
	eventually(t, "its use is noted", func() bool { return !strings.Contains(h.cli("key", "list"), "–     –") })
	if out := h.cli("key", "list"); !strings.Contains(out, "app") || !strings.Contains(out, "agent:run") || strings.Contains(out, key) {
		t.Errorf("listed %q", out)
	}
	h.cli("key", "delete", "app")
	if got := history(); got != http.StatusUnauthorized {
		t.Errorf("a deleted key gets %d", got)
	}
	holds(t, h.cli("key", "list"), "app")
	for name, c := range map[string]struct {
		words []string
		code  int
	}{
		"errScope": {[]string{"key", "create", "x", "--scope", "all"}, 2}, "errNoScope": {[]string{"key", "create", "x"}, 2},
		"errNobody": {[]string{"key", "delete", "nobody"}, 1},
	} {
		if r := runCommand(t, h.env(), "", c.words...); r.code != c.code || r.err == "" {
			t.Errorf("%s: exit status %d, %q", name, r.code, r.err)
		}
	}
	if strings.Contains(h.errs.String(), key) {
		t.Error("the log holds the key")
	}
}
