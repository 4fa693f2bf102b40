package child

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
)

const patience = await.Limit

// longer is how long programs run that are to be ended: if nobody did, a test that
// waits for their end must give up first. Shell scripts say 600 seconds.
const longer = 10 * time.Minute

// The test binary is host, shim and plugin: "as ROLE ARGS…" makes it a plugin or
// a host that the test may kill.
func TestMain(m *testing.M) {
	if IsShim() {
		os.Exit(Shim())
	}
	if len(os.Args) > 2 && os.Args[1] == "as" {
		roles[os.Args[2]](os.Args[3:])
		os.Exit(0)
	}
	leaks.Main(m)
}

var roles = map[string]func(args []string){
	"exit":  func(args []string) { os.Exit(number(args[0])) },
	"raise": func(args []string) { _ = syscall.Kill(os.Getpid(), syscall.Signal(number(args[0]))); select {} },
	"sleep": func([]string) { fmt.Println("ready"); time.Sleep(longer) },
	"show":  show,
	"tree":  tree,
	"leaf":  func([]string) { time.Sleep(longer) },
	"fork":  func(args []string) { startLeaf(args[0] == "quiet") },
	"host":  host,
	"hang":  hang,
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// show prints what the process was given.
func show([]string) {
	dir, _ := os.Getwd()
	env, _ := os.ReadFile("/proc/self/environ") // as it was passed
	stdin, err := io.ReadAll(os.Stdin)
	mask := syscall.Umask(0)
	sid, _ := unix.Getsid(0)
	fmt.Printf("args %q\nenv %q\ndir %s\nstdin %q %v\numask %o\npid %d group %d session %d\n",
		os.Args[3:], env, dir, stdin, err, mask, os.Getpid(), unix.Getpgrp(), sid)
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if mask, ok := strings.CutPrefix(line, "SigIgn:\t"); ok {
			ignored, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			// 32 and 33 are the C library's own: no program can set them.
			fmt.Printf("ignored signals %x %v\n", ignored&^(3<<31), err)
		}
		if strings.HasPrefix(line, "NoNewPrivs") {
			fmt.Print(line)
		}
	}
	var core, data unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_CORE, &core)
	_ = unix.Getrlimit(unix.RLIMIT_DATA, &data)
	score, _ := os.ReadFile("/proc/self/oom_score_adj")
	fmt.Printf("core %d %d\ndata %d %d\noom %s", core.Cur, core.Max, data.Cur, data.Max, score)
}

// tree starts descendants of every kind: a child that has let go of the pipes,
// one in a session of its own, and two orphans in sessions of their own, of which
// one has let go of the pipes.
func tree([]string) {
	startLeaf(true, "own")
	startLeaf(false)
	for _, kind := range []string{"loud", "quiet"} {
		if err := run(exec.Command(os.Args[0], "as", "fork", kind), kind == "loud"); err != nil {
			panic(err)
		}
	}
	fmt.Println("ready")
	time.Sleep(longer)
}

func run(c *exec.Cmd, loud bool) error {
	if loud {
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
	}
	return c.Run()
}

func startLeaf(quiet bool, own ...string) {
	c := exec.Command(os.Args[0], "as", "leaf")
	if quiet {
		c.Args = append(c.Args, "quiet")
	} else {
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: len(own) == 0}
	if err := c.Start(); err != nil {
		panic(err)
	}
}

// host starts four trees, the next when the last is up, until it is killed.
func host(args []string) {
	fmt.Println("begin")
	for range 4 {
		c, err := Start(self(args[0], "tree"))
		if err != nil {
			panic(err)
		}
		if _, err = bufio.NewReader(c.Stdout).ReadString('\n'); err != nil {
			panic(err)
		}
	}
	fmt.Println("up")
	time.Sleep(longer)
}

// hang is a host that starts what does not come up.
func hang(args []string) {
	_, err := Start(Spec{Path: args[1], Args: args[1:], Dir: "/", Name: args[0], Env: []string{"MARK=" + args[0]}})
	panic(err)
}

// self is this program in a role. Its whole tree carries the mark.
func self(mark, role string, args ...string) Spec {
	me, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Spec{
		Path: me, Args: append([]string{me, "as", role}, args...), Dir: "/", Name: mark,
		Env: append(shimEnv(), "MARK="+mark),
	}
}

func newMark(t *testing.T) string {
	return fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid(), rand.Uint32())
}

// marked lists what runs of a tree: processes with its mark, and its shims.
func marked(mark string) (pids []int) {
	env, shim := []byte("MARK="+mark+"\x00"), []byte(shimTitle+label(mark)+"\x00")
	for _, pid := range numbers("/proc") {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		e, _ := os.ReadFile(dir + "/environ")
		c, _ := os.ReadFile(dir + "/cmdline")
		if bytes.Contains(e, env) || bytes.Equal(c, shim) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// nothingLeft polls until no process of the tree is left, and returns how long
// that took.
func nothingLeft(t *testing.T, mark string) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		left := marked(mark)
		if len(left) == 0 {
			return time.Since(began)
		}
		if time.Since(began) > patience {
			for _, pid := range left {
				s, _ := readStat(pid)
				t.Errorf("left: process %d %+v", pid, s)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			t.FailNow()
		}
		time.Sleep(time.Millisecond)
	}
}

func begin(t *testing.T, s Spec) *Child {
	t.Helper()
	c, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		<-c.Done()
		_ = c.Stdout.Close()
		_ = c.Stderr.Close()
	})
	return c
}

func end(t *testing.T, c *Child) Exit {
	t.Helper()
	select {
	case <-c.Done():
		return c.Exit()
	case <-time.After(patience):
		t.Fatal("Done is not closed")
		return Exit{}
	}
}

// output reads all that a program wrote; it ends when nobody holds the pipes.
func output(t *testing.T, c *Child) (out, errs string) {
	t.Helper()
	var wg sync.WaitGroup
	read := func(f *os.File, to *string) {
		_ = f.SetReadDeadline(time.Now().Add(patience))
		b, err := io.ReadAll(f)
		if err != nil {
			t.Error(err)
		}
		*to = string(b)
	}
	wg.Go(func() { read(c.Stdout, &out) })
	wg.Go(func() { read(c.Stderr, &errs) })
	wg.Wait()
	return out, errs
}

// ready waits for a line of stdout that says so.
func ready(t *testing.T, c *Child) {
	t.Helper()
	_ = c.Stdout.SetReadDeadline(time.Now().Add(patience))
	line, err := bufio.NewReader(c.Stdout).ReadString('\n')
	if err != nil || line != "ready\n" {
		_ = c.Stderr.SetReadDeadline(time.Now().Add(time.Second))
		errs, _ := io.ReadAll(c.Stderr)
		t.Fatalf("line %q, %v, stderr %s", line, err, errs)
	}
}

func shell(mark, script string) Spec {
	return Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: "/", Name: mark,
		Env: []string{"MARK=" + mark, "PATH=/usr/bin:/bin"},
	}
}

// python is the interpreter itself: the first in PATH may be a script.
func python(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// goProgram builds testdata/memory, without the race detector's shadow memory.
func goProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memory")
	c := exec.Command("go", "build", "-o", path, "./testdata/memory")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}
