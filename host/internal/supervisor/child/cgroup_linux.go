package child

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cgroupPrefix = "pontoon-"
	// hostCgroup is where the host moves itself: cgroup v2 wants processes only
	// in leaves once controllers are given to children.
	hostCgroup = cgroupPrefix + "host"
	// removeLimit is how long a cgroup may stay busy after its last process.
	removeLimit = 100 * time.Millisecond
)

// Limiter says what a memory limit would be enforced by on this machine, and
// why not by something better, for `doctor`. It changes nothing. The answer is
// that of the asking process: a service's cgroup may be another than a shell's.
func Limiter() (by, why string) {
	dir, err := cgroupOf("/proc/self")
	if err == nil {
		_, err = usable(dir, "memory", os.Getpid())
	}
	if err != nil {
		return "rlimit", err.Error()
	}
	return "cgroup", ""
}

// newCgroup makes a cgroup for the program, with its limits. "" = there is no
// such thing here; Limiter knows why.
func newCgroup(s Spec) string {
	own, err := cgroupOf("/proc/self")
	if err != nil {
		return ""
	}
	base, err := enter(own, "memory", os.Getpid())
	if err != nil {
		return ""
	}
	dir, err := makeCgroup(base, s.Group, s.Name)
	if err != nil {
		return ""
	}
	if limitCgroup(dir, s.Memory, s.Sandbox.Processes) != nil {
		removeCgroup(dir)
		return ""
	}
	return dir
}

// cgroupOf finds the directory of a process's cgroup, given as /proc/PID.
func cgroupOf(proc string) (string, error) {
	mounts, err := os.ReadFile(proc + "/mountinfo")
	if err != nil {
		return "", err
	}
	membership, err := os.ReadFile(proc + "/cgroup")
	if err != nil {
		return "", err
	}
	return locate(string(mounts), string(membership))
}

// locate joins the mount point of cgroup v2 with the path of the process in it.
// The formats are those of proc(5) and cgroups(7).
func locate(mounts, membership string) (string, error) {
	path, found := "", false
	for line := range strings.Lines(membership) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			path, found = p, true
		}
	}
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		f := strings.Fields(before)
		if !ok || len(f) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		root, point := f[3], f[4]
		if rel, err := filepath.Rel(root, path); found && err == nil && filepath.IsLocal(rel) {
			return filepath.Join(point, rel), nil
		}
	}
	return "", errors.New("cgroup v2 is not mounted")
}

// usable reports where plugins' cgroups can be made: in dir, the cgroup of the
// process self, or beside it if the host has moved into a leaf already.
func usable(dir, controller string, self int) (base string, err error) {
	if filepath.Base(dir) == hostCgroup {
		dir = filepath.Dir(dir)
	}
	has, err := os.ReadFile(dir + "/cgroup.controllers")
	if err != nil {
		return "", fmt.Errorf("cgroup v2: %w", err)
	}
	if !hasWord(has, controller) {
		return "", fmt.Errorf("cgroup v2: %s has no %s controller", dir, controller)
	}
	for _, file := range []string{"", "/cgroup.procs", "/cgroup.subtree_control"} {
		if err := unix.Access(dir+file, unix.W_OK); err != nil {
			return "", fmt.Errorf("cgroup v2 is not writable: %s: %w", dir+file, err)
		}
	}
	// systemd marks what it gave away; the rest of its tree is its own, even
	// where root may write.
	if _, err := os.Stat("/run/systemd/system"); err == nil && !delegated(dir) {
		return "", fmt.Errorf("cgroup v2: %s is not delegated (Delegate=yes in the unit)", dir)
	}
	if given, err := os.ReadFile(dir + "/cgroup.subtree_control"); err != nil || hasWord(given, controller) {
		return dir, err
	}
	procs, err := os.ReadFile(dir + "/cgroup.procs")
	if err != nil {
		return "", fmt.Errorf("cgroup v2: %w", err)
	}
	for _, pid := range strings.Fields(string(procs)) {
		if pid != strconv.Itoa(self) {
			return "", fmt.Errorf("cgroup v2: %s is not the host's alone: process %s is in it", dir, pid)
		}
	}
	return dir, nil
}

func delegated(dir string) bool {
	var mark [8]byte
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, name, mark[:]); err == nil && string(mark[:n]) == "1" {
			return true
		}
	}
	return false
}

func hasWord(list []byte, word string) bool {
	for _, w := range bytes.Fields(list) {
		if string(w) == word {
			return true
		}
	}
	return false
}

// enter makes dir ready for plugins' cgroups: the process self moves into a leaf
// of its own, and controllers are given to the children. Doing so twice, or from
// several goroutines at once, is the same as once.
func enter(dir, controller string, self int) (base string, err error) {
	if base, err = usable(dir, controller, self); err != nil {
		return "", err
	}
	control := base + "/cgroup.subtree_control"
	if given, err := os.ReadFile(control); err == nil && hasWord(given, controller) {
		return base, nil
	}
	leaf := filepath.Join(base, hostCgroup)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // G301: a directory of the cgroup file system
		return "", fmt.Errorf("cgroup v2: %w", err)
	}
	if err := writeTo(leaf+"/cgroup.procs", strconv.Itoa(self)); err != nil {
		return "", err
	}
	if err := writeTo(control, "+"+controller); err != nil {
		// Back again; the leaf goes if nobody else is in it.
		return "", errors.Join(err, writeTo(base+"/cgroup.procs", strconv.Itoa(self)), os.Remove(leaf))
	}
	_ = writeTo(control, "+pids") // without it only the number of processes is not bounded
	return base, nil
}

// makeCgroup makes an empty cgroup whose name no other has or had: an old shim
// that still kills must not meet a new plugin.
func makeCgroup(base, group, name string) (string, error) {
	return os.MkdirTemp(base, cgroupPrefix+label(group)+"-"+label(name)+"-")
}

func limitCgroup(dir string, memory int64, processes int) error {
	if memory > 0 {
		if err := writeTo(dir+"/memory.max", strconv.FormatInt(memory, 10)); err != nil {
			return err
		}
		_ = writeTo(dir+"/memory.swap.max", "0")  // not there without swap
		_ = writeTo(dir+"/memory.oom.group", "1") // half a plugin is worse than none
	}
	if processes > 0 {
		_ = writeTo(dir+"/pids.max", strconv.Itoa(processes)) // not there without the controller
	}
	return nil
}

// killCgroup kills everything in it at once, which forking can't outrun. Before
// Linux 5.14 it does nothing.
func killCgroup(dir string) {
	if dir != "" {
		_ = writeTo(dir+"/cgroup.kill", "1")
	}
}

// removeCgroup removes an emptied cgroup, with those that the plugin made in
// it. What stays is left to Sweep.
func removeCgroup(dir string) {
	if dir == "" {
		return
	}
	entries, _ := os.ReadDir(dir) // an error: it is gone
	for _, e := range entries {
		if e.IsDir() {
			removeCgroup(filepath.Join(dir, e.Name()))
		}
	}
	for deadline := time.Now().Add(removeLimit); ; time.Sleep(time.Millisecond) {
		// Busy until the kernel has let go of the last process.
		if err := os.Remove(dir); !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return
		}
	}
}

// Sweep kills and removes what hosts of this group (Spec.Group) left behind when
// they and their shims were killed together. The caller must know that no other
// host of the group runs. Without cgroups there is nothing to be found.
func Sweep(group string) error {
	dir, err := cgroupOf("/proc/self")
	if err != nil {
		return nil // no cgroups, so none were made
	}
	if filepath.Base(dir) == hostCgroup {
		dir = filepath.Dir(dir)
	}
	return sweep(dir, group)
}

func sweep(base, group string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("cgroup v2: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), cgroupPrefix+label(group)+"-") {
			dir := filepath.Join(base, e.Name())
			killCgroup(dir)
			removeCgroup(dir)
		}
	}
	return nil
}

func writeTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0) // not created: these are the kernel's
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
