//go:build linux

package main

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// orphanLimit is when what a killed host leaves behind must be gone on an idle
// machine, where the figures are taken: a second is promised.
const orphanLimit = 5 * time.Second

// Whenever the host is killed, nothing of its plugins is left, grandchildren and
// their own sessions included, and the next host starts on clean ground.
func TestHostKilled(t *testing.T) {
	t.Parallel()
	rounds := 6
	if figures {
		rounds = 20
	}
	plugins := []plugin{{name: "a", mode: "fork-start"}, {name: "b", mode: "fork-start"}, {name: "c", mode: "ok"}}
	p := newPit(t, plugins)
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	var slowest time.Duration
	for round := range rounds {
		when := "while all run"
		if round%2 == 1 {
			moment := time.Duration(random.Int64N(int64(time.Second)))
			when = "during start, after " + moment.Round(time.Millisecond).String()
			p.process = startProcess(t, nil, pontoonBinary, "serve", "--data", p.data, "--listen", "127.0.0.1:0", "--plugins", p.file)
			time.Sleep(moment)
		} else if round > 0 {
			p.again()
		}
		had := len(p.processes())
		killed := time.Now()
		p.kill()
		took := p.goneSince(killed, wait)
		slowest = max(slowest, took)
		t.Logf("killed %s: %d processes, gone after %s", when, had, took.Round(time.Millisecond))
		if when == "while all run" && had < 2*(1+1+5)+2 {
			t.Errorf("expected two plugins with five more processes each, and one without, all with shims")
		}
	}
	t.Logf("%d kills, everything gone after at most %s", rounds, slowest.Round(time.Millisecond))
	if figures && slowest > orphanLimit {
		t.Errorf("expected it to be gone within %s", orphanLimit)
	}
	p.again()
	run := p.runDir(p.running(t, "c").Pid)
	if left, err := os.ReadDir(run); err != nil || len(left) != len(plugins) {
		t.Errorf("in the plugins' directory: %v, %v, expected only those of %d plugins", left, err, len(plugins))
	}
	p.echoes(t, "c", "after all that")
}

// A shim that is killed is noticed, what can be found of its plugin is killed,
// and the plugin is started again.
func TestShimKilled(t *testing.T) {
	t.Parallel()
	p := newPit(t, []plugin{{name: "a", mode: "fork-start"}, {name: "b", mode: "ok"}})
	old, other := p.running(t, "a"), p.running(t, "b")
	before := p.processes()
	began := time.Now()
	killShim(t, p, "a")
	p.until(t, wait, "a", "running again", func(r pluginRow) bool { return r.State == "running" && r.Pid != old.Pid })
	t.Logf("running again after %s", time.Since(began).Round(time.Millisecond))
	p.echoes(t, "a", "back")
	if log := p.log("a"); !strings.Contains(log, "its shim was killed") {
		t.Errorf("expected why it was restarted in the log:\n%s", log)
	}
	if now := p.plugin("b"); now.Pid != other.Pid || now.Restarts != 0 {
		t.Errorf("the other plugin did not go on: %+v", now)
	}
	// The daemon that has neither the plugin's session nor its output can't be
	// found without a cgroup, once its parents are dead.
	var left []int
	eventually(t, "what the old plugin left is gone", func() bool {
		left = nil
		now := p.processes()
		for pid, line := range before {
			if now[pid] == line && strings.Contains(line, "sleeper") {
				left = append(left, pid)
			}
		}
		return len(left) <= 1
	})
	for _, pid := range left {
		t.Logf("process %d got away", pid)
		if out, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/1"); err != nil || out != os.DevNull {
			t.Errorf("it writes to %s: %v", out, err)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Without a shim, as on systems that know none, an adapter of the SDK sees that
// its host is gone and ends.
func TestShimOff(t *testing.T) {
	t.Parallel()
	p := newPit(t, []plugin{{name: "a", mode: "ok"}}, "--no-shim")
	p.running(t, "a")
	p.echoes(t, "a", "hello")
	if shim := p.shimOf("a"); shim != 0 {
		t.Fatalf("process %d is a shim", shim)
	}
	killed := time.Now()
	p.kill()
	t.Logf("gone after %s", p.goneSince(killed, wait).Round(time.Millisecond))
}
