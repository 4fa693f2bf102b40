package child

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// strayLimit bounds the search for strays. It and killAnswer together keep what
// Kill promises.
const strayLimit = 300 * time.Millisecond

// killStrays kills what is left of a program whose shim was killed. The program
// itself died with the shim. Of its descendants, now children of init, those are
// found that are in its cgroup, in its session or group, or hold its output; one
// that has left all of these is not.
func (h *shimmed) killStrays() {
	for deadline := time.Now().Add(strayLimit); ; time.Sleep(5 * time.Millisecond) {
		killCgroup(h.cgroup)
		found := false
		for _, pid := range numbers("/proc") {
			_, struck := killIf(pid, func(s stat) bool { return h.isStray(pid, s) })
			found = found || struck
		}
		if !found || time.Now().After(deadline) {
			return
		}
	}
}

func (h *shimmed) isStray(pid int, s stat) bool {
	// Another child of the host may hold all of the host's files for the moment
	// between fork and exec. What is older than the shim is not from it.
	if self := os.Getpid(); pid == self || s.parent == self || s.start < h.begun {
		return false
	}
	return s.session == h.pid || s.group == h.pid || holds(pid, h.pipes)
}

// holds reports whether a process has one of the pipes open. A process of
// another user does not show. The links are only read: a file behind one may be
// on a dead disk.
func holds(pid int, pipes []string) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	for _, fd := range numbers(dir) {
		if to, err := os.Readlink(dir + strconv.Itoa(fd)); err == nil && slices.Contains(pipes, to) {
			return true
		}
	}
	return false
}

// reap waits for the end of a program without a shim, and kills its group
// before its number can be another's.
func (p *plain) reap() error {
	for {
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	p.end()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	return nil
}
