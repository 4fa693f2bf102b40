package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// way is a way out of the sandbox. It returns nil if it led outside, else what
// stopped it.
type way struct {
	name string
	try  func(e *escapee) error
}

// escapee is what a hostile plugin knows of its host.
type escapee struct {
	options
	state      string // its own directory
	host, shim int    // pids
}

// escape tries all ways out, one after the other, and notes in its state how each
// ended: a JSON object of what stopped it by name; "" = nothing did.
func escape(o options) {
	e := &escapee{options: o, state: os.Getenv("PONTOON_PLUGIN_STATE"), shim: os.Getppid()}
	e.host = parentOf(e.shim)
	seen := map[string]string{}
	for _, w := range ways {
		seen[w.name] = ""
		if err := w.try(e); err != nil {
			seen[w.name] = err.Error()
		}
		if err := e.note(seen); err != nil { // after each: one of them may be the end of us
			fmt.Fprintln(os.Stderr, "hostile:", err)
		}
	}
}

func (e *escapee) note(seen map[string]string) error {
	text, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	file := filepath.Join(e.state, "ways.json")
	if err := os.WriteFile(file+"~", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+"~", file)
}

// parentOf reads the fourth field of stat, which anybody may.
func parentOf(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(after)
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

var ways = []way{
	{"read admin.key", func(e *escapee) error { return read(e.data, "admin.key") }},
	{"read setup.link", func(e *escapee) error { return read(e.data, "setup.link") }},
	{"read master.key", func(e *escapee) error { return read(e.data, "master.key") }},
	{"read the database", func(e *escapee) error { return read(e.data, "pontoon.db") }},
	{"read its WAL", func(e *escapee) error { return read(e.data, "pontoon.db-wal") }},
	{"list the data directory", func(e *escapee) error { _, err := os.ReadDir(e.data); return err }},
	{"read plugins.yaml by its working directory", func(*escapee) error { return read("/proc/self/cwd", "plugins.yaml") }},
	{"read another plugin's state", func(e *escapee) error { return read(e.data, "plugins", e.neighbour, "secret") }},
	{"read /etc/shadow", func(*escapee) error { return read("/etc/shadow") }},
	{"read admin.key by its own root", func(e *escapee) error { return read("/proc/self/root", e.data, "admin.key") }},
	{"read admin.key by dots", func(e *escapee) error {
		_, err := os.ReadFile(e.state + "/../../admin.key")
		return err
	}},
	{"read admin.key by a symlink", func(e *escapee) error {
		_ = os.Symlink(filepath.Join(e.data, "admin.key"), filepath.Join(e.state, "link"))
		return read(e.state, "link")
	}},
	{"read admin.key by a hard link", func(e *escapee) error {
		if err := os.Link(filepath.Join(e.data, "admin.key"), filepath.Join(e.state, "hard")); err != nil {
			return err
		}
		return read(e.state, "hard")
	}},
	{"write into the data directory", func(e *escapee) error { return write(e.data, "new") }},
	{"write there by a symlink", func(e *escapee) error {
		_ = os.Symlink(e.data, filepath.Join(e.state, "linked"))
		return write(e.state, "linked", "new-by-link")
	}},
	{"overwrite a file there", func(e *escapee) error { return write(e.data, "victim") }},
	{"truncate a file there", func(e *escapee) error { return os.Truncate(filepath.Join(e.data, "victim"), 0) }},
	{"move a file from there", func(e *escapee) error {
		return os.Rename(filepath.Join(e.data, "victim"), filepath.Join(e.state, "victim"))
	}},
	{"remove a file there", func(e *escapee) error { return os.Remove(filepath.Join(e.data, "other-victim")) }},
	{"write another plugin's state", func(e *escapee) error { return write(e.data, "plugins", e.neighbour, "forged") }},
	{"write elsewhere", func(e *escapee) error { return write(e.outside, "new") }},
	{"write a system file", func(*escapee) error { return write("/usr/local", "pontoon-hostile") }},
	{"change a mode there", func(e *escapee) error { return os.Chmod(filepath.Join(e.data, "victim-of-modes"), 0o644) }},
	{"read the host's environment", func(e *escapee) error { return read(e.proc("environ")) }},
	{"open the host's memory", func(e *escapee) error { return opens(e.proc("mem"), os.O_RDWR) }},
	{"open the host's descriptors", descriptors},
	{"read admin.key by the host's root", func(e *escapee) error { return read(e.proc("root"), e.data, "admin.key") }},
	{"open the shim's memory", func(e *escapee) error { return opens(fmt.Sprintf("/proc/%d/mem", e.shim), os.O_RDWR) }},
	{"find an inherited descriptor", inherited},
	{"trace the host", func(e *escapee) error { return syscall.PtraceAttach(e.host) }},
	{"read the host's memory by a call", vmRead},
	{"signal the host", func(e *escapee) error { return syscall.Kill(e.host, 0) }},
	{"signal its shim", func(e *escapee) error { return syscall.Kill(e.shim, 0) }},
	{"take a descriptor of the host", takeDescriptor},
	{"set the host's limits", func(e *escapee) error {
		return unix.Prlimit(e.host, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	}},
	{"set the host's priority", func(e *escapee) error { return syscall.Setpriority(syscall.PRIO_PROCESS, e.host, 1) }},
	{"reach an abstract socket", func(e *escapee) error { return dial("unix", "@"+e.abstract) }},
	{"reach a socket by its path", func(e *escapee) error { return dial("unix", e.socket) }},
	{"connect to a port that is not named", func(e *escapee) error { return dial("tcp", e.elsewhere) }},
	{"connect there by multipath TCP", multipath},
	{"connect there by fast open", fastOpen},
	{"gain by a setuid program", func(e *escapee) error { return e.run(nil, e.setuid, "privileges") }},
	{"mount", func(e *escapee) error { return unix.Mount("none", e.state, "tmpfs", 0, "") }},
	{"make a device", func(e *escapee) error { return unix.Mknod(filepath.Join(e.state, "disk"), unix.S_IFBLK|0o600, 8<<8) }},
	{"read admin.key in a namespace", func(e *escapee) error {
		return e.run(&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}, self(), "read", "data="+e.data)
	}},
	{"fork without end", bomb},
	{"take all memory", func(e *escapee) error { return e.run(nil, self(), "hoard") }},
}

func (e *escapee) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", e.host, name) }

func self() string { path, _ := os.Executable(); return path }

func read(path ...string) error { return opens(filepath.Join(path...), os.O_RDONLY) }

// opens is nil if the file can be opened and, to read, read.
func opens(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if flags == os.O_RDONLY {
		_, err = f.Read(make([]byte, 1))
	}
	return err
}

func write(path ...string) error {
	return os.WriteFile(filepath.Join(path...), []byte("hostile"), 0o600)
}

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err == nil {
		_ = c.Close()
	}
	return err
}

// run starts a program, and is nil if that and the program itself ended well.
func (e *escapee) run(attr *syscall.SysProcAttr, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), sleepTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err != nil {
		first, _, _ := strings.Cut(string(out), "\n")
		return fmt.Errorf("%w: %s", err, first)
	}
	return nil
}

// inherited looks for what the host had open: our own are sockets, pipes and such, and
// what Go's runtime has of the cgroup.
func inherited(*escapee) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		to, err := os.Readlink("/proc/self/fd/" + entry.Name())
		ours := !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "/dev/") || strings.HasPrefix(to, "/proc/") || strings.HasPrefix(to, "/sys/fs/cgroup/")
		if err == nil && !ours {
			fmt.Fprintln(os.Stderr, "hostile: inherited", to)
			return nil
		}
	}
	return errors.New("none is open")
}

// descriptors opens what the host has open: that there are some may be seen.
func descriptors(e *escapee) error {
	entries, err := os.ReadDir(e.proc("fd"))
	for _, entry := range entries {
		if err = opens(filepath.Join(e.proc("fd"), entry.Name()), os.O_WRONLY); err == nil {
			return nil
		}
	}
	return err
}

func vmRead(e *escapee) error {
	into := make([]byte, 8)
	local := []unix.Iovec{{Base: &into[0], Len: uint64(len(into))}}
	_, err := unix.ProcessVMReadv(e.host, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&into[0])), Len: len(into)}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil // it was allowed to look there
	}
	return err
}

func takeDescriptor(e *escapee) error {
	fd, err := unix.PidfdOpen(e.host, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	got, err := unix.PidfdGetfd(fd, 2, 0)
	if err == nil {
		_ = unix.Close(got)
	}
	return err
}

func multipath(e *escapee) error {
	d := net.Dialer{}
	d.SetMultipathTCP(true)
	c, err := d.Dial("tcp", e.elsewhere) // falls back to TCP
	if err == nil {
		_ = c.Close()
	}
	return err
}

// fastOpen connects by sending.
func fastOpen(e *escapee) error {
	to, err := net.ResolveTCPAddr("tcp4", e.elsewhere)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
}

// bomb starts as many processes as it may, up to far more than its limit.
func bomb(e *escapee) error {
	ctx, cancel := context.WithTimeout(context.Background(), sleepTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `i=0; while [ $i -lt 400 ]; do sleep 60 & i=$((i+1)); done`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Run()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return err
}

// privileges is the mode of a program that is setuid: it ends well if it has any.
func privileges(options) int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return complain(err)
	}
	for line := range strings.Lines(string(text)) {
		if caps, ok := strings.CutPrefix(line, "CapEff:"); ok && strings.Trim(caps, "\t\n0") != "" {
			return 0
		}
	}
	return complain(errors.New("no capability"))
}

// readKey is the mode of a program in a namespace of its own, where it is root.
func readKey(o options) int {
	if err := read(o.data, "admin.key"); err != nil {
		return complain(err)
	}
	return 0
}

// hoard takes more memory than a test's plugin may have.
func hoard(options) int {
	allocate(1 << 30)
	return 0
}

// withoutLandlock becomes the program that the arguments name, on a kernel that has
// no Landlock as far as that program and its children can tell.
func withoutLandlock(args []string) int {
	deny := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(deny)), Filter: &deny[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return complain(err)
	}
	if _, _, no := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); no != 0 {
		return complain(no)
	}
	return complain(syscall.Exec(args[0], args, os.Environ()))
}
