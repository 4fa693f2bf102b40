// Package program finds what a plugin's command runs, checks that nobody else
// could have written it, hashes it, and copies it to where it is run from, so
// that the very bytes that were hashed are the ones that run.
package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
)

// Program is what is to be run, after Stage.
type Program struct {
	Path string   // absolute
	Args []string // argv, Args[0] included
	Dir  string   // working directory
	Sum  string   // what was hashed: 64 hex digits; "" if not pinned
}

// Stage checks the plugin's program and, if it is pinned, copies the bytes that
// it hashed into the fresh directory dir (0700), from where they are to be run.
// self is the path of the running host, which the command name "pontoon" means;
// it needs no sum, since it is what checks the others'. After an error dir is
// empty.
func Stage(p config.Plugin, self, dir string, requireSum bool) (Program, error) {
	t, err := find(p, self)
	if err != nil {
		return Program{}, err
	}
	if err := t.check(p.SHA256 != "", requireSum); err != nil {
		return Program{}, err
	}
	prog := Program{Path: t.program, Args: slices.Clone(p.Command), Dir: p.Dir}
	if p.SHA256 == "" {
		return prog, nil
	}
	into, err := os.OpenRoot(dir)
	if err != nil {
		return Program{}, fmt.Errorf("stage: %w", err)
	}
	defer func() { _ = into.Close() }()
	name, sum, err := pinned(t.file, p, into)
	if err != nil {
		return Program{}, errors.Join(err, empty(into))
	}
	prog.Sum = sum.Hex
	prog.Args[t.word] = filepath.Join(dir, name)
	if t.word == 0 {
		prog.Path = prog.Args[0]
	}
	return prog, nil
}

// Verify is Stage without a copy: nil if the program may run. found says what
// was found, for people.
func Verify(p config.Plugin, self string, requireSum bool) (found string, err error) {
	t, err := find(p, self)
	if err != nil {
		return "", err
	}
	if err := t.check(p.SHA256 != "", requireSum); err != nil {
		return "", err
	}
	if p.SHA256 == "" {
		sum, err := Hash(t.file)
		if err != nil {
			return fmt.Sprintf("%s, not pinned; it can't be: %v", t.file, err), nil
		}
		return fmt.Sprintf("%s, not pinned; its sum is %s", t.file, sum.Hex), nil
	}
	_, sum, err := pinned(t.file, p, nil)
	if err != nil {
		return "", err
	}
	if sum.Tree {
		return fmt.Sprintf("%s with all of %s (%d files, %d bytes), sha256 %s", t.file, sum.Of, sum.Files, sum.Bytes, sum.Hex), nil
	}
	return fmt.Sprintf("%s (%d bytes), sha256 %s", t.file, sum.Bytes, sum.Hex), nil
}

// pinned finds what of the program has the plugin's sum: its file, else the
// tree that it is in; copied into into unless that is nil, and there by name.
func pinned(file string, p config.Plugin, into *os.Root) (name string, sum Sum, err error) {
	name = filepath.Base(file)
	own, err := sumFile(file, into)
	if err != nil || own.Hex == p.SHA256 {
		return name, own, err
	}
	if into != nil {
		if err := empty(into); err != nil {
			return "", Sum{}, err
		}
	}
	tree, err := sumTree(filepath.Dir(file), into)
	if err != nil {
		return "", Sum{}, fmt.Errorf("sha256: found %s (%s), expected %s; and its directory can't be the one that is meant: %w", own.Hex, file, p.SHA256, err)
	}
	if tree.Hex == p.SHA256 {
		return name, tree, nil
	}
	return "", Sum{}, fmt.Errorf("sha256: found %s (%s) and %s (all of %s), expected %s", own.Hex, file, tree.Hex, filepath.Dir(file), p.SHA256)
}

// empty removes all that is in dir.
func empty(dir *os.Root) error {
	entries, err := fs.ReadDir(dir.FS(), ".")
	for _, e := range entries {
		err = errors.Join(err, dir.RemoveAll(e.Name()))
	}
	if err != nil {
		return fmt.Errorf("empty %s: %w", dir.Name(), err)
	}
	return nil
}

// target is what a command means.
type target struct {
	program string // what is executed, absolute
	file    string // the program file, which a sum is of: the same, or an interpreter's script
	word    int    // of the command that names file
	own     bool   // it is the host itself
	second  string // another file that an interpreter's command names; "" = none
}

// find tells the program file of a command: its first word; but the script, if
// that is the bare name of an interpreter. What a bare name stands for is the
// machine's affair, not the plugin's.
func find(p config.Plugin, self string) (target, error) {
	if len(p.Command) == 0 {
		return target{}, errors.New("command: found none")
	}
	if p.Command[0] == config.OwnBinary {
		return target{program: self, file: self, own: true}, nil
	}
	t := target{program: p.Command[0], file: p.Command[0]}
	if !filepath.IsAbs(t.program) {
		return t, fmt.Errorf("command: found %q, expected an absolute path", t.program)
	}
	if p.Lookup == "" {
		return t, nil
	}
	for i, word := range p.Command[1:] {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.Dir, word)
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if t.word > 0 {
			t.second = path
			break
		}
		t.file, t.word = path, i+1
	}
	return t, nil
}

// check refuses what must not run, pinned or not.
func (t target) check(pin, required bool) error {
	if required && !pin && !t.own {
		return errors.New("sha256: absent, required by --require-checksums (pontoon plugin hash prints it)")
	}
	for _, path := range slices.Compact([]string{t.program, t.file}) {
		if err := config.CheckPrivate(path, true); err != nil {
			return err
		}
	}
	info, err := os.Stat(t.program)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: found %s, expected a program", t.program, kindOf(info.Mode()))
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable (mode %04o): chmod +x it", t.program, info.Mode().Perm())
	}
	if pin && t.second != "" {
		return fmt.Errorf("sha256: the command names two files, %s and %s, and only one could be checked: name the other in config", t.file, t.second)
	}
	return nil
}

// HashOf is Hash of file, the program file of a plugin's command.
func HashOf(p config.Plugin, self string) (file string, sum Sum, err error) {
	t, err := find(p, self)
	if err != nil {
		return "", Sum{}, err
	}
	sum, err = Hash(t.file)
	return t.file, sum, err
}
