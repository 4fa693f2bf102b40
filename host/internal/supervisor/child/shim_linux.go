package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// shimTitle begins a shim's argv[0]. Nobody starts a program under such a
	// name by accident, and the plugin gets a name of its own.
	shimTitle = "pontoon: shim of plugin "
	// Descriptors that a shim is born with, besides the first three.
	controlFD, outFD, errFD = 3, 4, 5
	// sweepLimit is when the shim stops waiting for what can't be killed. The
	// host waits a little longer.
	sweepLimit = 4 * time.Second
	// hangLimit is what a start that hangs gets after the host has gone.
	hangLimit = 500 * time.Millisecond
)

// IsShim reports whether this process was started as a shim, or as what becomes a
// program; if so main must call Shim at once and exit with what it returns.
func IsShim() bool { return startedAs(shimTitle) || startedAs(boxTitle) }

func startedAs(title string) bool {
	if len(os.Args) != 1 || !strings.HasPrefix(os.Args[0], title) {
		return false
	}
	var s unix.Stat_t
	return unix.Fstat(controlFD, &s) == nil && s.Mode&unix.S_IFMT == unix.S_IFSOCK
}

// shim is the parent of one program. One goroutine owns it, locked to its
// thread, since the program dies with the thread that started it.
type shim struct {
	control *os.File
	orders  chan order     // closed when the host is gone
	child   chan os.Signal // SIGCHLD
	pid     int            // the program's
	cgroup  string
	gone    bool // the program has ended and was reaped
	status  syscall.WaitStatus
}

// Shim is the whole life of the shim, or of what becomes a program.
func Shim() int {
	if startedAs(boxTitle) {
		return box()
	}
	runtime.LockOSThread()
	closeOnExec()
	// Caught signals are dropped here and back at their default in the program;
	// ignored ones would stay ignored there.
	signal.Notify(make(chan os.Signal, 1))
	s := &shim{orders: make(chan order, 4), child: make(chan os.Signal, 1), control: os.NewFile(controlFD, "control")}
	signal.Notify(s.child, syscall.SIGCHLD)
	syscall.Umask(0o077)
	_ = os.WriteFile("/proc/self/comm", []byte("pontoon-shim"), 0) // for top; else it would be "exe"
	Guard()                                                        // behind that, which it would refuse
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return s.refuse(err)
	}
	from := json.NewDecoder(s.control)
	var l launch
	if err := from.Decode(&l); err != nil {
		return 1 // the host is gone
	}
	s.cgroup = l.Cgroup
	running := make(chan struct{})
	go s.listen(from, running)
	began, err := spawn(l, strings.TrimPrefix(os.Args[0], shimTitle), outFD, errFD)
	close(running)
	_ = unix.Close(outFD) // the program alone holds them from here on
	_ = unix.Close(errFD)
	if err != nil {
		s.end()
		return s.refuse(err)
	}
	s.pid = began.Pid
	_ = send(s.control, report{Started: &began}) // a host that is gone is noticed by listen
	s.watch()
	_ = send(s.control, report{Ending: true})
	left := s.end()
	_ = send(s.control, report{Ended: &ended{Status: uint32(s.status), Left: left}})
	return 0
}

// closeOnExec keeps all descriptors from the program, also those that the host
// was born with.
func closeOnExec() {
	if unix.CloseRange(controlFD, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	for _, fd := range numbers("/proc/self/fd") { // before Linux 5.11
		if fd >= controlFD {
			unix.CloseOnExec(fd)
		}
	}
}

// refuse tells why there is no program.
func (s *shim) refuse(err error) int {
	var no *refusal
	var errno syscall.Errno
	switch {
	case errors.As(err, &no):
	case errors.As(err, &errno):
		no = &refusal{Errno: int(errno)}
	default:
		no = &refusal{What: err.Error()}
	}
	_ = send(s.control, report{Refused: no})
	return 1
}

// listen passes on orders until the host is gone. If the program's start hangs
// then, the shim ends at once and takes the program with it.
func (s *shim) listen(from *json.Decoder, running <-chan struct{}) {
	for {
		var o order
		if from.Decode(&o) != nil {
			break
		}
		s.orders <- o
	}
	close(s.orders)
	select {
	case <-running:
	case <-time.After(hangLimit):
		os.Exit(1)
	}
}

// watch returns when the program has ended or must.
func (s *shim) watch() {
	for s.reap(); !s.gone; s.reap() {
		select {
		case <-s.child:
		case o, ok := <-s.orders:
			switch {
			case !ok || o == orderKill:
				return
			case o == orderTerminate:
				_ = unix.Kill(s.pid, unix.SIGTERM) // not yet reaped, so the number is its own
			}
		}
	}
}

// reap collects what has ended: the program, and orphans of it that came here.
func (s *shim) reap() {
	var w syscall.WaitStatus
	if s.gone || s.pid == 0 {
		for {
			if pid, err := syscall.Wait4(-1, &w, syscall.WNOHANG, nil); pid <= 0 && !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	}
	// All but the program, one by one: its group must be killed while its
	// number is still its own.
	for _, pid := range childrenOf(os.Getpid()) {
		if pid != s.pid {
			_, _ = syscall.Wait4(pid, &w, syscall.WNOHANG, nil)
		}
	}
	var info unix.Siginfo
	if unix.Waitid(unix.P_PID, s.pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) != nil || info.Signo == 0 {
		return
	}
	_ = unix.Kill(-s.pid, unix.SIGKILL)
	_, _ = syscall.Wait4(s.pid, &s.status, 0, nil)
	s.gone = true
}

// end kills and reaps until nothing is left, and names what can't be killed.
func (s *shim) end() (left string) {
	pause := time.Millisecond
	for deadline := time.Now().Add(sweepLimit); ; pause = min(2*pause, 20*time.Millisecond) {
		killCgroup(s.cgroup)
		killBelow(os.Getpid())
		s.reap()
		if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); errors.Is(err, unix.ECHILD) {
			removeCgroup(s.cgroup)
			return ""
		}
		if time.Now().After(deadline) {
			return describe(os.Getpid())
		}
		select {
		case <-s.child:
		case <-time.After(pause):
		}
	}
}

// describe names a few children and what they wait for.
func describe(pid int) string {
	var out []string
	for _, c := range childrenOf(pid) {
		if s, ok := readStat(c); ok && len(out) < 5 {
			out = append(out, fmt.Sprintf("process %d (%s, state %c)", c, label(s.name), s.state))
		}
	}
	return strings.Join(out, ", ")
}
