package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// treeSize is what the tree role runs: itself and four others.
const treeSize = 5

// startTree starts a tree and waits until all of it is up.
func startTree(t *testing.T) (*Child, string) {
	t.Helper()
	mark := newMark(t)
	c := begin(t, self(mark, "tree"))
	ready(t, c)
	await.UntilElse(t, func() bool { return len(marked(mark)) == treeSize+1 }, func() string {
		return fmt.Sprintf("%d processes and the shim, there are %d", treeSize, len(marked(mark)))
	})
	return c, mark
}

func TestNothingLeftAfter(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(*Child)
		want Exit
	}{
		"terminate": {(*Child).Terminate, Exit{Code: -1, Signal: "terminated"}},
		"kill":      {(*Child).Kill, Exit{Code: -1, Signal: "killed"}},
		"killed by another": {func(c *Child) { _ = syscall.Kill(c.Pid, syscall.SIGKILL) },
			Exit{Code: -1, Signal: "killed"}},
		"kill while stopped": {func(c *Child) { _ = syscall.Kill(c.Pid, syscall.SIGSTOP); c.Kill() },
			Exit{Code: -1, Signal: "killed"}},
		"kill with its shim stopped": {func(c *Child) {
			_ = c.proc.(*shimmed).shim.Signal(syscall.SIGSTOP)
			c.Kill()
		}, Exit{Code: -1, Signal: "killed"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, mark := startTree(t)
			began := time.Now()
			test.act(c)
			if got := end(t, c); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			// Done promises more than that it comes soon.
			if left := marked(mark); len(left) > 1 || len(left) == 1 && left[0] != os.Getpid() {
				t.Errorf("left after Done: %v", left)
			}
			t.Logf("gone after %v", time.Since(began))
			output(t, c) // at its end
		})
	}
}

// A program that ends and leaves children with its pipes ends them too.
func TestNothingLeftAfterExit(t *testing.T) {
	mark := newMark(t)
	c := begin(t, shell(mark, "sleep 600 & setsid sleep 600 & setsid setsid sleep 600 & exit 3"))
	if got := end(t, c); got != (Exit{Code: 3}) {
		t.Errorf("got %+v", got)
	}
	if left := marked(mark); len(left) > 0 {
		t.Errorf("left after Done: %v", left)
	}
	output(t, c)
}

// Orphans that end while the program runs are reaped.
func TestOrphansAreReaped(t *testing.T) {
	c := begin(t, shell(newMark(t), "for i in 1 2 3 4 5 6 7 8 9; do (setsid true &); done; echo ready; exec sleep 600"))
	ready(t, c)
	shim := c.proc.(*shimmed).shim.Pid
	await.UntilElse(t, func() bool { return slices.Equal(childrenOf(shim), []int{c.Pid}) }, func() string {
		return fmt.Sprintf("the shim has the child %d alone, it has %v", c.Pid, childrenOf(shim))
	})
	if got := childrenByParent(shim); !slices.Equal(got, []int{c.Pid}) {
		t.Errorf("children by parent %v, want %d alone", got, c.Pid)
	}
}

// Hosts are killed at any moment, half of them while they start plugins.
func TestNothingLeftAfterHostKill(t *testing.T) {
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var most time.Duration
	processes := 0
	for i := range 20 {
		mark := newMark(t)
		h := exec.Command(me, "as", "host", mark)
		h.Stderr = os.Stderr
		out, err := h.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() && (lines.Text() != "up") {
			if i%2 == 1 { // begin
				time.Sleep(rand.N(100 * time.Millisecond))
				break
			}
		}
		running := len(marked(mark))
		if err := h.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		took := nothingLeft(t, mark)
		_ = h.Wait() // killed
		processes += running
		most = max(most, took)
		t.Logf("%d processes, gone after %v", running, took)
		if i%2 == 0 && running < 4*treeSize {
			t.Errorf("only %d processes ran", running)
		}
	}
	t.Logf("%d processes; at most %v from kill -9 of the host to nothing left", processes, most)
}

func TestShimKill(t *testing.T) {
	c, mark := startTree(t)
	began := time.Now()
	if err := c.proc.(*shimmed).shim.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := end(t, c); !errors.Is(got.Err, ErrShimKilled) || got.Code != -1 {
		t.Errorf("got %+v", got)
	}
	t.Logf("noticed and done after %v", time.Since(began))
	output(t, c) // at its end: whoever held it is gone
	// The one that left group, session and pipes gets away.
	for _, pid := range marked(mark) {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		away := strings.HasSuffix(string(cmd), "\x00leaf\x00quiet\x00")
		if s, ok := readStat(pid); ok && !s.dead() && (!away || s.session == c.Pid) {
			t.Errorf("left: process %d %q", pid, cmd)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	nothingLeft(t, mark)
}

// With the host unable to act, a program still dies with its shim.
func TestShimKillAlone(t *testing.T) {
	h, mark := startHost(t)
	if err := h.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	running, shims := programs(mark)
	if len(running) != 4 || len(shims) != 4 {
		t.Errorf("%d programs and %d shims run", len(running), len(shims))
	}
	for _, pid := range shims {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for late := time.Now().Add(patience); len(running) > 0; running, _ = programs(mark) {
		if time.Now().After(late) {
			t.Errorf("left: %v", running)
			break
		}
	}
	_ = h.Process.Kill()
	_ = h.Wait() // killed
	for _, pid := range marked(mark) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	nothingLeft(t, mark)
}

// A plugin may stop its shim; the host's death wakes it.
func TestHostKillWithShimsStopped(t *testing.T) {
	h, mark := startHost(t)
	_, shims := programs(mark)
	for _, pid := range shims {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		await.Until(t, fmt.Sprintf("shim %d stops", pid), func() bool {
			s, _ := readStat(pid)
			return s.state == 'T'
		})
	}
	_ = h.Process.Kill()
	t.Logf("gone after %v", nothingLeft(t, mark))
	_ = h.Wait() // killed
}

// startHost starts a host with four trees and waits until they are up.
func startHost(t *testing.T) (h *exec.Cmd, mark string) {
	t.Helper()
	mark = newMark(t)
	h = exec.Command(os.Args[0], "as", "host", mark)
	out, err := h.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "up"; {
	}
	return h, mark
}

// programs lists what lives of a host's trees: the programs themselves, and
// their shims.
func programs(mark string) (pids, shims []int) {
	for _, pid := range marked(mark) {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		switch s, ok := readStat(pid); {
		case !ok || s.dead():
		case strings.HasPrefix(string(cmd), shimTitle):
			shims = append(shims, pid)
		case strings.HasSuffix(string(cmd), "\x00as\x00tree\x00"):
			pids = append(pids, pid)
		}
	}
	return pids, shims
}

// A shim that is stopped for good is killed, with all that it had.
func TestShimThatStaysStopped(t *testing.T) {
	mark := newMark(t)
	c := begin(t, shell(mark, "echo ready; exec sleep 600"))
	ready(t, c)
	shim := c.proc.(*shimmed).shim
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() { // faster than it is woken
		defer close(stopped)
		for shim.Signal(syscall.SIGSTOP) == nil {
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	c.Kill()
	end(t, c)
	close(stop)
	<-stopped
	nothingLeft(t, mark)
}

// A shim that says nothing at all, here a program that is none, is killed.
func TestShimThatDoesNotAnswer(t *testing.T) {
	f, err := openFiles()
	if err != nil {
		t.Fatal(err)
	}
	defer f.closeKept()
	defer f.closeGiven() // its end of the socket stays open meanwhile
	other, err := os.StartProcess("/bin/sleep", []string{"sleep", "600"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	h := &shimmed{shim: other, control: f.control, from: json.NewDecoder(f.control), begun: math.MaxUint64}
	c := &Child{proc: h, done: make(chan struct{})}
	go h.watch(c)
	c.Kill()
	if got := end(t, c); got.Err == nil || !strings.Contains(got.Err.Error(), "did not answer") {
		t.Errorf("got %+v", got)
	}
}

// bomb makes two children at each level, each in a session of its own: 127
// shells and 64 sleeps.
const bomb = `
level() { [ "$1" = 0 ] && exec sleep 600; n=$(($1-1)); setsid sh "$0" $n & setsid sh "$0" $n & wait; }
level $1
`

func TestForkBomb(t *testing.T) {
	script := t.TempDir() + "/bomb"
	if err := os.WriteFile(script, []byte(bomb), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Duration{0, 20, 50, 100, 200, 1000} {
		mark := newMark(t)
		s := shell(mark, "")
		s.Args = []string{"sh", script, "6"}
		c := begin(t, s)
		time.Sleep(at * time.Millisecond) // any moment will do
		running := len(marked(mark))
		began := time.Now()
		c.Kill()
		if got := end(t, c); got != (Exit{Code: -1, Signal: "killed"}) {
			t.Errorf("got %+v", got)
		}
		t.Logf("%d processes, gone after %v", running, time.Since(began))
		if left := marked(mark); len(left) > 0 {
			t.Errorf("left after Done: %v", left)
		}
	}
}

// A process that runs away from its killer: it forks and ends, in ever new
// sessions, 20,000 times.
func TestRunaway(t *testing.T) {
	mark := newMark(t)
	s := shell(mark, "")
	s.Path = python(t)
	s.Args = []string{s.Path, "-S", "-c", `import os
print("ready", flush=True)
for i in range(20000):
    if os.fork():
        if i: os._exit(0)
        os.wait()
        import time
        time.sleep(600)
    os.setsid()
`}
	for range 5 {
		c := begin(t, s)
		ready(t, c)
		time.Sleep(rand.N(50 * time.Millisecond))
		began := time.Now()
		c.Kill()
		if got := end(t, c); got != (Exit{Code: -1, Signal: "killed"}) {
			t.Errorf("got %+v", got)
		}
		t.Logf("gone after %v", time.Since(began))
		if left := marked(mark); len(left) > 0 {
			t.Errorf("left after Done: %v", left)
		}
	}
}
