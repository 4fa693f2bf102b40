//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
)

// figures says that the faults come one at a time, beside 1,000 messages a
// second, to a host without the race detector: what is measured then is worth
// to be printed. Otherwise they come in batches, beside 50.
var figures = os.Getenv("PONTOON_FAULTS") != ""

// A fault, by what must follow it.
type kind int

const (
	// The plugin misbehaves when it starts or soon after. One that does so once
	// is started again and works; one that always does ends in quarantine.
	lasting kind = iota
	// The same, but each time takes long: only once, unless for figures.
	slow
	// No restart would help: quarantined at the first failure.
	hopeless
	// The plugin goes on serving, and so it may.
	harmless
)

type fault struct {
	mode     string // of the hostile program
	injected string // for people
	kind     kind
	reason   string                                  // in what the host says of it
	long     bool                                    // goes with the slow ones
	act      func(t *testing.T, p *pit, name string) // what is done to a plugin that serves, once; nil = it does it itself
	after    func(t *testing.T, p *pit, name string) // further checks of a plugin that had the fault
}

func faults() []fault {
	return []fault{
		{mode: "ok", injected: "SIGKILL", reason: "ended by signal: killed", act: signals(syscall.SIGKILL)},
		{mode: "ok", injected: "SIGSTOP", kind: slow, reason: "hung: did not answer a ping within 8s", act: signals(syscall.SIGSTOP)},
		{mode: "ok", injected: "SIGKILL of the shim", reason: "its shim was killed", act: killShim},
		{mode: "stop", injected: "stops itself (SIGSTOP)", kind: slow, reason: "hung"},
		{mode: "exit0", injected: "exits with 0 at once", reason: "exited with status 0"},
		{mode: "exit3", injected: "exits with 3 at once", reason: "exited with status 3"},
		{mode: "exit-later", injected: "exits with 4 while it serves", reason: "exited with status 4"},
		{mode: "panic-at-start", injected: "panic at start", reason: "exited with status 2: panic: hostile: panics at start"},
		{mode: "panic", injected: "panic while it serves", reason: "exited with status 2: panic: hostile: panics while it serves"},
		// "fatal error: out of memory", or a SIGSEGV of the runtime's own: its collector does not check.
		{mode: "alloc", injected: "allocates and touches 1 GiB", reason: "exited with status 2: "},
		{mode: "line", injected: "100 MB on standard output in one line", kind: harmless, after: drained},
		{mode: "flood-stdout", long: true, injected: "100 MB of lines on standard output", kind: harmless, after: drained},
		{mode: "flood-stderr", long: true, injected: "100 MB of lines on standard error", kind: harmless, after: drained},
		{mode: "crafted", injected: "log lines that crash parsers", kind: harmless, after: crafted},
		{mode: "close-outputs", injected: "closes standard output and error", kind: harmless},
		{mode: "ok", injected: "prints a lot through its own standard output", kind: harmless, after: prints},
		{mode: "grandchild", injected: "exits; 5 grandchildren hold its pipes", reason: "exited with status 0"},
		{mode: "fork-exit", injected: "exits before the handshake; 5 grandchildren hold its pipes", reason: "exited with status 0"},
		{mode: "fork-start", injected: "starts 5 grandchildren before the handshake", kind: harmless},
		{mode: "ignore-term", injected: "ignores SIGTERM when it is to restart", kind: slow, act: restarts, after: says("killed: did not end within 8s of SIGTERM")},

		{mode: "hs-nothing", injected: "no handshake line", kind: slow, reason: "not serving in time"},
		{mode: "hs-late", injected: "handshake line after 20 s", kind: slow, reason: "not serving in time"},
		{mode: "hs-closed", injected: "closes standard output without a handshake", reason: "found nothing on standard output"},
		{mode: "hs-partial", injected: "half a handshake line", reason: "exited with status 0"},
		{mode: "hs-garbage", injected: "handshake of noise", reason: "handshake: found"},
		{mode: "hs-megabytes", injected: "handshake line of 8 MB", reason: "line of over 8192 bytes"},
		{mode: "hs-tcp", injected: "TCP address of somebody else", reason: `network "tcp", expected unix`},
		{mode: "hs-outward", injected: "TCP address 192.0.2.1:80", reason: `network "tcp", expected unix`},
		{mode: "hs-hostname", injected: "a host name", reason: `network "tcp", expected unix`},
		{mode: "hs-udp", injected: "UDP address", reason: `network "udp", expected unix`},
		{mode: "hs-unixdial", injected: "a URL as socket", reason: "expected one directly in PLUGIN_UNIX_SOCKET_DIR"},
		{mode: "hs-outside", injected: "socket outside its directory", reason: "expected one directly in PLUGIN_UNIX_SOCKET_DIR"},
		{mode: "hs-dotdot", injected: "socket by way of ..", reason: "expected one directly in PLUGIN_UNIX_SOCKET_DIR"},
		{mode: "hs-abstract", injected: "abstract socket", reason: "expected one directly in PLUGIN_UNIX_SOCKET_DIR"},
		{mode: "hs-symlink", injected: "symlink to a socket", reason: "expected a socket"},
		{mode: "hs-file", injected: "regular file as socket", reason: "expected a socket"},
		{mode: "hs-missing", injected: "socket that is not there", reason: "no such file or directory"},
		{mode: "hs-cert-plain", injected: "certificate given, serves without TLS", reason: "TLS handshake"},
		{mode: "hs-nocert", injected: "no certificate", reason: "the host speaks only TLS"},
		{mode: "hs-badcert", injected: "certificate not base64", reason: "base64 without padding"},
		{mode: "hs-notcert", injected: "certificate not X.509", reason: "the host speaks only TLS"},
		{mode: "hs-othercert", injected: "certificate of somebody else", reason: "x509"},
		{mode: "hs-netrpc", injected: "protocol netrpc", reason: `protocol "netrpc", expected grpc`},
		{mode: "hs-core", injected: "core version 2", kind: hopeless, reason: `core version "2", expected 1`},
		{mode: "hs-version", injected: "plugin version 99", kind: hopeless, reason: `plugin version "99", this host speaks [1]`},
		{mode: "hs-word", injected: "plugin version \"one\"", kind: hopeless, reason: `plugin version "one"`},

		{mode: "wrong-config", injected: "says that its configuration is wrong", kind: hopeless, reason: `key "server": absent, expected HOST:PORT`},
		{mode: "config-error", injected: "fails in Configure with 64 KiB of text", reason: "not today"},
		{mode: "nothealth", long: true, injected: "health NOT_SERVING", reason: "health check"},
		{mode: "hang-configure", injected: "never answers Configure", kind: slow, reason: "not serving in time"},
		{mode: "hang-attach", injected: "never registers", kind: slow, reason: "1008: no register in time"},
		{mode: "noregister", injected: "first frame is a message", reason: "1008: first frame must be type=register"},
		{mode: "badregister", injected: "malformed register", reason: "1008: first frame must be type=register"},
		{mode: "token", injected: "registers with another channel's token", reason: "1008: invalid token"},
		{mode: "big", injected: "frame of 300 KiB", reason: "ended its stream: frame of 307"},
		{mode: "huge", injected: "gRPC message of 2 MiB", reason: "ended its stream: message too large, at most 1048576"},
		{mode: "badutf8", injected: "frame that is not UTF-8", reason: "ended its stream: frame is not valid UTF-8"},
		{mode: "junk", injected: "malformed frames, frames for another channel", kind: harmless, after: junkAnswered},
		{mode: "empty", injected: "1,000 empty frames", kind: harmless},
		{mode: "flood", long: true, injected: "frames as fast as it can for 3 s", kind: harmless, after: floodAnswered},
		{mode: "flood-deaf", injected: "the same, reading no answers", kind: slow, reason: "too slow: did not read what was sent within 10s"},
		{mode: "close-1000", injected: "ends its stream, runs on", reason: "ended its stream: closed by the peer with code 1000: enough"},
		{mode: "close-lie", injected: "ends its stream with a code out of range and 5 KB of escapes", reason: "ended its stream"},
		{mode: "detach", injected: "returns from Attach, runs on", reason: "ended its stream"},
		{mode: "error", injected: "fails Attach with 5 KB of NULs", reason: "ended its stream"},
	}
}

func signals(s syscall.Signal) func(*testing.T, *pit, string) {
	return func(t *testing.T, p *pit, name string) {
		if err := syscall.Kill(p.plugin(name).Pid, s); err != nil {
			t.Fatal(err)
		}
	}
}

func killShim(t *testing.T, p *pit, name string) {
	if err := syscall.Kill(p.shimOf(name), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func restarts(_ *testing.T, p *pit, name string) {
	p.must(nil, "POST", "/plugins/"+p.full(name)+"/restart", "")
}

// drained waits until the plugin has got rid of all its output, and sees that
// what it writes next is kept.
func drained(t *testing.T, p *pit, name string) {
	eventually(t, "all output is drained", func() bool {
		_, err := os.Stat(p.path("struck", name) + ".done")
		return err == nil
	})
	eventually(t, "further output is kept", func() bool {
		p.line(t, name, "print 1", "printed")
		log := p.log(name)
		return strings.Contains(log, "printed to standard output 0") && strings.Contains(log, "printed to standard error 0")
	})
}

func prints(t *testing.T, p *pit, name string) {
	p.line(t, name, "print 20000", "printed")
	eventually(t, "what was printed is kept", func() bool {
		return strings.Contains(p.log(name), "lines dropped: more than 100 a second") || strings.Contains(p.log(name), "printed to standard output 19999")
	})
}

func crafted(t *testing.T, p *pit, name string) {
	eventually(t, "the whole craft is kept", func() bool {
		log := p.log(name)
		return strings.Contains(log, "stdout: end of craft") && strings.Contains(log, "stderr: end of craft")
	})
}

// floodAnswered sees that each frame got an echo or a refusal.
func floodAnswered(t *testing.T, p *pit, name string) {
	eventually(t, "the whole flood is answered", func() bool { return strings.Contains(p.log(name), "stderr: flood: ") })
	log := p.log(name)
	t.Log("\n" + log)
	if !strings.Contains(log, "flood: all answered") {
		t.Error("it was not")
	}
}

func says(what string) func(*testing.T, *pit, string) {
	return func(t *testing.T, p *pit, name string) {
		if log := p.log(name); !strings.Contains(log, what) {
			t.Errorf("expected %q in the log:\n%s", what, log)
		}
	}
}

// junkAnswered sees that of all that junk one message was stored, in the
// plugin's own channel.
func junkAnswered(t *testing.T, p *pit, name string) {
	eventually(t, "the one good message is answered", func() bool { return len(p.history(p.full(name))) == 2 })
	if all := p.history(p.full(name)); all[1].Text != "counts" || all[0].Text != "echo: counts" {
		t.Errorf("history: %+v", all)
	}
}

// arena is where the faults happen: a host, the adapter that must not notice,
// and an address that nobody may dial.
type arena struct {
	*pit
	steady *steady
	away   *elsewhere
	token  string
	run    string // where the host keeps its plugins' files
}

// A plugin may do what it likes: the host says what it was, restarts or
// quarantines it, and nobody else notices anything.
func TestFaults(t *testing.T) {
	rate := 50
	if figures {
		rate = 1000
		plainHost(t)
	} else {
		t.Parallel()
	}
	a := &arena{pit: newPit(t, nil), away: newElsewhere(t)}
	a.token = a.channel("steady", "")
	a.warmUp()
	descriptors, memory := a.descriptors(), a.memory("VmRSS")
	a.steady = startSteady(t, a.host, a.token, rate)
	var table strings.Builder
	table.WriteString("| fault | what the host did | recovered after | p99 of the other adapter before | during |\n|---|---|---|---|---|\n")
	n := 0 // numbers the faults, and so their plugins
	for left := batches(faults()); len(left) > 0; left = left[1:] {
		table.WriteString(a.batch(t, left[0], n))
		n += len(left[0])
	}
	a.reload()
	a.none(wait)
	t.Logf("%d messages of the other adapter, all answered in order on one connection", a.steady.end(t))
	t.Logf("host's memory: %d MiB before, %d MiB after, %d MiB at most; files: %d before, %d after",
		memory, a.memory("VmRSS"), a.memory("VmHWM"), descriptors, a.descriptors())
	if end := time.Now().Add(wait); a.descriptors() > descriptors {
		for a.descriptors() > descriptors && time.Now().Before(end) {
			time.Sleep(50 * time.Millisecond)
		}
		if a.descriptors() > descriptors {
			t.Errorf("files left open in the host:\n%s", a.openFiles())
		}
	}
	if most := a.memory("VmHWM"); most > 1024 {
		t.Errorf("the host took %d MiB", most)
	}
	if left, err := os.ReadDir(a.run); err != nil || len(left) > 0 {
		t.Errorf("left in the plugins' directory: %v, %v", left, err)
	}
	a.leaksNothing(t)
	t.Log("\n" + table.String())
}

// plainHost builds the host without the race detector, for all that follows.
func plainHost(t *testing.T) {
	out := filepath.Join(t.TempDir(), "pontoon")
	if text, err := exec.Command("go", "build", "-o", out, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	raced := pontoonBinary
	pontoonBinary = out
	if _, err := hostileBinary(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pontoonBinary = raced })
}

// warmUp makes the host open what it keeps open.
func (a *arena) warmUp() {
	a.reload(plugin{name: "first", mode: "ok"})
	a.run = a.runDir(a.running(a.t, "first").Pid)
	a.echoes(a.t, "first", "hello")
	a.reload()
	a.none(wait)
}

// batches divides the faults by what may happen at once: what takes long, then
// the rest, a few at a time; but each alone for figures.
func batches(all []fault) (out [][]fault) {
	size := 1
	if !figures {
		size = 12
		var long, rest []fault
		for _, f := range all {
			if f.kind == slow || f.long {
				long = append(long, f)
			} else {
				rest = append(rest, f)
			}
		}
		out, all = [][]fault{long}, rest
	}
	for len(all) > 0 {
		n := min(size, len(all))
		out = append(out, all[:n])
		all = all[n:]
	}
	return out
}

// batch lets some faults happen at once, and returns their lines of the table.
func (a *arena) batch(t *testing.T, some []fault, first int) string {
	before := a.steady.now()
	if figures {
		time.Sleep(3 * time.Second) // measured as "before"
	}
	began := a.steady.now()
	var entries []plugin
	for i, f := range some {
		entries = append(entries, a.entries(f, first+i)...)
	}
	a.reload(entries...)
	for i, f := range some {
		if f.act == nil {
			continue
		}
		name := onceName(f, first+i)
		a.running(t, name)
		writeFile(t, a.path("struck", name), fmt.Sprint(time.Now().UnixNano()))
		f.act(t, a.pit, name)
	}
	var out strings.Builder
	for i, f := range some {
		t.Run(f.mode+" "+f.injected, func(t *testing.T) {
			did, recovered := a.check(t, f, first+i)
			a.steady.unharmed(t)
			if figures {
				time.Sleep(time.Until(a.steady.due(began).Add(3 * time.Second))) // enough to measure
			}
			now := a.steady.now()
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", f.injected, did, recovered,
				round(a.steady.p99(before, began)), round(a.steady.p99(began, now)))
		})
	}
	return out.String()
}

func round(d time.Duration) string {
	if d == 0 { // not measured
		return "–"
	}
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

func onceName(f fault, i int) string   { return fmt.Sprintf("%d-%s-once", i, f.mode) }
func alwaysName(f fault, i int) string { return fmt.Sprintf("%d-%s-always", i, f.mode) }

// entries are the plugins that have the fault: one that has it once, and one
// that always has it.
func (a *arena) entries(f fault, i int) []plugin {
	other := a.away.Addr().String()
	if f.mode == "token" {
		other = a.token
	}
	megabytes := 100
	if !figures { // the host has a race detector
		megabytes = 4
	}
	entry := func(name string, more ...string) plugin {
		for _, kind := range []string{"struck", "port"} {
			_ = os.Remove(a.path(kind, name)) // of a plugin of another batch
		}
		return plugin{name: name, mode: f.mode, args: append([]string{"struck=" + a.path("struck", name), "elsewhere=" + other, fmt.Sprintf("megabytes=%d", megabytes)}, more...)}
	}
	var out []plugin
	if f.kind != hopeless {
		once := []string{"once"}
		if f.kind == harmless {
			once = nil
		}
		out = append(out, entry(onceName(f, i), once...))
	}
	if f.act == nil && (f.kind == lasting || f.kind == hopeless || f.kind == slow && figures) {
		out = append(out, entry(alwaysName(f, i)))
	}
	return out
}

// check waits for what must follow a fault, and says what it was.
func (a *arena) check(t *testing.T, f fault, i int) (did, recovered string) {
	once, always := onceName(f, i), alwaysName(f, i)
	if f.kind == harmless {
		row := a.running(t, once)
		if f.after != nil {
			f.after(t, a.pit, once)
		}
		if f.mode == "ok" || f.act == nil && !isRaw(f.mode) {
			a.echoes(t, once, "still there")
		}
		if now := a.plugin(once); now.Pid != row.Pid || now.Restarts != 0 || now.State != "running" {
			t.Errorf("it did not go on: %+v; log:\n%s", now, a.log(once))
		}
		return "kept it running", "–"
	}
	if f.kind != hopeless {
		row := a.until(t, wait, once, "running again", func(r pluginRow) bool { return r.State == "running" && r.Restarts > 0 })
		a.echoes(t, once, "back again")
		recovered = row.Since.Sub(a.struck(once)).Round(time.Millisecond).String()
		did = "started it again"
		if f.after != nil {
			f.after(t, a.pit, once)
		}
		if log := a.log(once); !strings.Contains(log, f.reason) {
			t.Errorf("expected %q in the log:\n%s", f.reason, log)
		}
	}
	if f.act == nil && (f.kind != slow || figures) {
		row := a.until(t, wait, always, "quarantined", func(r pluginRow) bool { return r.State == "quarantined" })
		if !strings.Contains(row.Reason, f.reason) || len(row.Reason) > 600 || row.Pid != 0 {
			t.Errorf("quarantined with %+v, expected reason with %q", row, f.reason)
		}
		if strings.ContainsFunc(row.Reason, unicode.IsControl) {
			t.Errorf("the reason has control characters: %q", row.Reason)
		}
		if tries := map[bool]int{true: 0, false: 2}[f.kind == hopeless]; row.Restarts != tries {
			t.Errorf("quarantined after %d restarts, expected %d", row.Restarts, tries)
		}
		if f.kind == hopeless {
			return "quarantined it at once", "–"
		}
		did += fmt.Sprintf("; quarantined it after the third time (%s)", row.Since.Sub(a.struck(always)).Round(time.Millisecond))
	}
	return did, recovered
}

// isRaw reports the modes without a line port.
func isRaw(mode string) bool { return mode == "junk" || mode == "empty" || mode == "flood" }

// leaksNothing ends the host with a look at its goroutines: none may be of a
// plugin.
func (a *arena) leaksNothing(t *testing.T) {
	a.anyEnd = true
	a.signal(syscall.SIGQUIT)
	a.waitExit()
	dump := a.errs.String()
	_, dump, found := strings.Cut(dump, "SIGQUIT: quit")
	if !found {
		t.Fatal("no goroutine dump")
	}
	n := 0
	for _, stack := range strings.Split(dump, "\n\n") {
		if !strings.HasPrefix(stack, "goroutine ") {
			continue
		}
		n++
		for _, word := range []string{"hashicorp/go-plugin", "google.golang.org/grpc", "supervisor.(*life)", "supervisor.(*process)", "supervisor.(*service)", "supervisor/child."} {
			if strings.Contains(stack, word) {
				t.Errorf("a goroutine of a plugin is left:\n%s", stack)
				break
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d goroutines in the dump", n)
	}
}
