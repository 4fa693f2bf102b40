package child

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

func TestLocate(t *testing.T) {
	const unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	const hybrid = "29 28 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n31 28 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	for name, test := range map[string]struct{ mounts, membership, want string }{
		"unified":         {unified, "0::/system.slice/pontoon.service\n", "/sys/fs/cgroup/system.slice/pontoon.service"},
		"hybrid":          {hybrid, "4:memory:/x\n0::/user.slice\n", "/sys/fs/cgroup/unified/user.slice"},
		"container":       {"9 8 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/docker/ab\n", "/sys/fs/cgroup"},
		"errOnlyVersion1": {"29 28 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/x\n", ""},
		"errNotMounted":   {"", "0::/\n", ""},
		"errOutside":      {"9 8 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/../cd\n", ""},
		"errNoMember":     {unified, "4:memory:/x\n", ""},
		"errShort":        {"1 2 - cgroup2 x\n", "0::/\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := locate(test.mounts, test.membership)
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// The rules about who may use a cgroup, on files that say what the kernel would.
func TestUsable(t *testing.T) {
	for name, test := range map[string]struct {
		controllers, given, procs string
		want                      string // of the error; "" = usable
	}{
		"ok alone":        {"cpu memory pids\n", "", "77\n", ""},
		"ok given":        {"memory\n", "memory\n", "77\n88\n", ""},
		"ok empty":        {"memory\n", "", "", ""},
		"errNoController": {"cpu memory2\n", "", "77\n", "has no memory controller"},
		"errOthers":       {"memory\n", "", "77\n88\n", "process 88 is in it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"controllers": test.controllers, "subtree_control": test.given, "procs": test.procs} {
				if err := os.WriteFile(filepath.Join(dir, "cgroup."+file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			base, err := usable(dir, "memory", 77)
			if _, systemd := os.Stat("/run/systemd/system"); systemd == nil && test.controllers != "cpu memory2\n" {
				test.want = "is not delegated"
			}
			if test.want == "" && (err != nil || base != dir) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %q, %v", base, err)
			}
			if beside, _ := usable(filepath.Join(dir, hostCgroup), "memory", 77); beside != base {
				t.Errorf("from the host's leaf: %q, want %q", beside, base)
			}
		})
	}
	if _, err := usable(filepath.Join(t.TempDir(), "none"), "memory", 1); err == nil {
		t.Error("a directory that is not there is usable")
	}
}

// A plugin with a limit is in a cgroup of its own where there are cgroups, and
// that is gone with it; where there are none, the reason is said.
func TestCgroupOfPlugin(t *testing.T) {
	s := shell(newMark(t), "echo ready; exec sleep 600")
	s.Memory, s.Group = 64<<20, "test"
	c := begin(t, s)
	ready(t, c)
	membership, err := os.ReadFile("/proc/" + strconv.Itoa(c.Pid) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	by, why := Limiter()
	inOwn := strings.Contains(string(membership), "/pontoon-test-TestCgroupOfPlugin")
	if inOwn != (by == "cgroup") || c.Held.LimitBy != by || (why == "") != (by == "cgroup") {
		t.Errorf("limited by %s, announced %s (%s), member of %s", c.Held.LimitBy, by, why, membership)
	}
	t.Logf("%s (%s)", by, why)
	dir := c.proc.(*shimmed).cgroup
	c.Kill()
	end(t, c)
	if _, err := os.Stat(dir); dir != "" && err == nil {
		t.Errorf("%s is still there", dir)
	}
}

// Cgroups made below whatever writable cgroup there is; without the memory
// controller they only serve to kill.
func TestCgroupKillAndSweep(t *testing.T) {
	own, err := cgroupOf("/proc/self")
	if err != nil {
		t.Logf("no cgroup v2 here: %v", err)
		if got := newCgroup(Spec{}); got != "" {
			t.Errorf("made %s", got)
		}
		return
	}
	if filepath.Base(own) == hostCgroup {
		own = filepath.Dir(own)
	}
	group := "sweep" + strconv.Itoa(os.Getpid()) // other tests may run on this machine
	mine, err := makeCgroup(own, group, "it")
	if err != nil {
		t.Logf("not writable here: %v", err)
		if got := newCgroup(Spec{}); got != "" {
			t.Errorf("made %s", got)
		}
		return
	}
	other, err := makeCgroup(own, "other", "it")
	if err != nil {
		t.Fatal(err)
	}
	defer removeCgroup(other)
	inner := filepath.Join(mine, "inner") // as a plugin may make
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	var sleepers []*exec.Cmd
	for _, dir := range []string{mine, inner, other} {
		c := exec.Command("sleep", "600")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if err := writeTo(dir+"/cgroup.procs", strconv.Itoa(c.Process.Pid)); err != nil {
			t.Fatal(err)
		}
		sleepers = append(sleepers, c)
	}
	if err := sweep(own, group); err != nil {
		t.Error(err)
	}
	for _, c := range sleepers[:2] {
		if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("a process in the swept cgroup: %v", err)
		}
	}
	await.Until(t, mine+" is gone", func() bool {
		_ = sweep(own, group)
		_, err := os.Stat(mine)
		return err != nil
	})
	if err := sleepers[2].Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a process of another group: %v", err)
	}
	killCgroup(other)
	_ = sleepers[2].Wait() // killed
}
