package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// livedIn is a host whose data directory holds what years leave there: an unused
// setup link, keys that were replaced, the database of before a restore, a
// plugin's files and attachments. The directory above it may be sent from.
func livedIn(t *testing.T, named bool) (h *host, above string) {
	t.Helper()
	above = t.TempDir()
	plugins := filepath.Join(t.TempDir(), "plugins.yaml")
	writeFile(t, plugins, "plugins:\n  - {name: pages, command: [pontoon, adapter, run, webchat], config: {listen: '127.0.0.1:0'}}\n")
	h = &host{t: t, data: filepath.Join(above, "data"), args: []string{"--plugins", plugins}}
	if named {
		h.args = append(h.args, "--files", above)
	}
	env := []string{"PONTOON_DATA=" + h.data, "PONTOON_URL=http://127.0.0.1:1"}
	h.start("127.0.0.1:0")
	h.must(nil, "PUT", "/secrets/NAME", `{"value":"x"}`)
	h.channel("a", `,"queue":true`)
	h.must(nil, "POST", "/channels/a/messages", `{"conversation_id":"r","parts":[{"type":"file","fileName":"a.txt","mimeType":"text/plain","data":"aGVsbG8="}]}`)
	saved := filepath.Join(h.data, "saved")
	h.cli("backup", saved)
	h.stop()
	for _, command := range [][]string{{"secret", "rotate-key"}, {"restore", saved}} {
		if r := runCommand(t, env, "", command...); r.code != 0 {
			t.Fatalf("%v: %+v", command, r)
		}
	}
	former, err := filepath.Glob(filepath.Join(h.data, "master.key.*"))
	if err != nil || len(former) != 1 {
		t.Fatalf("former keys: %v, %v", former, err)
	}
	copyFile(t, former[0], filepath.Join(h.data, "master.key"))
	copyFile(t, plugins, filepath.Join(h.data, "mine", "notes.txt"))
	h.again()
	return h, above
}

// ways are the contents that could make the host, or an adapter beside it, read a
// file of this machine.
func ways(path string) map[string]string {
	quoted, _ := json.Marshal(path)
	address, _ := json.Marshal("file://" + path)
	spaced, _ := json.Marshal(" FILE:" + path)
	return map[string]string{
		"file":            fmt.Sprintf(`"file":{"path":%s}`, quoted),
		"file, named":     fmt.Sprintf(`"file":{"path":%s,"filename":"x.txt"}`, quoted),
		"file with url":   fmt.Sprintf(`"file":{"path":%s,"url":"https://example.org/x"}`, quoted),
		"file by url":     fmt.Sprintf(`"file":{"url":%s}`, address),
		"image":           fmt.Sprintf(`"image":{"path":%s}`, quoted),
		"image by url":    fmt.Sprintf(`"image":{"url":%s}`, address),
		"file part":       fmt.Sprintf(`"parts":[{"type":"file","fileName":"x","path":%s}]`, quoted),
		"vision part":     fmt.Sprintf(`"parts":[{"type":"vision","kind":"output","mimeType":"image/png","path":%s}]`, quoted),
		"another case":    fmt.Sprintf(`"parts":[{"type":"file","fileName":"x","Path":%s}]`, quoted),
		"capitals":        fmt.Sprintf(`"parts":[{"type":"vision","kind":"output","mimeType":"image/png","PATH":%s}]`, quoted),
		"said twice":      fmt.Sprintf(`"parts":[{"type":"file","fileName":"x","path":%s,"path":""}]`, quoted),
		"escaped":         fmt.Sprintf(`"parts":[{"type":"file","fileName":"x","p\u0061th":%s}]`, quoted),
		"part by url":     fmt.Sprintf(`"parts":[{"type":"file","fileName":"x","url":%s}]`, address),
		"part by odd url": fmt.Sprintf(`"parts":[{"type":"vision","kind":"output","mimeType":"image/png","URL":%s}]`, spaced),
		"audio by url":    fmt.Sprintf(`"parts":[{"type":"audio-output","mimeType":"audio/ogg","status":"completed","url":%s}]`, address),
	}
}

// No file of the data directory goes out, whoever asks and however it is named,
// even if the directory lies in one that the operator named.
func TestNoFileOfTheDataDirectoryIsSent(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]bool{"no directory is named": false, "the one above is named": true} {
		t.Run(name, func(t *testing.T) {
			h, above := livedIn(t, named)
			limited := h.newKey("limited", `"scopes":["send"],"channels":["a"]`)
			var made struct{ Token string }
			h.must(&made, "POST", "/channels/a/tokens", `{}`)
			p := h.attach(made.Token, "text", "image", "file")
			p.next("send_file") // what waited in the queue
			tried, seen := h.tryEveryFile(above, limited)
			for _, must := range []string{"setup.link", "admin.key", "master.key", "pontoon.db", "saved", "notes.txt"} {
				if !seen[must] {
					t.Errorf("%s was not tried: %v", must, seen)
				}
			}
			h.must(nil, "POST", "/channels/a/messages", `{"conversation_id":"r","text":"the end"}`)
			if f := p.next("send"); f["text"] != "the end" {
				t.Errorf("after all of them came %v", f)
			}
			t.Logf("%d requests for %d names of files", tried, len(seen))
		})
	}
}

// tryEveryFile asks for each file of the data directory in every way, and returns
// how often, and for which names.
func (h *host) tryEveryFile(above, key string) (tried int, seen map[string]bool) {
	h.t.Helper()
	links := filepath.Join(above, "links")
	if err := os.Mkdir(links, 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Symlink(h.data, filepath.Join(above, "linked")); err != nil {
		h.t.Fatal(err)
	}
	seen = map[string]bool{}
	err := filepath.WalkDir(h.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		seen[d.Name()] = true
		rel, err := filepath.Rel(h.data, path)
		if err != nil {
			return err
		}
		ask := func(name, way, content string) {
			tried++
			status, text := h.as(key, "POST", "/channels/a/messages", `{"conversation_id":"r",`+content+`}`)
			told := strings.Contains(text, "is not of a file that may be sent") || strings.Contains(text, "an http or https url")
			if status != 422 || !told || strings.Contains(text, h.data) && !strings.Contains(name, h.data) {
				h.t.Errorf("%s, as %s: %d %s", name, way, status, text)
			}
		}
		for way, content := range ways(path) {
			ask(path, way, content)
		}
		soft, hard := filepath.Join(links, fmt.Sprintf("soft-%d", tried)), filepath.Join(links, fmt.Sprintf("hard-%d", tried))
		if err := errors.Join(os.Symlink(path, soft), os.Link(path, hard)); err != nil {
			return err
		}
		for _, name := range []string{filepath.Join(above, "linked", rel), soft, hard, above + "/links/../data/" + rel, above + "//data/" + rel, h.data + "/./" + rel, rel, "/proc/self/root" + path} {
			ask(name, "file", ways(name)["file"])
			ask(name, "another case", ways(name)["another case"])
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return tried, seen
}

// The directories of --files are those from which a path may be sent; one that is not
// there, or lies in the data directory, is refused at the start.
func TestFilesFlag(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	good := filepath.Join(dir, "a.txt")
	writeFile(t, good, "hello")
	writeFile(t, filepath.Join(other, "b.txt"), "secret")
	h := startHost(t, "--files", dir)
	p := h.attach(h.channel("c", ""), "text", "file")
	send := func(path string) (int, string) {
		return h.request("POST", "/channels/c/messages", `{"conversation_id":"r","file":{"path":"`+path+`"}}`)
	}
	if status, text := send(good); status != 202 {
		t.Fatalf("%d %s", status, text)
	}
	if file := p.next("send_file")["file"].(map[string]any); file["path"] != good || file["filename"] != "a.txt" || content(t, file) != "hello" {
		t.Errorf("came as %v", file)
	}
	if status, text := send(filepath.Join(other, "b.txt")); status != 422 || !strings.Contains(text, "that the operator named with pontoon serve --files DIR") {
		t.Errorf("of another directory: %d %s", status, text)
	}
	if r := runCommand(t, nil, "", "serve", "--data", h.data, "--files", filepath.Join(dir, "absent")); r.code != 2 || !strings.Contains(r.err, "--files") {
		t.Errorf("a directory that is not there: %+v", r)
	}
	h.stop()
	if r := runCommand(t, nil, "", "serve", "--data", h.data, "--listen", "127.0.0.1:0", "--files", filepath.Join(h.data, "attachments")); r.code != 1 || !strings.Contains(r.err, "--files") || !strings.Contains(r.err, "expected one outside of it") {
		t.Errorf("a directory in the data directory: %+v", r)
	}
	h.again()
}

// content is what is at the url of a file as an adapter gets it.
func content(t *testing.T, file map[string]any) string {
	t.Helper()
	url, _ := file["url"].(string)
	_, page := fetch(t, url, "")
	return page
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, b, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A command uploads the file that it names, wherever it is.
func TestSendUploads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "report.txt"), "numbers")
	h := startHost(t)
	p := h.attach(h.channel("c", ""), "text", "file", "image")
	holds(t, h.cli("send", "c", "r", "--file", filepath.Join(dir, "report.txt")), "sent")
	file := p.next("send_file")["file"].(map[string]any)
	if file["path"] != nil || file["filename"] != "report.txt" || content(t, file) != "numbers" {
		t.Errorf("came as %v", file)
	}
	if r := runCommand(t, h.env(), "", "send", "c", "r", "--image", filepath.Join(dir, "report.txt")); r.code != 1 || !strings.Contains(r.err, "expected a picture") {
		t.Errorf("a text as a picture: %+v", r)
	}
	limited := h.newKey("limited", `"scopes":["send"],"channels":["c"]`)
	h.channel("other", "")
	if status, text := h.as(limited, "POST", "/channels/other/attachments", ""); status != 404 {
		t.Errorf("an upload to another channel: %d %s", status, text)
	}
}
