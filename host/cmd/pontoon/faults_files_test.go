//go:build linux

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The bytes that were hashed run, or none.
func TestChecksum(t *testing.T) {
	t.Parallel()
	source, err := hostileBinary()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name string, content []byte, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sumOf := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	flipped := slices.Clone(program)
	flipped[len(flipped)/2] ^= 1
	link := filepath.Join(dir, "link")
	pinned := put("pinned", program, 0o755)
	if err := os.Symlink(pinned, link); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	for _, sub := range []string{open, filepath.Join(dir, "mode")} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	inOpen, writable := put("open/program", program, 0o755), put("mode/program", program, 0o777)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	sum := "sha256: " + sumOf(program)
	p := newPit(t, []plugin{
		{name: "pinned", mode: "ok", path: pinned, yaml: sum},
		{name: "wrong", mode: "ok", path: pinned, yaml: "sha256: " + sumOf(flipped)},
		{name: "link", mode: "ok", path: link, yaml: sum},
		{name: "writable", mode: "ok", path: writable, yaml: sum},
		{name: "open", mode: "ok", path: inOpen, yaml: sum},
		{name: "unpinned", mode: "ok", path: pinned},
	}, "--require-checksums")
	refused := func(name string, words ...string) {
		t.Helper()
		row := p.until(t, wait, name, "quarantined", func(r pluginRow) bool { return r.State == "quarantined" })
		t.Logf("%s: %s", name, row.Reason)
		for _, word := range words {
			if !strings.Contains(row.Reason, word) {
				t.Errorf("%s: found reason %q, expected one with %q", name, row.Reason, word)
			}
		}
		if row.Restarts != 0 && name != "pinned" {
			t.Errorf("%s: tried %d times more", name, row.Restarts)
		}
	}
	if row := p.running(t, "pinned"); row.SHA256 != sumOf(program) {
		t.Errorf("runs as %q", row.SHA256)
	}
	p.echoes(t, "pinned", "hello")
	refused("wrong", sumOf(program), sumOf(flipped))
	refused("link", "symlink")
	refused("writable", "writable")
	refused("open", "writable")
	refused("unpinned", "sha256")

	before := p.plugin("pinned")
	put("pinned", flipped, 0o755)
	p.echoes(t, "pinned", "what runs goes on")
	if now := p.plugin("pinned"); now.Pid != before.Pid {
		t.Errorf("it was restarted: %+v", now)
	}
	p.must(nil, "POST", "/plugins/"+p.full("pinned")+"/restart", "")
	refused("pinned", sumOf(program), sumOf(flipped))
	if running := p.shimOf("pinned"); running != 0 {
		t.Error("something of it runs")
	}
	put("pinned", program, 0o755)
	p.must(nil, "POST", "/plugins/"+p.full("pinned")+"/restart", "")
	p.running(t, "pinned")
	p.echoes(t, "pinned", "mended")
}

// A change of plugins.yaml touches the plugins that it is about, and no others;
// a file that is wrong changes nothing.
func TestReloadPlugins(t *testing.T) {
	t.Parallel()
	keep, change, gone, added := plugin{name: "keep", mode: "ok"}, plugin{name: "change", mode: "ok"}, plugin{name: "gone", mode: "ok"}, plugin{name: "added", mode: "ok"}
	p := newPit(t, []plugin{keep, change, gone})
	before := map[string]pluginRow{}
	for _, name := range []string{"keep", "change", "gone"} {
		before[name] = p.running(t, name)
		p.echoes(t, name, "hello")
	}
	same := func(name string) {
		t.Helper()
		if now := p.plugin(name); now.Pid != before[name].Pid || now.State != "running" || now.Restarts != 0 {
			t.Errorf("%s did not go on: %+v, before %+v", name, now, before[name])
		}
		p.echoes(t, name, "still here")
	}

	change.args = []string{"elsewhere=127.0.0.1:1"}
	p.write(keep, change, added)
	p.signal(syscall.SIGHUP)
	p.until(t, wait, "change", "another process", func(r pluginRow) bool { return r.State == "running" && r.Pid != before["change"].Pid })
	eventually(t, "the added one is there", func() bool { _, ok := p.plugins()["added"]; return ok })
	for _, name := range []string{"change", "added"} {
		before[name] = p.running(t, name)
		p.echoes(t, name, "new")
	}
	if _, ok := p.plugins()["gone"]; ok || len(p.plugins()) != 3 {
		t.Errorf("plugins: %v", p.plugins())
	}
	if line := p.processes()[before["gone"].Pid]; line != "" {
		t.Errorf("the removed one runs: %s", line)
	}
	p.must(nil, "GET", "/channels/"+p.full("gone"), "") // its channel is kept
	same("keep")

	text := p.yaml(keep, change, added) + "  - name: keep-" + p.mark + "\n    colour: red\n"
	line := len(lines(text)) - 1
	writeFile(t, p.file, text)
	where := p.file + ":" + strconv.Itoa(line) + ":"
	status, answer := p.request("POST", "/plugins/_reload", "")
	if status < 400 || status >= 500 || !strings.Contains(answer, where) {
		t.Errorf("an invalid file is answered with %d %s, expected an error with %s", status, answer, where)
	}
	p.signal(syscall.SIGHUP)
	eventually(t, "the error is logged", func() bool { return strings.Contains(p.errs.String(), where) })
	for _, name := range []string{"keep", "change", "added"} {
		same(name)
	}

	p.reload(keep, gone) // its channel is there already
	p.running(t, "gone")
	p.echoes(t, "gone", "here again")
	same("keep")
	p.reload()
	p.none(wait)
}

// A plugin sees the variables that its entry names, and those of the handshake.
func TestPluginEnvironment(t *testing.T) {
	t.Parallel()
	p := newPit(t, []plugin{{name: "a", mode: "ok"}, {name: "b", mode: "ok", yaml: "env: [HOME, NOT_THERE]"}})
	for name, want := range map[string][]string{"a": {"TMPDIR"}, "b": {"TMPDIR", "HOME"}} {
		p.running(t, name)
		var found []string
		for _, variable := range strings.Fields(p.line(t, name, "env", "env"))[1:] {
			if !strings.HasPrefix(variable, "PLUGIN_") && !strings.Contains(variable, "COOKIE") && !strings.HasPrefix(variable, "PONTOON_") {
				found = append(found, variable)
			}
		}
		if !slices.Equal(found, want) {
			t.Errorf("%s sees %v, expected %v", name, found, want)
		}
	}
}

// Ten plugins start beside each other.
func TestStartTime(t *testing.T) {
	if figures {
		plainHost(t)
	} else {
		t.Parallel()
	}
	var ten []plugin
	for i := range 10 {
		ten = append(ten, plugin{name: "p" + strconv.Itoa(i), mode: "ok"})
	}
	p := newPit(t, nil)
	p.stop()
	p.write(ten...)
	began := time.Now()
	p.start("127.0.0.1:0") // ready when they run
	took := time.Since(began)
	for _, e := range ten {
		if row := p.plugin(e.name); row.State != "running" || row.Restarts != 0 {
			t.Errorf("%s: %+v", e.name, row)
		}
	}
	t.Logf("| start of the host with 10 plugins, until all run | %s |", took.Round(time.Millisecond))
}
