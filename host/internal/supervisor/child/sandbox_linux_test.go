package child

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a kernel's Landlock leaves open is said, and a sandbox that is demanded is had.
func TestSandboxStrength(t *testing.T) {
	tight := Sandbox{On: true, Require: true, User: &User{UID: 1}}
	for _, c := range []struct {
		abi  int
		want Strength
		open []string // some of it
	}{
		{0, None, []string{"files and devices that its user may open", "TCP ports that are not named", "abstract unix sockets"}},
		{1, Partial, []string{"truncating files", "TCP ports that are not named", "commands to devices", "signals to processes of its user"}},
		{4, Partial, []string{"commands to devices", "signals to processes of its user", "abstract unix sockets"}},
		{6, Full, []string{"unix sockets that its user may open by path"}},
		{9, Full, nil},
	} {
		open := tight.open(c.abi)
		for _, what := range c.open {
			if !slices.Contains(open, what) {
				t.Errorf("Landlock %d: open are %q, expected %q", c.abi, open, what)
			}
		}
		if c.open == nil && len(open) > 0 && filters {
			t.Errorf("Landlock %d: open are %q, expected nothing", c.abi, open)
		}
		if got := tight.strength(c.abi); got != c.want {
			t.Errorf("Landlock %d is %s, expected %s", c.abi, got, c.want)
		}
		if err := tight.check(c.abi); (err == nil) != (c.want == Full) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("version %d in this kernel, expected 6", c.abi)) {
			t.Errorf("Landlock %d: %v", c.abi, err)
		}
	}
	if off := (Sandbox{AnyPort: true}); off.strength(9) != Off || len(off.open(9)) != len(off.open(0)) || off.check(0) != nil {
		t.Errorf("without a sandbox: %s, open are %q", off.strength(9), off.open(9))
	}
}

// A program reads what its sandbox names, and of the rest what the kernel can't refuse.
func TestSandbox(t *testing.T) {
	dir := t.TempDir()
	named, secret := filepath.Join(dir, "named"), filepath.Join(dir, "secret")
	for _, d := range []string{named, secret} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "file"), []byte(filepath.Base(d)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := shell(newMark(t), `cat "$0/named/file"; cat "$0/secret/file"; echo x >"$0/named/new" && echo wrote; grep -E 'CapEff|CapBnd' /proc/self/status; ulimit -p; exit 3`)
	s.Args = append(s.Args, dir)
	s.Sandbox = Sandbox{On: true, AnyPort: true, Processes: 100, Read: []string{"/usr", "/bin", "/lib", "/lib64", "/proc", named, "/not/there"}, Write: []string{"/dev/null"}}
	c := begin(t, s)
	out, errs := output(t, c)
	if e := end(t, c); e != (Exit{Code: 3}) {
		t.Fatalf("exit %+v, stderr %s", e, errs)
	}
	abi := landlockABI()
	if c.Held.Landlock != abi || c.Held.Sandbox != s.Sandbox.strength(abi) {
		t.Errorf("held by %+v, expected Landlock %d", c.Held, abi)
	}
	for text, want := range map[string]bool{
		"named\n": true, "secret\n": abi == 0, "wrote\n": abi == 0, "CapEff:\t0000000000000000\n": true,
	} {
		if strings.Contains(out, text) != want {
			t.Errorf("with Landlock %d: output %q, stderr %q, expected %q to be there: %v", abi, out, errs, text, want)
		}
	}
	s.Sandbox.Write = append(s.Sandbox.Write, filepath.Join(dir, "gone"))
	c, err := Start(s)
	switch {
	case err == nil:
		<-c.Done()
		if abi > 0 {
			t.Error("started, though what it is to write to is not there")
		}
	case abi == 0 || !strings.Contains(err.Error(), "sandbox: write: stat "+dir+"/gone: no such file or directory"):
		t.Errorf("with Landlock %d: %v", abi, err)
	}
	nothingLeft(t, s.Name)
}

// A program runs as another user, if the host may make it one.
func TestUser(t *testing.T) {
	s := shell(newMark(t), "id -u; id -g; id -G; ulimit -p")
	s.Sandbox = Sandbox{User: &User{Name: "somebody", UID: 65533, GID: 65533}, Processes: 100}
	c, err := Start(s)
	if os.Getuid() != 0 {
		if err == nil || !strings.Contains(err.Error(), "user: become somebody: the host must run as root for that") {
			t.Errorf("got %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	out, errs := output(t, c)
	if e := end(t, c); e != (Exit{}) || out != "65533\n65533\n65533\n100\n" {
		t.Errorf("exit %+v, output %q, stderr %q", e, out, errs)
	}
	nothingLeft(t, s.Name)
}
