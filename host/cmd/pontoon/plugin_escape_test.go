//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// cage is a host with a plugin that tries to get out of its sandbox.
type cage struct {
	user    string // of the plugin; "" = the host's
	without bool   // Landlock, as on a kernel that has none
}

// A plugin, a process of its own, tries some fifty ways out. What the machine can
// refuse is refused; what it can't is what the host says is open, and nothing else.
func TestPluginEscapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]cage{
		"as the host":                       {},
		"as another user":                   {user: "daemon"}, // each another one: their processes are counted together
		"as the host, without Landlock":     {without: true},
		"as another user, without Landlock": {user: "bin", without: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

// landlock is the version of Landlock that the cage's host has.
func (c cage) landlock() int {
	if c.without {
		return 0
	}
	abi, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if no != 0 {
		return 0
	}
	return int(abi)
}

// caged is what the API shows of the plugin.
type caged struct {
	State, Reason, Sandbox, User string
	PID, Landlock, Restarts      int
	LimitBy                      string   `json:"limit_by"`
	Open                         []string `json:"sandbox_open"`
}

func (c cage) run(t *testing.T) {
	h, dir := c.start(t)
	abi := c.landlock()
	var p, strict caged
	eventually(t, "the one that demands a sandbox has settled", func() bool {
		h.must(&strict, "GET", "/plugins/strict", "")
		return strict.State == "running" || strict.State == "quarantined"
	})
	if want := map[bool]string{true: "running", false: "quarantined"}[abi >= 6]; strict.State != want {
		t.Errorf("with Landlock %d, sandbox: require is %s (%s), expected %s", abi, strict.State, strict.Reason, want)
	}
	if why := fmt.Sprintf("sandbox: require: found Landlock of version %d in this kernel, expected 6 or newer", abi); abi < 6 && !strings.Contains(strict.Reason, why) {
		t.Errorf("refused with %q, expected %q", strict.Reason, why)
	}
	if c.user != "" && os.Getuid() != 0 {
		eventually(t, "the start is refused", func() bool {
			h.must(&p, "GET", "/plugins/caged", "")
			return strings.Contains(p.Reason, "for which the host must run as root")
		})
		return
	}
	seen := map[string]string{}
	eventually(t, "all ways were tried", func() bool {
		h.must(&p, "GET", "/plugins/caged", "")
		text, err := os.ReadFile(filepath.Join(dir, "data", "plugins", "caged", "ways.json"))
		if err != nil || json.Unmarshal(text, &seen) != nil {
			return false
		}
		_, last := seen["take all memory"]
		return last || p.LimitBy == "cgroup" && p.Restarts > 0 // it takes all of the plugin along
	})
	if want := strength(abi); p.Sandbox != want || p.Landlock != abi || p.User != c.user {
		t.Errorf("shown as %+v, expected sandbox %s, Landlock %d", p, want, abi)
	}
	holds(t, h.cli("plugin", "list"), "SANDBOX", "  "+p.Sandbox+"  ")
	var table strings.Builder
	for _, w := range c.expected(abi) {
		stopped, tried := seen[w.name]
		if !tried && p.LimitBy != "cgroup" {
			t.Errorf("%s: was not tried", w.name)
			continue
		}
		if open := stopped == ""; open != (w.said != "") && (open || !w.maybe) {
			t.Errorf("%s: open is %v (%s), expected %v", w.name, open, stopped, w.said != "")
		} else if open && !slices.ContainsFunc(p.Open, func(s string) bool { return strings.Contains(s, w.said) }) {
			t.Errorf("%s is open, and %q does not say so: it lacks %q", w.name, p.Open, w.said)
		}
		if stopped == "" {
			stopped = "OPEN"
		}
		fmt.Fprintf(&table, "| %s | %s |\n", w.name, stopped)
		delete(seen, w.name)
	}
	if len(seen) > 0 {
		t.Errorf("tried, and nothing is expected of them: %v", seen)
	}
	t.Logf("Landlock %d, open are %q\n%s", abi, p.Open, table.String())
}

func strength(abi int) string {
	switch {
	case abi == 0:
		return "none"
	case abi < 6:
		return "partial"
	}
	return "full"
}

// outcome is what a way out is expected to lead to: nowhere, or to where the host says
// that it leads.
type outcome struct {
	name  string
	said  string // by the host, of what is open; "" = the way is closed
	maybe bool   // the machine may close it all the same
}

// expected are the outcomes, by what the kernel's Landlock can do.
func (c cage) expected(abi int) []outcome {
	own, root := c.user != "", os.Getuid() == 0
	when := func(open bool, said string) string {
		if open {
			return said
		}
		return ""
	}
	files := when(abi == 0 && !own, "files and devices")
	rootFiles := when(abi == 0 && !own && root, "files and devices")
	signals := when(abi < 6 && !own, "signals")
	ports := when(abi < 4, "TCP ports")
	processes := when(!own, "processes")
	out := []outcome{
		{name: "read /etc/shadow", said: rootFiles}, {name: "write a system file", said: rootFiles},
		{name: "truncate a file there", said: when(abi < 3 && !own, "f")}, {name: "change a mode there", said: when(!own, "modes")},
		{name: "signal the host", said: signals}, {name: "signal its shim", said: signals},
		{name: "reach an abstract socket", said: when(abi < 6, "abstract")}, {name: "reach a socket by its path", said: when(abi < 9 && !own, "by path")},
		{name: "connect to a port that is not named", said: ports}, {name: "connect there by multipath TCP", said: ports},
		{name: "read admin.key in a namespace", said: files, maybe: true}, {name: "fork without end", said: processes, maybe: true},
	}
	for _, name := range []string{
		"read admin.key", "read setup.link", "read master.key", "read the database", "read its WAL", "list the data directory",
		"read plugins.yaml by its working directory", "read another plugin's state", "read admin.key by its own root", "read admin.key by dots",
		"read admin.key by a symlink", "read admin.key by a hard link", "write into the data directory", "write there by a symlink",
		"overwrite a file there", "move a file from there", "remove a file there", "write another plugin's state", "write elsewhere",
	} {
		out = append(out, outcome{name: name, said: files})
	}
	for _, name := range []string{
		"read the host's environment", "open the host's memory", "open the host's descriptors", "read admin.key by the host's root",
		"open the shim's memory", "find an inherited descriptor", "trace the host", "read the host's memory by a call",
		"take a descriptor of the host", "set the host's limits", "set the host's priority", "connect there by fast open",
		"gain by a setuid program", "mount", "make a device", "take all memory",
	} {
		out = append(out, outcome{name: name}) // closed on any kernel
	}
	return out
}

// start runs the host with what there is to be had, and then the plugin.
func (c cage) start(t *testing.T) (h *host, dir string) {
	t.Helper()
	program, err := hostileBinary()
	if err != nil {
		t.Fatal(err)
	}
	// Other users can get through t.TempDir's no more than through the test's.
	if dir, err = os.MkdirTemp("", "cage"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.RemoveAll(dir)
		_ = os.Remove("/usr/local/pontoon-hostile") // which it can write without a sandbox, as root
	})
	for _, d := range []struct {
		name string
		mode os.FileMode
	}{{".", 0o711}, {"bin", 0o755}, {"conf", 0o755}, {"outside", 0o700}} {
		at := filepath.Join(dir, d.name)
		if err := os.MkdirAll(at, d.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at, d.mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"program": 0o755, "setuid": 0o755 | os.ModeSetuid} {
		copyFile(t, program, filepath.Join(dir, "bin", name))
		if err := os.Chmod(filepath.Join(dir, "bin", name), mode); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "conf", "plugins.yaml")
	writeFile(t, file, "plugins: []\n")
	h = &host{t: t, data: filepath.Join(dir, "data"), args: []string{"--plugins", file}}
	if c.without {
		h.wrap = []string{program, "without-landlock"}
	}
	h.start("127.0.0.1:0")
	if err := os.MkdirAll(filepath.Join(h.data, "plugins", "neighbour"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"victim", "other-victim", "victim-of-modes", "plugins/neighbour/secret"} {
		writeFile(t, filepath.Join(h.data, name), "secret")
	}
	h.must(nil, "PUT", "/secrets/NAME", `{"value":"x"}`) // makes the master key
	writeFile(t, file, c.entries(t, dir))
	h.must(nil, "POST", "/plugins/_reload", "")
	return h, dir
}

// entries is the text of plugins.yaml, with sockets that the plugin must not reach.
func (c cage) entries(t *testing.T, dir string) string {
	t.Helper()
	abstract, socket := filepath.Base(dir), filepath.Join(dir, "outside.sock")
	var elsewhere string
	for _, at := range [][2]string{{"unix", "@" + abstract}, {"unix", socket}, {"tcp4", "127.0.0.1:0"}} {
		ln, err := net.Listen(at[0], at[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		elsewhere = ln.Addr().String()
	}
	program := filepath.Join(dir, "bin", "program")
	command, err := json.Marshal([]string{
		program, "escape", "data=" + filepath.Join(dir, "data"), "neighbour=neighbour", "outside=" + filepath.Join(dir, "outside"),
		"abstract=" + abstract, "socket=" + socket, "setuid=" + filepath.Join(dir, "bin", "setuid"), "elsewhere=" + elsewhere,
	})
	if err != nil {
		t.Fatal(err)
	}
	user := ""
	if c.user != "" {
		user = ", user: " + c.user
	}
	return fmt.Sprintf("plugins:\n  - {name: caged, command: %s, connect: [1], limits: {memory: 256MiB, processes: 200}%s}\n"+
		"  - {name: strict, command: [%q, ok], sandbox: require}\n", command, user, program)
}
