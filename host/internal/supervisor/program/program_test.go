//go:build unix

package program

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
)

// elf is a small real program, that prints its arguments.
var elf = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "program")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	src := "package main\nimport \"os\"\nfunc main() { for _, a := range os.Args[1:] { os.Stdout.WriteString(a + \";\") } }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(src), 0o600); err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", "out", "main.go")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, "out"))
})

func binary(t *testing.T) []byte {
	t.Helper()
	b, err := elf()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, dir, name, content string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, mode)
	return path
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func stageDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "stage")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func run(t *testing.T, p Program) string {
	t.Helper()
	cmd := exec.Cmd{Path: p.Path, Args: p.Args, Dir: p.Dir, Env: os.Environ()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("run %v: %v: %s", p.Args, err, out)
	}
	return string(out)
}

// names are the files and directories below dir, with their modes.
func names(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		rel, _ := filepath.Rel(dir, path)
		all = append(all, fmt.Sprintf("%s %04o", rel, info.Mode().Perm()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, ", ")
}

// refused checks that neither Stage nor Verify takes the plugin, and that
// nothing is left of the attempt.
func refused(t *testing.T, p config.Plugin, want ...string) {
	t.Helper()
	dir := stageDir(t)
	prog, err := Stage(p, "/nowhere", dir, false)
	found, verr := Verify(p, "/nowhere", false)
	if err == nil || verr == nil || prog.Path != "" || found != "" {
		t.Fatalf("staged %+v, %v, verified %q, %v", prog, err, found, verr)
	}
	if err.Error() != verr.Error() {
		t.Errorf("Stage says %v, Verify %v", err, verr)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want %q", err, w)
		}
	}
	if left := names(t, dir); left != "" {
		t.Errorf("left: %s", left)
	}
}

func TestStageBinary(t *testing.T) {
	dir, content := t.TempDir(), binary(t)
	path := put(t, dir, "adapter", string(content), 0o755)
	put(t, dir, "other", "beside it", 0o644)
	p := config.Plugin{Command: []string{path, "a", "b"}, Dir: dir, SHA256: sumOf(content)}
	stage := stageDir(t)
	prog, err := Stage(p, "/nowhere", stage, true)
	if err != nil {
		t.Fatal(err)
	}
	if prog.Path != filepath.Join(stage, "adapter") || prog.Args[0] != prog.Path || prog.Dir != dir || prog.Sum != p.SHA256 || p.Command[0] != path {
		t.Errorf("got %+v", prog)
	}
	if got := names(t, stage); got != "adapter 0500" {
		t.Errorf("staged %s", got)
	}
	// What was hashed runs, whatever happens to the file now.
	put(t, dir, "adapter", "#!/bin/sh\necho swapped\n", 0o755)
	if got := run(t, prog); got != "a;b;" {
		t.Errorf("ran %q", got)
	}
	refused(t, p, "sha256: found "+sumOf([]byte("#!/bin/sh\necho swapped\n")), path, "expected "+p.SHA256)

	flipped := bytes.Clone(content)
	flipped[len(flipped)/2] ^= 1
	put(t, dir, "adapter", string(flipped), 0o755)
	refused(t, p, "sha256: found "+sumOf(flipped), "expected "+p.SHA256, "all of "+dir)

	put(t, dir, "adapter", string(content), 0o755)
	if found, err := Verify(p, "/nowhere", true); err != nil || found != fmt.Sprintf("%s (%d bytes), sha256 %s", path, len(content), p.SHA256) {
		t.Errorf("verify: %q, %v", found, err)
	}
}

func TestStageTree(t *testing.T) {
	dir := t.TempDir()
	script := put(t, dir, "adapter.py", "#!/usr/bin/env python3\nimport sys, lib.words, os\nprint(lib.words.words, sys.argv[1:], os.getcwd())\n", 0o755)
	put(t, dir, "lib/words.py", "words = 'right'\n", 0o644)
	put(t, dir, "empty", "", 0o644)
	put(t, dir, "large", strings.Repeat("0123456789abcde\n", chunk/16+1), 0o600)
	if err := os.Link(filepath.Join(dir, "large"), filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "lib/__pycache__/words.pyc", "stale", 0o644)
	put(t, dir, ".git/HEAD", "ref", 0o644)
	if err := os.Mkdir(filepath.Join(dir, "nothing in it"), 0o755); err != nil {
		t.Fatal(err)
	}
	sum, err := Hash(script)
	if err != nil || !sum.Tree || sum.Files != 5 {
		t.Fatalf("%+v, %v", sum, err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	for name, p := range map[string]config.Plugin{
		"by path":          {Command: []string{script, "x"}},
		"by interpreter":   {Command: []string{python, "-B", script, "x"}, Lookup: "python3"},
		"by relative name": {Command: []string{python, "adapter.py", "x"}, Lookup: "python3", Dir: dir},
	} {
		t.Run(name, func(t *testing.T) {
			p.SHA256 = sum.Hex
			if p.Dir == "" {
				p.Dir = work
			}
			stage := stageDir(t)
			prog, err := Stage(p, "/nowhere", stage, true)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := names(t, stage), "adapter.py 0500, empty 0400, large 0400, lib 0700, lib/words.py 0400, linked 0400"; got != want {
				t.Errorf("staged %s, want %s", got, want)
			}
			for _, file := range []string{"large", "empty"} {
				a, _ := os.ReadFile(filepath.Join(dir, file))
				b, err := os.ReadFile(filepath.Join(stage, file))
				if err != nil || !bytes.Equal(a, b) {
					t.Errorf("%s differs, %v", file, err)
				}
			}
			put(t, dir, "lib/words.py", "words = 'swapped'\n", 0o644)
			defer put(t, dir, "lib/words.py", "words = 'right'\n", 0o644)
			if got, want := run(t, prog), fmt.Sprintf("right ['x'] %s\n", p.Dir); got != want {
				t.Errorf("ran %q, want %q", got, want)
			}
			refused(t, p, "and ", "all of "+dir, "expected "+sum.Hex)
		})
	}
	p := config.Plugin{Command: []string{script}, Dir: dir, SHA256: sum.Hex}
	if found, err := Verify(p, "", true); err != nil || !strings.Contains(found, "with all of "+dir+" (5 files, ") {
		t.Errorf("verify: %q, %v", found, err)
	}
	for change, do := range map[string]func(){
		"added":      func() { put(t, dir, "added", "", 0o644) },
		"renamed":    func() { _ = os.Rename(filepath.Join(dir, "empty"), filepath.Join(dir, "empty2")) },
		"moved":      func() { _ = os.Rename(filepath.Join(dir, "empty"), filepath.Join(dir, "lib/empty")) },
		"executable": func() { chmod(t, filepath.Join(dir, "empty"), 0o755) },
		"changed":    func() { put(t, dir, "lib/words.py", "words = 'wrong'\n", 0o644) },
	} {
		t.Run(change, func(t *testing.T) {
			do()
			refused(t, p, "expected "+sum.Hex)
			_ = os.Remove(filepath.Join(dir, "added"))
			_ = os.Remove(filepath.Join(dir, "empty2"))
			_ = os.Remove(filepath.Join(dir, "lib/empty"))
			put(t, dir, "empty", "", 0o644)
			put(t, dir, "lib/words.py", "words = 'right'\n", 0o644)
			if again, err := Hash(dir); err != nil || again != sum {
				t.Errorf("%+v, %v", again, err)
			}
		})
	}
}

// The sum is the documented one, so that other tools can make it.
func TestTreeSum(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "b", "B", 0o644)
	put(t, dir, "a/x", "X", 0o755)
	put(t, dir, "a.txt", "A", 0o644)
	list := "pontoon tree 1\n"
	for _, f := range [][3]string{{"-", "A", "a.txt"}, {"x", "X", "a/x"}, {"-", "B", "b"}} {
		list += f[0] + " " + sumOf([]byte(f[1])) + " " + f[2] + "\x00"
	}
	got, err := Hash(dir)
	if want := (Sum{Hex: sumOf([]byte(list)), Tree: true, Of: dir, Files: 3, Bytes: 3}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	// A file that is this list does not pass for the tree.
	fake := put(t, t.TempDir(), "fake", list, 0o755)
	refused(t, config.Plugin{Command: []string{fake}, SHA256: got.Hex}, "begins as the list of a tree")
}

// A script that needs none of its siblings may be pinned alone.
func TestStageScriptAlone(t *testing.T) {
	dir := t.TempDir()
	content := "#!/bin/sh\necho $0 $1\n"
	path := put(t, dir, "adapter", content, 0o755)
	put(t, dir, "other", "", 0o644)
	stage := stageDir(t)
	prog, err := Stage(config.Plugin{Command: []string{path, "x"}, Dir: dir, SHA256: sumOf([]byte(content))}, "", stage, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(t, stage); got != "adapter 0500" {
		t.Errorf("staged %s", got)
	}
	if got := run(t, prog); got != filepath.Join(stage, "adapter")+" x\n" {
		t.Errorf("ran %q", got)
	}
}

func TestStageUnpinned(t *testing.T) {
	dir := t.TempDir()
	path := put(t, dir, "adapter", "#!/bin/sh\necho $0 in $PWD\n", 0o755)
	p := config.Plugin{Command: []string{path, "x"}, Dir: dir}
	stage := stageDir(t)
	prog, err := Stage(p, "/nowhere", stage, false)
	if err != nil || prog.Path != path || prog.Sum != "" || len(prog.Args) != 2 || names(t, stage) != "" {
		t.Fatalf("%+v, %v, staged %s", prog, err, names(t, stage))
	}
	if got := run(t, prog); got != fmt.Sprintf("%s in %s\n", path, dir) {
		t.Errorf("ran %q", got)
	}
	if found, err := Verify(p, "", false); err != nil || !strings.Contains(found, "not pinned; its sum is "+sumOf([]byte("#!/bin/sh\necho $0 in $PWD\n"))) {
		t.Errorf("%q, %v", found, err)
	}
	const required = "sha256: absent, required by --require-checksums (pontoon plugin hash prints it)"
	if _, err := Stage(p, "", stage, true); err == nil || err.Error() != required {
		t.Errorf("required: %v", err)
	}
	if _, err := Verify(p, "", true); err == nil || err.Error() != required {
		t.Errorf("required: %v", err)
	}
	// An interpreter is a symlink as often as not.
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	p.Command = []string{link}
	if _, err := Stage(p, "", stage, false); err != nil {
		t.Error(err)
	}
	if found, err := Verify(p, "", false); err != nil || !strings.Contains(found, "not pinned; it can't be: ") || !strings.Contains(found, "symlink") {
		t.Errorf("%q, %v", found, err)
	}
}

// The host's own binary needs no sum, and may have one.
func TestStageOwnBinary(t *testing.T) {
	dir, content := t.TempDir(), binary(t)
	self := put(t, dir, "host", string(content), 0o755)
	p := config.Plugin{Command: []string{"pontoon", "adapter", "run"}, Dir: dir}
	prog, err := Stage(p, self, stageDir(t), true)
	if err != nil || prog.Path != self || prog.Args[0] != "pontoon" || prog.Sum != "" {
		t.Fatalf("%+v, %v", prog, err)
	}
	if got := run(t, prog); got != "adapter;run;" {
		t.Errorf("ran %q", got)
	}
	p.SHA256 = sumOf(content)
	stage := stageDir(t)
	if prog, err = Stage(p, self, stage, true); err != nil || prog.Path != filepath.Join(stage, "host") {
		t.Fatalf("%+v, %v", prog, err)
	}
	if got := run(t, prog); got != "adapter;run;" {
		t.Errorf("ran %q", got)
	}
	p.SHA256 = sumOf(nil)
	if _, err := Stage(p, self, stageDir(t), true); err == nil || !strings.Contains(err.Error(), "expected "+p.SHA256) {
		t.Errorf("wrong sum: %v", err)
	}
}

// Staging and running over and over, in parallel, with other processes being
// started meanwhile: no program is ever "busy".
func TestStageNeverBusy(t *testing.T) {
	dir, content := t.TempDir(), binary(t)
	p := config.Plugin{Command: []string{put(t, dir, "adapter", string(content), 0o755)}, Dir: dir, SHA256: sumOf(content)}
	stages := t.TempDir()
	work := make(chan int)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range work {
				stage := filepath.Join(stages, fmt.Sprint(i))
				err := os.Mkdir(stage, 0o700)
				var prog Program
				if err == nil {
					prog, err = Stage(p, "", stage, true)
				}
				if err == nil {
					err = (&exec.Cmd{Path: prog.Path, Args: prog.Args}).Run()
				}
				if err != nil {
					t.Error(err)
				}
				_ = os.RemoveAll(stage)
			}
		})
	}
	for i := range 200 {
		work <- i
	}
	close(work)
	wg.Wait()
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
