package child

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stat is the part of /proc/PID/stat that counts here.
type stat struct {
	name    string // of the program, at most 15 bytes
	state   byte
	parent  int
	group   int
	session int
	start   uint64 // clock ticks since boot
}

// dead reports a process of which only the exit status is left.
func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' }

// readStat reports false if there is no such process.
func readStat(pid int) (stat, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, false
	}
	return parseStat(b)
}

// parseStat reads one line of proc(5)'s /proc/PID/stat. The name stands in
// parentheses and may hold spaces and parentheses itself.
func parseStat(b []byte) (s stat, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return s, false
	}
	s.name = string(b[open+1 : end])
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 || len(f[0]) != 1 { // the 20th after the name is the start time
		return s, false
	}
	if s.state = f[0][0]; s.state < 'A' || s.state > 'z' {
		return s, false
	}
	var errs [4]error
	s.parent, errs[0] = strconv.Atoi(f[1])
	s.group, errs[1] = strconv.Atoi(f[2])
	s.session, errs[2] = strconv.Atoi(f[3])
	s.start, errs[3] = strconv.ParseUint(f[19], 10, 64)
	return s, errors.Join(errs[:]...) == nil
}

// childrenOf lists the children of a process, those of all its threads and the
// dead ones included. It may miss some while the process forks or they end.
func childrenOf(pid int) []int {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	var out []int
	for _, thread := range numbers(tasks) {
		b, err := os.ReadFile(tasks + "/" + strconv.Itoa(thread) + "/children")
		if errors.Is(err, os.ErrNotExist) && thread == pid {
			return childrenByParent(pid) // a kernel without CONFIG_PROC_CHILDREN
		}
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// childrenByParent is childrenOf by a look at every process.
func childrenByParent(pid int) []int {
	var out []int
	for _, p := range numbers("/proc") {
		if s, ok := readStat(p); ok && s.parent == pid {
			out = append(out, p)
		}
	}
	return out
}

// numbers lists the entries of a directory of /proc that are numbers.
func numbers(dir string) []int {
	d, err := os.Open(dir)
	if err != nil {
		return nil // the process is gone
	}
	names, _ := d.Readdirnames(-1) // so it is if it fails now
	_ = d.Close()
	out := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// killIf kills a process if it still is what the caller wants dead: the number
// may belong to another by now. It reports what the process was.
func killIf(pid int, wanted func(stat) bool) (stat, bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
	} else if errors.Is(err, unix.ESRCH) {
		return stat{}, false
	}
	s, ok := readStat(pid)
	if !ok || s.dead() || !wanted(s) {
		return s, false
	}
	// Errors mean that it is gone, or that it may not be killed; the next look
	// at what is left tells.
	if err == nil {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	} else { // before Linux 5.3
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return s, true
}

// killBelow kills all descendants of the process that it can find, and whole
// groups at once, which forking can't outrun. A parent dies before its children
// are listed: it has no more of them from then on.
func killBelow(pid int) {
	killTree(pid, pid, map[int]bool{}, map[int]bool{})
}

func killTree(root, parent int, seen, groups map[int]bool) {
	for _, pid := range childrenOf(parent) {
		if seen[pid] {
			continue
		}
		seen[pid] = true
		// A child whose parent has just died is the root's.
		s, struck := killIf(pid, func(s stat) bool { return s.parent == parent || s.parent == root })
		// The program began a session of its own, so no group of its
		// descendants has a member that is not one of them.
		if struck && !groups[s.group] {
			groups[s.group] = true
			_ = unix.Kill(-s.group, unix.SIGKILL)
		}
		killTree(root, pid, seen, groups)
	}
}
