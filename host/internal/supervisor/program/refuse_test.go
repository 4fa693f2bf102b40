//go:build unix

package program

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
)

const wrongSum = "0000000000000000000000000000000000000000000000000000000000000000"

// What can't be the program file, pinned or not.
func TestRefusedPrograms(t *testing.T) {
	dir := t.TempDir()
	fine := put(t, dir, "fine", "x", 0o755)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(fine, link); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	mkfifo(t, pipe)
	chmod(t, pipe, 0o700)
	inOpen, inSticky := put(t, dir, "open/program", "x", 0o755), put(t, dir, "sticky/program", "x", 0o755)
	chmod(t, filepath.Dir(inOpen), 0o777)
	chmod(t, filepath.Dir(inSticky), 0o777|fs.ModeSticky)
	for name, c := range map[string]struct {
		path, pinned, unpinned string
	}{
		"symlink":            {link, "link: found a symlink, expected a regular file", ""},
		"missing":            {dir + "/none", "none: no such file", "none: no such file"},
		"directory":          {dir, "found a directory, expected a program", "found a directory, expected a program"},
		"pipe":               {pipe, "found a named pipe", "found a named pipe"},
		"writable file":      {put(t, dir, "writable", "x", 0o757), "writable is writable by others (mode 0757): chmod o-w ", "writable by others"},
		"writable directory": {inOpen, "open is writable by others (mode 0777): chmod o-w ", "writable by others"},
		"sticky directory":   {inSticky, "sticky/program is in a directory that others may write to", "that others may write to"},
		"not executable":     {put(t, dir, "plain", "x", 0o644), "plain is not executable (mode 0644): chmod +x it", "not executable"},
		"relative":           {"fine", "found \"fine\", expected an absolute path", "expected an absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			p := config.Plugin{Command: []string{c.path}, Dir: dir, SHA256: sumOf([]byte("x"))}
			refused(t, p, c.pinned)
			p.SHA256 = ""
			if c.unpinned != "" {
				refused(t, p, c.unpinned)
			}
		})
	}
	refused(t, config.Plugin{}, "command: found none")
}

// Of an interpreter's command the script is the program.
func TestRefusedScripts(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	sh := put(t, bin, "sh", "interpreter", 0o755)
	put(t, dir, "a.sh", "echo", 0o644)
	put(t, dir, "b.sh", "echo", 0o644)
	if err := os.Symlink("a.sh", filepath.Join(dir, "link.sh")); err != nil {
		t.Fatal(err)
	}
	p := config.Plugin{Lookup: "sh", Dir: dir, SHA256: sumOf([]byte("echo"))}
	p.Command = []string{sh, "a.sh", "b.sh"}
	refused(t, p, dir+"/a.sh and "+dir+"/b.sh, and only one could be checked")
	p.Command = []string{sh, "link.sh"}
	refused(t, p, "link.sh: found a symlink")
	p.Command = []string{sh, "-c", "echo"} // no file: the interpreter is the program
	refused(t, p, "found "+sumOf([]byte("interpreter"))+" ("+sh+")")
	chmod(t, dir+"/a.sh", 0o666)
	p.Command = []string{sh, "a.sh"}
	refused(t, p, "a.sh is writable by others")
	p.SHA256 = ""
	refused(t, p, "a.sh is writable by others")
	chmod(t, sh, 0o757)
	chmod(t, dir+"/a.sh", 0o644)
	refused(t, p, "sh is writable by others")
}

// What can't be in a tree.
func TestRefusedTrees(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want string
	}{
		"symlink": {func(t *testing.T, dir string) {
			if err := os.Symlink("main", filepath.Join(dir, "sub/link")); err != nil {
				t.Fatal(err)
			}
		}, "sub/link: found a symlink, expected a regular file: only such can be pinned"},
		"symlink to a directory": {func(t *testing.T, dir string) {
			if err := os.Symlink("/etc", filepath.Join(dir, "etc")); err != nil {
				t.Fatal(err)
			}
		}, "etc: found a symlink"},
		"pipe": {func(t *testing.T, dir string) { mkfifo(t, filepath.Join(dir, "sub/pipe")) }, "sub/pipe: found a named pipe"},
		"socket": {func(t *testing.T, dir string) {
			l, err := net.Listen("unix", filepath.Join(dir, "s"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			chmod(t, filepath.Join(dir, "s"), 0o700)
		}, "s: found a socket"},
		"writable file":      {func(t *testing.T, dir string) { put(t, dir, "sub/open", "", 0o666) }, "sub/open is writable by others (mode 0666): chmod o-w "},
		"writable directory": {func(t *testing.T, dir string) { chmod(t, filepath.Join(dir, "sub"), 0o777) }, "sub is writable by others (mode 0777)"},
		"sticky directory":   {func(t *testing.T, dir string) { chmod(t, filepath.Join(dir, "sub"), 0o777|fs.ModeSticky) }, "sub is writable by others"},
		"too many": {func(t *testing.T, dir string) {
			for i := range maxFiles {
				if f, err := os.Create(filepath.Join(dir, "sub", fmt.Sprint(i))); err != nil || f.Close() != nil {
					t.Fatal(err)
				}
			}
		}, "found more than 10000 files and directories"},
		"too large": {func(t *testing.T, dir string) {
			for _, name := range []string{"a", "b"} { // sparse: no disk is used until it is staged
				path := put(t, dir, name, "", 0o644)
				if err := os.Truncate(path, maxBytes/2+1); err != nil {
					t.Fatal(err)
				}
			}
		}, "found more than 512 MiB"},
		"too deep": {func(t *testing.T, dir string) { put(t, dir, strings.Repeat("d/", maxDepth)+"f", "", 0o644) }, "found more than 32 directories one in the other"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d") // short: sockets are there
			main := put(t, dir, "main", "#!/bin/sh\n", 0o755)
			put(t, dir, "sub/other", "x", 0o644)
			c.make(t, dir)
			refused(t, config.Plugin{Command: []string{main}, Dir: dir, SHA256: wrongSum},
				"sha256: found "+sumOf([]byte("#!/bin/sh\n")), "expected "+wrongSum, c.want)
			for _, path := range []string{main, dir} {
				if sum, err := Hash(path); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("hash %s: %+v, %v", path, sum, err)
				}
			}
		})
	}
}

func TestHash(t *testing.T) {
	content := binary(t)
	dir := t.TempDir()
	path := func(name, content string) string { return put(t, dir, name, content, 0o755) }
	elf, windows, mac := path("p1/elf", string(content)), path("p2/pe", "MZ text"), path("p3/mach", "\xcf\xfa\xed\xfe text")
	odd, cut := path("p4/odd", "text\x00"), path("p5/cut", strings.Repeat("x", 511)+"é")
	script, text := path("p6/script", "#!/bin/sh\n\xff\x00"), path("p7/text", "print()")
	lonely := path("p8/lonely", "#!/bin/sh\n")
	for _, p := range []string{"p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8/__pycache__", "p8/.git"} {
		put(t, dir, p+"/beside", "", 0o644)
	}
	for file, tree := range map[string]bool{
		elf: false, windows: false, mac: false, odd: false, lonely: false,
		script: true, text: true, cut: true, filepath.Dir(elf): true,
	} {
		sum, err := Hash(file)
		if err != nil || sum.Tree != tree {
			t.Errorf("%s: %+v, %v", file, sum, err)
		}
		if b, err := os.ReadFile(file); err == nil && !tree && (sum.Hex != sumOf(b) || sum.Files != 1 || sum.Bytes != int64(len(b))) {
			t.Errorf("%s: %+v", file, sum)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(elf, link); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "host/plugins.yaml", "", 0o644)
	open := path("open/program", "x")
	chmod(t, filepath.Dir(open), 0o777)
	for file, want := range map[string]string{
		link:                           "found a symlink",
		dir + "/none":                  "no such file",
		path("host/script", "#!/bin/"): "holds plugins.yaml, and would change with the sum that is written there; a script is pinned with its directory: give it one of its own",
		dir + "/host":                  "holds plugins.yaml",
		open:                           "writable by others",
		filepath.Dir(open):             "writable by others",
	} {
		if sum, err := Hash(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", file, sum, err, want)
		}
	}
	if sum, err := Hash(path("host/binary", "MZ")); err != nil || sum.Tree {
		t.Errorf("binary beside plugins.yaml: %+v, %v", sum, err)
	}
}

// A file that is swapped while others are read is taken as a whole or not at
// all: what is staged always has the sum.
func TestStageWhileSwapped(t *testing.T) {
	dir := t.TempDir()
	one, two := strings.Repeat("1", 3*chunk), strings.Repeat("2", 3*chunk)
	path := put(t, dir, "adapter", one, 0o755)
	p := config.Plugin{Command: []string{path}, Dir: dir, SHA256: sumOf([]byte(one))}
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		next := filepath.Join(dir, "next")
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			var err error
			switch i % 4 {
			case 0:
				err = os.WriteFile(next, []byte(two), 0o755)
			case 1:
				err = os.Symlink("/etc/passwd", next)
			case 2:
				err = os.WriteFile(path, []byte(two[:chunk]), 0o755) // in place
			case 3:
				err = os.WriteFile(next, []byte(one), 0o755)
			}
			if err == nil && i%4 != 2 {
				err = os.Rename(next, path)
			}
			if err != nil && !os.IsExist(err) && !os.IsNotExist(err) {
				t.Error(err)
			}
			if i%4 == 1 {
				_ = os.Remove(path)
			}
		}
	}()
	taken := 0
	for range 100 {
		stage := stageDir(t)
		prog, err := Stage(p, "", stage, true)
		if err != nil {
			if left := names(t, stage); left != "" {
				t.Errorf("after %v left: %s", err, left)
			}
			continue
		}
		taken++
		if b, err := os.ReadFile(prog.Path); err != nil || sumOf(b) != p.SHA256 {
			t.Errorf("staged %d bytes that were not hashed, %v", len(b), err)
		}
	}
	close(done)
	<-stopped
	t.Logf("%d of 100 staged", taken)
}
