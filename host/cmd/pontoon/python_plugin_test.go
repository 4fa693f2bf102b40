package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/port"
)

// The example of docs/plugins.md: a plugin that is not in Go and uses no library
// for plugins, over mutual TLS.
func TestPythonPlugin(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs(examples + "python_plugin")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "plugin.py")
	python := pythonWith(t, "-r", filepath.Join(dir, "requirements.txt"))
	if out, err := exec.Command(python, program).CombinedOutput(); err == nil || !strings.Contains(string(out), "name it in a host's plugins.yaml") {
		t.Errorf("started by hand: %v\n%s", err, out)
	}
	address := port.Free(t)
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	writeFile(t, file, fmt.Sprintf("plugins:\n"+
		"  - {name: lines, command: [%q, %q], config: {listen: %q}, restart: {backoff: 100ms}}\n"+
		"  - {name: wrong, command: [%q, %q], config: {port: 1}}\n", python, program, address, python, program))
	h := startHost(t, "--plugins", file)

	talkInLines(t, address, "hello")
	talkInLines(t, address, "ünïcödé 🌉")
	talkInLines(t, address, strings.Repeat("long ", 10_000)+"end")
	holds(t, h.cli("messages", "lines"), ": hello  (handled)", "echo: echo: hello  (sent)")
	var row struct {
		State, Reason string
		PID           int
	}
	h.must(&row, http.MethodGet, "/plugins/wrong", "")
	if row.State != "quarantined" || !strings.Contains(row.Reason, "refused its configuration: listen: ") {
		t.Errorf("with a wrong configuration: %+v", row)
	}

	h.must(&row, http.MethodGet, "/plugins/lines", "")
	before := row.PID
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs again", func() bool {
		h.must(&row, http.MethodGet, "/plugins/lines", "")
		return row.State == "running" && row.PID != before
	})
	talkInLines(t, address, "back")
	h.stop()
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", row.PID)); err == nil {
		t.Errorf("process %d is left", row.PID)
	}
	for _, want := range []string{"closed by the peer with code 1000: plugin stopped"} {
		if !strings.Contains(h.errs.String(), want) {
			t.Errorf("log lacks %q", want)
		}
	}
}

// talkInLines says something on a connection of its own, and reads the answer.
func talkInLines(t *testing.T, address, text string) {
	t.Helper()
	var c net.Conn
	eventually(t, "the platform listens", func() (ok bool) {
		var err error
		c, err = net.Dial("tcp", address)
		return err == nil
	})
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(c, text); err != nil {
		t.Fatal(err)
	}
	got, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || strings.TrimSpace(got) != "echo: "+text {
		t.Fatalf("read %.80q, %v; expected the echo of %.80q", got, err, text)
	}
}
