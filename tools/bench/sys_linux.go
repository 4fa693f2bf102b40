package bench

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// bindToParent ends the process when this one is killed.
func bindToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// spareFiles is what a process needs beside its connections.
const spareFiles = 64

// allowFiles makes room for n connections, here and in processes started later.
func allowFiles(n int) error {
	need := uint64(n + spareFiles)
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("read limit of open files: %w", err)
	}
	if l.Cur >= need {
		return nil
	}
	want := syscall.Rlimit{Cur: need, Max: max(l.Max, need)} // beyond Max for the privileged only
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &want); err != nil {
		return fmt.Errorf("%d connections need %d open files, the limit is %d: raise it (ulimit -n)", n, need, l.Max)
	}
	return nil
}

// OwnCPU is the processor time of this process, finer than cpuTime; 0 = not known.
func OwnCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const (
	tmpfs = 0x01021994
	ramfs = 0x858458f6
)

// inMemory reports whether a directory is lost with the power.
func inMemory(dir string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && (uint32(s.Type) == tmpfs || uint32(s.Type) == ramfs)
}

// yield is by how much yieldProcessor lowers the priority.
const yield = 10

// yieldProcessor lets processes of the present priority go before this one.
func yieldProcessor() error {
	found, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0) // as the kernel counts: 20 less the nice value
	if err != nil {
		return fmt.Errorf("read own priority: %w", err)
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 20-found+yield); err != nil {
		return fmt.Errorf("lower own priority: %w", err)
	}
	return nil
}
