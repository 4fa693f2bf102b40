package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// boxTitle begins the argv[0] of what becomes a program: the host's binary a third
// time, which the shim starts. It shuts itself into the program's sandbox, sets the
// program's limits, and executes the program in its own place. So all of it holds
// before the program's first instruction, and the shim stays outside of it.
const boxTitle = "pontoon: start of plugin "

// oomScore makes the kernel prefer a plugin to the host when memory runs out
// (-1000 to 1000; what is started normally has 0).
const oomScore = 500

// box is the whole life of what becomes the program. It returns if that failed.
func box() int {
	// Every setting below is this thread's, and so the program's: exec leaves the
	// others behind.
	runtime.LockOSThread()
	debug.SetGCPercent(-1) // it would need memory when there may be none
	closeOnExec()
	control := os.NewFile(controlFD, "control")
	var l launch
	if err := json.NewDecoder(control).Decode(&l); err != nil {
		return 1 // the shim is gone
	}
	l.Sandbox.Read, l.Sandbox.Write = texts(l.Read), texts(l.Write)
	err := become(control, l)
	no := refusal{What: err.Error()}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		no = refusal{Errno: int(errno), What: strings.TrimSuffix(strings.TrimSuffix(err.Error(), errno.Error()), ": ")}
	}
	_ = send(control, report{Refused: &no})
	return 1
}

// become turns this process into the program. It returns only with an error.
func become(control *os.File, l launch) error {
	if err := os.Chdir(string(l.Dir)); err != nil {
		return fmt.Errorf("working directory: %w", errors.Unwrap(err))
	}
	began := started{Pid: os.Getpid(), Held: Held{LimitBy: "none"}}
	joined := l.Cgroup != "" && writeTo(l.Cgroup+"/cgroup.procs", strconv.Itoa(began.Pid)) == nil
	raiseOOMScore()
	if l.Memory > 0 && joined {
		began.Held.LimitBy = "cgroup"
	} else if l.Memory > 0 {
		began.Held.LimitBy = "rlimit"
	}
	processes, beyond := l.processes(joined)
	abi := 0
	if l.Sandbox.On {
		abi = landlockABI()
	}
	if err := l.Sandbox.check(abi); err != nil {
		return err
	}
	began.Held.Sandbox, began.Held.Landlock, began.Held.Open = l.Sandbox.strength(abi), abi, l.Sandbox.open(abi)
	if beyond != "" {
		began.Held.Open = append(began.Held.Open, beyond)
	}
	// A setuid program in the plugin's tree could not be killed by an ordinary user.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := confine(l.Sandbox, abi); err != nil {
		return err
	}
	if err := give(l.Sandbox); err != nil {
		return err
	}
	// Another user's process has no parent's death signal any more.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("parent's death signal: %w", err)
	}
	if os.Getppid() != l.Shim {
		return errors.New("its shim is gone")
	}
	if l.Sandbox.On && filters {
		if err := newFilter(l.Sandbox.AnyPort).install(); err != nil {
			return fmt.Errorf("sandbox: seccomp: %w", err)
		}
	}
	if err := send(control, report{Started: &began}); err != nil {
		return err
	}
	path, args, env := string(l.Path), texts(l.Args), texts(l.Env)
	if err := setLimits(began.Held.LimitBy, l.Memory, processes); err != nil {
		return err
	}
	return syscall.Exec(path, args, env)
}

// setLimits sets what holds for each process by itself. From here on memory may be
// refused to this one too.
func setLimits(by string, memory, processes int64) error {
	limits := map[int]int64{unix.RLIMIT_CORE: 0}
	if by == "rlimit" {
		limits[unix.RLIMIT_DATA] = memory // data, not address space: Go reserves far more of that than it uses
	}
	if processes > 0 {
		limits[unix.RLIMIT_NPROC] = processes
	}
	for what, most := range limits {
		if err := unix.Prlimit(0, what, &unix.Rlimit{Cur: uint64(most), Max: uint64(most)}, nil); err != nil {
			return fmt.Errorf("limit %d: %w", what, err)
		}
	}
	return nil
}

// othersRoom is what a limit on a user's processes leaves to other plugins of the same
// user: as many as plugins.yaml may have, with 16 threads each.
const othersRoom = 4096

// processes is how many processes and threads the program's user may have in all; 0
// = as many as now. beyond says what that leaves the program over its own limit: the
// kernel counts by user, and not root's.
func (l launch) processes(joined bool) (most int64, beyond string) {
	var r unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_NPROC, nil, &r) == nil && r.Cur != unix.RLIM_INFINITY {
		most = int64(r.Cur - r.Cur/8) // so that a fork bomb leaves some to the host
	}
	n, uid := int64(l.Sandbox.Processes), os.Getuid()
	if n == 0 {
		return most, ""
	}
	if u := l.Sandbox.User; u != nil && u.UID != uid {
		return n, ""
	}
	if n += threadsOf(uid) + othersRoom; most == 0 || n < most {
		most = n
	}
	_, err := os.Stat(l.Cgroup + "/pids.max")
	switch {
	case joined && err == nil:
		return most, ""
	case uid == 0:
		return most, "any number of processes, since root's are not counted"
	}
	return most, fmt.Sprintf("up to %d processes more than its limit, since others share its user", othersRoom)
}

// threadsOf counts the threads of a user's processes.
func threadsOf(uid int) (n int64) {
	for _, pid := range numbers("/proc") {
		dir := "/proc/" + strconv.Itoa(pid)
		if info, err := os.Stat(dir); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) == uid {
				n += int64(len(numbers(dir + "/task")))
			}
		}
	}
	return n
}

func raiseOOMScore() {
	const file = "/proc/self/oom_score_adj"
	b, err := os.ReadFile(file)
	if err != nil {
		return
	}
	// Lowering is a privilege, and what was set higher is meant so.
	if now, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && now < oomScore {
		_ = writeTo(file, strconv.Itoa(oomScore))
	}
}

// give hands this thread over to the program's user, and drops the capabilities of
// root, which would open what the sandbox closes.
func give(s Sandbox) error {
	if s.On {
		for c := range uintptr(unix.CAP_LAST_CAP + 1) {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // who may not has none
		}
		_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	}
	if u := s.User; u != nil && (u.UID != os.Getuid() || u.GID != os.Getgid()) {
		err := unix.Setgroups([]int{u.GID})
		if err == nil {
			err = unix.Setresgid(u.GID, u.GID, u.GID)
		}
		if err == nil {
			err = unix.Setresuid(u.UID, u.UID, u.UID)
		}
		if err != nil {
			return fmt.Errorf("user: become %s: the host must run as root for that: %w", u.Name, err)
		}
	}
	if !s.On {
		return nil
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has, none [2]unix.CapUserData
	if err := unix.Capget(&head, &has[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if has == none {
		return nil
	}
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// Guard keeps other processes of this user from looking into this one, at its memory,
// environment and open files, as only a debugger of root's can then. A shim needs it
// as the host does: not every kernel has Landlock.
func Guard() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // no other argument can be wrong
}
