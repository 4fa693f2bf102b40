package child

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// oomScore makes the kernel prefer a plugin to the host when memory runs out
// (-1000 to 1000; what is started normally has 0).
const oomScore = 500

// spawn starts the program with out and err as its output, and sets its limits
// before its first instruction. The calling goroutine must be locked to a thread
// that lives as long as the program: the kernel kills the program when that
// thread ends.
func spawn(l launch, out, err uintptr) (started, error) {
	null, e := os.Open(os.DevNull)
	if e != nil {
		return started{}, e
	}
	defer func() { _ = null.Close() }()
	// A setuid program in the plugin's tree could not be killed by an ordinary
	// user. The flag is this thread's, and passes to what it forks.
	if e := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); e != nil {
		return started{}, e
	}
	attr := &syscall.ProcAttr{
		Dir: string(l.Dir), Env: texts(l.Env), Files: []uintptr{null.Fd(), out, err},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Ptrace: true},
	}
	// Traced, it stops after exec until its limits are set.
	pid, e := syscall.ForkExec(string(l.Path), texts(l.Args), attr)
	if errors.Is(e, syscall.EPERM) || errors.Is(e, syscall.ENOSYS) {
		// Tracing is not for everyone. Then the limits come a moment late.
		attr.Sys.Ptrace = false
		pid, e = syscall.ForkExec(string(l.Path), texts(l.Args), attr)
	}
	if e != nil {
		return started{}, e
	}
	stopped := attr.Sys.Ptrace && awaitExec(pid)
	s := started{Pid: pid, LimitBy: limit(pid, l)}
	if stopped {
		if e := syscall.PtraceDetach(pid); e != nil && !errors.Is(e, syscall.ESRCH) {
			return started{}, e // it stays stopped; the shim's end kills it
		}
	}
	return s, nil
}

// awaitExec waits for the stop after exec, and reports false if the program was
// killed instead. Its status is left to be waited for.
func awaitExec(pid int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		const trapped, ended = 4, 3 // CLD_TRAPPED; CLD_EXITED, CLD_KILLED and CLD_DUMPED are 1 to 3
		if err != nil || info.Code <= ended {
			return false
		}
		var w syscall.WaitStatus
		if _, err = syscall.Wait4(pid, &w, 0, nil); err != nil || info.Code != trapped {
			return false
		}
		if w.StopSignal() == syscall.SIGTRAP {
			return true
		}
		// Somebody's signal came first.
		if err := syscall.PtraceCont(pid, int(w.StopSignal())); err != nil {
			return false
		}
	}
}

// limit sets the limits of a program, and says what bounds its memory. All is
// best effort but what it reports.
func limit(pid int, l launch) (by string) {
	_ = unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	leaveProcesses(pid)
	raiseOOMScore(pid)
	joined := l.Cgroup != "" &&
		os.WriteFile(l.Cgroup+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0) == nil
	switch {
	case l.Memory == 0:
		return "none"
	case joined:
		return "cgroup"
	}
	// Data, not address space: Go reserves far more of that than it uses.
	most := uint64(l.Memory)
	if unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil) != nil {
		return "none"
	}
	return "rlimit"
}

// leaveProcesses lets the program make an eighth fewer processes and threads
// than its user may have, so that a fork bomb leaves some to the host.
func leaveProcesses(pid int) {
	var r unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_NPROC, nil, &r) == nil && r.Cur != unix.RLIM_INFINITY {
		r.Cur -= r.Cur / 8
		r.Max = r.Cur
		_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &r, nil)
	}
}

func raiseOOMScore(pid int) {
	b, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return
	}
	// Lowering is a privilege, and what was set higher is meant so.
	if now, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && now < oomScore {
		_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(strconv.Itoa(oomScore)), 0)
	}
}
