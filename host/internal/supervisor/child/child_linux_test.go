package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

func TestExit(t *testing.T) {
	for name, test := range map[string]struct {
		role, arg string
		want      Exit
	}{
		"0":       {"exit", "0", Exit{}},
		"3":       {"exit", "3", Exit{Code: 3}},
		"255":     {"exit", "255", Exit{Code: 255}},
		"killed":  {"raise", "9", Exit{Code: -1, Signal: "killed"}},
		"aborted": {"raise", "6", Exit{Code: -1, Signal: "aborted"}}, // would dump core
	} {
		for _, noShim := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s noShim=%v", name, noShim), func(t *testing.T) {
				if test.arg == "6" {
					// The Go runtime catches it; a shell does not.
					s := shell("exit", "kill -6 $$")
					s.NoShim = noShim
					if got := end(t, begin(t, s)); got != test.want {
						t.Errorf("got %+v, want %+v", got, test.want)
					}
					return
				}
				s := self("exit", test.role, test.arg)
				s.NoShim = noShim
				if got := end(t, begin(t, s)); got != test.want {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
			})
		}
	}
}

func TestTerminateAndKill(t *testing.T) {
	for _, noShim := range []bool{false, true} {
		for name, test := range map[string]struct {
			act  func(*Child)
			want string
		}{"terminate": {(*Child).Terminate, "terminated"}, "kill": {(*Child).Kill, "killed"}} {
			t.Run(fmt.Sprintf("%s noShim=%v", name, noShim), func(t *testing.T) {
				s := shell("sleep", "echo ready; exec sleep 600")
				s.NoShim = noShim
				c := begin(t, s)
				ready(t, c)
				var wg sync.WaitGroup
				for range 50 { // at once, and again after the end
					wg.Go(func() { test.act(c) })
				}
				wg.Wait()
				if got := end(t, c); got != (Exit{Code: -1, Signal: test.want}) {
					t.Errorf("got %+v", got)
				}
				test.act(c)
			})
		}
	}
}

func TestTerminateIsForTheProgramAlone(t *testing.T) {
	c := begin(t, shell("term", `trap 'sleep 0.3; echo program; exit 7' TERM
(trap 'echo its child' TERM; echo ready; while :; do sleep 0.01; done) &
while :; do sleep 0.01; done`))
	ready(t, c)
	c.Terminate()
	out, _ := output(t, c)
	if got := end(t, c); got.Code != 7 || out != "program\n" {
		t.Errorf("exit %+v, output %q", got, out)
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	garbage, plainFile := filepath.Join(dir, "garbage"), filepath.Join(dir, "plain")
	for file, mode := range map[string]os.FileMode{garbage: 0o755, plainFile: 0o644} {
		if err := os.WriteFile(file, []byte("\x01\x02\x03\x04"), mode); err != nil {
			t.Fatal(err)
		}
	}
	good := func() Spec { return Spec{Path: "/bin/true", Args: []string{"true"}, Dir: "/"} }
	for name, test := range map[string]struct {
		change func(*Spec)
		is     error
		says   string
	}{
		"errNoFile":      {func(s *Spec) { s.Path = dir + "/none" }, fs.ErrNotExist, dir + "/none"},
		"errFormat":      {func(s *Spec) { s.Path = garbage }, syscall.ENOEXEC, "exec format error"},
		"errPermission":  {func(s *Spec) { s.Path = plainFile }, fs.ErrPermission, "permission denied"},
		"errIsDirectory": {func(s *Spec) { s.Path = dir }, fs.ErrPermission, "permission denied"},
		"errNoDir":       {func(s *Spec) { s.Dir = dir + "/none" }, fs.ErrNotExist, dir + "/none"},
		"errDirIsFile":   {func(s *Spec) { s.Dir = garbage }, syscall.ENOTDIR, garbage},
		"errRelative":    {func(s *Spec) { s.Path = "bin/true" }, nil, `path "bin/true" is not absolute`},
		"errRelativeDir": {func(s *Spec) { s.Dir = "." }, nil, `working directory "." is not absolute`},
		"errNoArgs":      {func(s *Spec) { s.Args = nil }, nil, "no arguments"},
		"errNUL":         {func(s *Spec) { s.Args = []string{"a\x00b"} }, nil, "NUL"},
		"errEnv":         {func(s *Spec) { s.Env = []string{"secret"} }, nil, "not NAME=value"},
		"errTooLong":     {func(s *Spec) { s.Env = []string{"A=" + strings.Repeat("x", maxSpec)} }, nil, "at most 1048576"},
		"errOneTooLong":  {func(s *Spec) { s.Env = []string{"A=" + strings.Repeat("x", 500_000)} }, syscall.E2BIG, "too long"},
		"errMemory":      {func(s *Spec) { s.Memory = -1 }, nil, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			s.Name = newMark(t)
			test.change(&s)
			c, err := Start(s)
			if err == nil {
				c.Kill()
				t.Fatal("started")
			}
			if test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
			nothingLeft(t, s.Name)
		})
	}
}

// An exec that hangs, here since another process holds a lease on the file.
func TestStartThatHangs(t *testing.T) {
	s := Spec{Path: leased(t), Args: []string{"leased"}, Dir: "/", Name: newMark(t)}
	if _, err := startShim(s, time.Second); err == nil || !strings.Contains(err.Error(), "hangs") {
		t.Errorf("got %v", err)
	}
	t.Logf("nothing left after %v", nothingLeft(t, s.Name))
}

// The same, and the host is killed meanwhile.
func TestHostKillWhileStartHangs(t *testing.T) {
	mark := newMark(t)
	h := exec.Command(os.Args[0], "as", "hang", mark, leased(t))
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	forked := func() bool {
		for _, pid := range marked(mark) {
			if len(childrenOf(pid)) > 0 {
				return true
			}
		}
		return false
	}
	await.Until(t, "a program is being started", forked)
	_ = h.Process.Kill()
	t.Logf("nothing left after %v", nothingLeft(t, mark))
	_ = h.Wait() // killed
}

// leased is a program that can't be executed for 45 s (the kernel's default).
func leased(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leased")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatTheProgramGets(t *testing.T) {
	s := self("show", "show", "a b", "", "\xff")
	s.Env = []string{"B=2", "A=\xff\xfe\n", "A=again", "EMPTY="}
	s.Dir = t.TempDir()
	s.Memory = 1 << 40 // more than the race detector's shadow memory would be refused
	s.Memory <<= 10
	c := begin(t, s)
	out, errs := output(t, c)
	if e := end(t, c); e != (Exit{}) || errs != "" {
		t.Fatalf("exit %+v, stderr %s", e, errs)
	}
	for _, want := range []string{
		`args ["a b" "" "\xff"]`, `env "B=2\x00A=\xff\xfe\n\x00A=again\x00EMPTY=\x00"`, "dir " + s.Dir,
		`stdin "" <nil>`, "umask 77", fmt.Sprintf("pid %d group %d session %d", c.Pid, c.Pid, c.Pid),
		"ignored signals 0 <nil>", "NoNewPrivs:\t1", "core 0 0", "oom 500",
	} {
		if !slices.Contains(strings.Split(out, "\n"), want) {
			t.Errorf("no line %q in\n%s", want, out)
		}
	}
	if by, why := Limiter(); by != c.Held.LimitBy {
		t.Errorf("limited by %s, announced %s (%s)", c.Held.LimitBy, by, why)
	}
	if limited := strings.Contains(out, fmt.Sprintf("data %d %d\n", s.Memory, s.Memory)); limited != (c.Held.LimitBy == "rlimit") {
		t.Errorf("limited by %s:\n%s", c.Held.LimitBy, out)
	}
}

// The host's descriptors stay out of the program, also those that would survive
// an exec, and neither host nor shim keeps the write ends of its output.
func TestDescriptors(t *testing.T) {
	leak, err := unix.Open("/dev/zero", unix.O_RDONLY, 0) // no O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(leak) }()
	var children []*Child
	for range 4 { // none gets another's
		c := begin(t, shell("fds", "echo ready; exec sleep 600"))
		ready(t, c)
		children = append(children, c)
	}
	for _, c := range children {
		h := c.proc.(*shimmed)
		want := fmt.Sprint(map[string]string{"0": "/dev/null", "1": h.pipes[0], "2": h.pipes[1]})
		var links string
		await.UntilElse(t, func() bool {
			links = fmt.Sprint(openFilesOf(c.Pid)) // sleep loads its libraries
			return links == want
		}, func() string { return fmt.Sprintf("program has %v, it has %v", want, links) })
		for fd, to := range openFilesOf(h.shim.Pid) {
			if slices.Contains(h.pipes, to) {
				t.Errorf("shim has %s as %s", to, fd)
			}
		}
	}
	// The output ends with the program.
	c := begin(t, shell("eof", "echo out; echo err >&2"))
	if out, errs := output(t, c); out != "out\n" || errs != "err\n" {
		t.Errorf("got %q %q", out, errs)
	}
}

func openFilesOf(pid int) map[string]string {
	out := map[string]string{}
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	for _, fd := range numbers(dir) {
		if to, err := os.Readlink(dir + fmt.Sprint(fd)); err == nil {
			out[fmt.Sprint(fd)] = to
		}
	}
	return out
}

// A Ctrl-C goes to the terminal's foreground group; nothing of a plugin may be
// in the host's group.
func TestOwnGroup(t *testing.T) {
	c := begin(t, shell("session", "echo ready; exec sleep 600"))
	ready(t, c)
	shimPid := c.proc.(*shimmed).shim.Pid
	host, _ := readStat(os.Getpid())
	shim, _ := readStat(shimPid)
	program, _ := readStat(c.Pid)
	if shim.group == host.group || program.session == host.session || program.session == shim.session {
		t.Errorf("host %+v\nshim %+v\nprogram %+v", host, shim, program)
	}
	if shim.name != "pontoon-shim" || program.parent != shimPid {
		t.Errorf("shim %+v\nprogram %+v", shim, program)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT} {
		if err := syscall.Kill(shimPid, sig); err != nil {
			t.Fatal(err)
		}
	}
	c.Terminate()
	if got := end(t, c); got != (Exit{Code: -1, Signal: "terminated"}) {
		t.Errorf("got %+v", got)
	}
}

// What the host hands over shows in nobody's process list.
func TestSecretsDoNotShow(t *testing.T) {
	s := shell("secrets", "echo ready; exec sleep 600")
	s.Env = append(s.Env, "TOKEN=hidden")
	c := begin(t, s)
	ready(t, c)
	for file, want := range map[string]string{"environ": shimEnv()[0] + "\x00", "cmdline": shimTitle + "secrets\x00"} {
		got, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", c.proc.(*shimmed).shim.Pid, file))
		if err != nil || string(got) != want {
			t.Errorf("%s of the shim: %q, %v", file, got, err)
		}
	}
}

func TestIsShim(t *testing.T) {
	if IsShim() {
		t.Error("the test is no shim")
	}
}

func TestManyAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			c, err := Start(shell("many", fmt.Sprintf("echo %d; exit %d", i, i)))
			if err != nil {
				t.Error(err)
				return
			}
			out, _ := output(t, c)
			<-c.Done()
			_ = errors.Join(c.Stdout.Close(), c.Stderr.Close())
			if c.Exit() != (Exit{Code: i}) || out != fmt.Sprintf("%d\n", i) {
				t.Errorf("%d: got %+v, output %q", i, c.Exit(), out)
			}
		})
	}
	wg.Wait()
}

func TestStartTime(t *testing.T) {
	for _, noShim := range []bool{true, false} {
		var times []time.Duration
		for range 20 {
			s := Spec{Path: "/bin/true", Args: []string{"true"}, Dir: "/", Name: "true", NoShim: noShim}
			began := time.Now()
			c := begin(t, s)
			times = append(times, time.Since(began))
			end(t, c)
		}
		slices.Sort(times)
		t.Logf("noShim=%v: median %v, most %v", noShim, times[10], times[19])
	}
}
