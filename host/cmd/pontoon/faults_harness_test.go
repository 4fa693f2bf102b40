//go:build linux

package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// hostileBinary builds the plugin that misbehaves, once. It has no race
// detector: that needs more memory than a plugin may have.
var hostileBinary = sync.OnceValues(func() (string, error) {
	out := filepath.Join(filepath.Dir(ircBinary), "hostile", "program") // where TestMain sweeps
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "../../internal/supervisor/hostile")
	text, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build hostile: %w\n%s", err, text)
	}
	return out, err
})

// pit is a host with plugins that misbehave.
type pit struct {
	*host
	t       *testing.T
	dir     string
	file    string // plugins.yaml
	mark    string // in the arguments of every process that belongs to it
	program string // the hostile one
}

// newPit starts a host whose plugins.yaml names these.
func newPit(t *testing.T, plugins []plugin, args ...string) *pit {
	t.Helper()
	program, err := hostileBinary()
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	p := &pit{t: t, dir: t.TempDir(), mark: "m" + hex.EncodeToString(random), program: program}
	p.file = filepath.Join(p.dir, "plugins.yaml")
	t.Cleanup(func() { p.none(wait) }) // runs after the host's own
	p.write(plugins...)
	p.host = startHost(t, append([]string{"--plugins", p.file}, args...)...)
	return p
}

// plugin is an entry of plugins.yaml that runs the hostile program.
type plugin struct {
	name string
	mode string   // of the hostile program
	args []string // of its own
	yaml string   // further keys, one a line
	path string   // of the program; "" = the hostile one
}

// full is the plugin's name: no process of another test has it in its title.
func (p *pit) full(name string) string { return name + "-" + p.mark }

// path is that of a file which a plugin writes, and may.
func (p *pit) path(kind, name string) string { return filepath.Join(p.dir, "written", kind+"-"+name) }

func (p *pit) write(plugins ...plugin) { writeFile(p.t, p.file, p.yaml(plugins...)) }

// yaml is the text of plugins.yaml.
func (p *pit) yaml(plugins ...plugin) string {
	var b strings.Builder
	b.WriteString("plugins:\n")
	if len(plugins) == 0 {
		return "plugins: []\n"
	}
	if err := os.MkdirAll(filepath.Dir(p.path("", "")), 0o700); err != nil {
		p.t.Fatal(err)
	}
	for _, e := range plugins {
		program := p.program
		if e.path != "" {
			program = e.path
		}
		command, err := json.Marshal(append([]string{program, e.mode, "mark=" + p.mark}, e.args...)) // JSON is YAML
		if err != nil {
			p.t.Fatal(err)
		}
		fmt.Fprintf(&b, "  - name: %s\n    command: %s\n    config: {port_file: %q}\n", p.full(e.name), command, p.path("port", e.name))
		written := []string{filepath.Dir(p.path("", ""))}
		for _, arg := range e.args {
			if file, ok := strings.CutPrefix(arg, "struck="); ok {
				written = append(written, filepath.Dir(file))
			}
		}
		fmt.Fprintf(&b, "    write: [%s]\n", strings.Join(written, ", "))
		if !strings.Contains(e.yaml, "restart:") {
			b.WriteString("    restart: {backoff: 100ms, max_backoff: 200ms, quarantine_after: 3}\n")
		}
		for _, line := range lines(e.yaml) {
			b.WriteString("    " + line + "\n")
		}
	}
	return b.String()
}

// pluginRow is a plugin as the API shows it.
type pluginRow struct {
	Name     string
	State    string
	Reason   string
	Since    time.Time
	Pid      int
	Restarts int
	SHA256   string
	LimitBy  string `json:"limit_by"`
}

// plugins are the states by short name.
func (p *pit) plugins() map[string]pluginRow {
	p.t.Helper()
	var list struct{ Plugins []pluginRow }
	p.must(&list, "GET", "/plugins", "")
	all := map[string]pluginRow{}
	for _, row := range list.Plugins {
		all[strings.TrimSuffix(row.Name, "-"+p.mark)] = row
	}
	return all
}

func (p *pit) plugin(name string) pluginRow {
	p.t.Helper()
	row, ok := p.plugins()[name]
	if !ok {
		p.t.Fatalf("no plugin %s", name)
	}
	return row
}

// until polls a plugin until ok, and returns it as it then was.
func (p *pit) until(t *testing.T, within time.Duration, name, what string, ok func(pluginRow) bool) pluginRow {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) { // between two polls
		row := p.plugin(name)
		if ok(row) {
			return row
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not %s after %s but %s, %d restarts, reason %q; its log:\n%s", name, what, within, row.State, row.Restarts, row.Reason, p.log(name))
		}
	}
}

func (p *pit) running(t *testing.T, name string) pluginRow {
	t.Helper()
	return p.until(t, wait, name, "running", func(r pluginRow) bool { return r.State == "running" })
}

// log is what the host kept of what the plugin wrote.
func (p *pit) log(name string) string {
	p.t.Helper()
	var page struct {
		Lines []struct {
			Stream string
			Text   string
		}
	}
	p.must(&page, "GET", "/plugins/"+p.full(name)+"/logs?limit=500", "")
	var b strings.Builder
	for _, line := range page.Lines {
		fmt.Fprintf(&b, "%s: %s\n", line.Stream, line.Text)
	}
	return b.String()
}

// reload makes the host read plugins.yaml again.
func (p *pit) reload(plugins ...plugin) {
	p.t.Helper()
	p.write(plugins...)
	p.must(nil, "POST", "/plugins/_reload", "")
}

// line dials the line port of an honest plugin, and repeats that until it is
// answered: the port may still be that of its predecessor.
func (p *pit) line(t *testing.T, name, question, answer string) string {
	t.Helper()
	deadline := time.Now().Add(wait)
	var why error
	for time.Now().Before(deadline) {
		var got string
		if got, why = ask(p.path("port", name), question, answer); why == nil {
			return got
		}
		time.Sleep(20 * time.Millisecond) // between two polls
	}
	t.Fatalf("%s does not answer %q with %q: %v; it is %+v, its log:\n%s", name, question, answer, why, p.plugin(name), p.log(name))
	return ""
}

func ask(portFile, question, answer string) (string, error) {
	address, err := os.ReadFile(portFile)
	if err != nil {
		return "", err
	}
	c, err := net.Dial("tcp", string(address))
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second)) // then it is asked again, or its successor
	fmt.Fprintln(c, question)
	for in := bufio.NewScanner(c); in.Scan(); {
		if strings.HasPrefix(in.Text(), answer) {
			return in.Text(), nil
		}
	}
	return "", fmt.Errorf("no such answer from %s", address)
}

// echoes checks that a plugin gets through to the agent and back.
func (p *pit) echoes(t *testing.T, name, text string) {
	t.Helper()
	p.line(t, name, "say "+text, "got echo: "+text)
}

// struck is when the plugin misbehaved first; zero = not yet.
func (p *pit) struck(name string) time.Time {
	text, err := os.ReadFile(p.path("struck", name))
	if err != nil {
		return time.Time{}
	}
	ns, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil { // half written
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// processes are those that belong to the plugins of this pit, shims included,
// by pid, with their command lines.
func (p *pit) processes() map[int]string {
	all := map[int]string{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && bytes.Contains(text, []byte(p.mark)) {
			all[pid] = strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return all
}

// none waits until no such process is left.
func (p *pit) none(within time.Duration) {
	p.t.Helper()
	p.goneSince(time.Now(), within)
}

// goneSince waits until no such process is left, and returns how long after
// began that was.
func (p *pit) goneSince(began time.Time, within time.Duration) time.Duration {
	p.t.Helper()
	for {
		left := p.processes()
		took := time.Since(began)
		if len(left) == 0 {
			return took
		}
		if took > within {
			p.t.Errorf("left after %s: %v", within, left)
			for pid := range left { // all of them were started for this test
				if proc, err := os.FindProcess(pid); err == nil {
					_ = proc.Kill()
				}
			}
			return took
		}
		time.Sleep(2 * time.Millisecond) // between two polls
	}
}

// shimOf is the pid of a plugin's shim; 0 = none.
func (p *pit) shimOf(name string) int {
	for pid, line := range p.processes() {
		if line == "pontoon: shim of plugin "+p.full(name) {
			return pid
		}
	}
	return 0
}

// runDir is where the host keeps the files of its plugins, by the environment of
// one of them.
func (p *pit) runDir(pid int) string {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		p.t.Fatal(err)
	}
	found := regexp.MustCompile(`PLUGIN_UNIX_SOCKET_DIR=(.+?)/p\d+/s`).FindSubmatch(text)
	if found == nil {
		p.t.Fatalf("no directory in %q", text)
	}
	return string(found[1])
}

// descriptors is how many files the host has open.
func (p *pit) descriptors() int {
	n := 0
	for _, file := range lines(p.openFiles()) {
		if !strings.Contains(file, "pontoon.db") { // readers come as they are needed, and stay
			n++
		}
	}
	return n
}

// openFiles says what the descriptors are.
func (p *pit) openFiles() string {
	dir := fmt.Sprintf("/proc/%d/fd/", p.cmd.Process.Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if to, err := os.Readlink(dir + e.Name()); err == nil {
			out = append(out, e.Name()+" "+to)
		}
	}
	return strings.Join(out, "\n")
}
