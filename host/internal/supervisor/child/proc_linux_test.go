package child

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	tail := " S 2 3 4 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0"
	want := stat{name: "a", state: 'S', parent: 2, group: 3, session: 4, start: 500}
	for _, name := range []string{"a", "a b", ") R 1 1 (", ""} {
		want.name = name
		if got, ok := parseStat([]byte("1 (" + name + ")" + tail)); !ok || got != want {
			t.Errorf("%q: got %+v, %v", name, got, ok)
		}
	}
	for _, bad := range []string{"", "1", "1 )a(" + tail, "1 (a)", "1 (a) S 2 3", "1 (a) SS" + tail[2:], "1 (a)" + strings.Replace(tail, "3", "x", 1)} {
		if got, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q: got %+v", bad, got)
		}
	}
	self, ok := readStat(os.Getpid())
	if !ok || self.parent != os.Getppid() || self.dead() || self.start == 0 {
		t.Errorf("self %+v", self)
	}
	if !slices.Contains(childrenByParent(os.Getppid()), os.Getpid()) || !slices.Contains(childrenOf(os.Getppid()), os.Getpid()) {
		t.Error("the test is no child of its parent")
	}
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("1 (a) S 2 3 4 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0"))
	f.Add([]byte("1 ((a) b)) Z 2 3 4"))
	f.Add([]byte("()\x00 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := parseStat(b); ok && s.state == 0 {
			t.Errorf("%q: %+v", b, s)
		}
	})
}

func FuzzLocate(f *testing.F) {
	f.Add("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/a\n")
	f.Add("9 8 0:26 /x /y ro - cgroup2 c rw", "1:a:/\n0::/../z")
	f.Fuzz(func(t *testing.T, mounts, membership string) {
		if dir, err := locate(mounts, membership); err == nil && dir == "" {
			t.Errorf("%q %q: neither directory nor error", mounts, membership)
		}
	})
}
