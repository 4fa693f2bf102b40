package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// maxLinks is how many symlinks a path may go through: Linux allows as many.
const maxLinks = 40

// CheckPrivate checks that no other user could have written the file or
// directory at path, nor put another one in its place: neither it nor any
// directory on the way, those behind symlinks included, is writable by others.
// A sticky directory such as /tmp will do on the way, if what is in it belongs
// to root or to us. With alone, not even that will do for the directory that
// holds path: a program finds its siblings there, and anybody may add one.
//
// The error names the path and how to mend it; one of a missing file wraps
// fs.ErrNotExist. Access lists and groups are not looked at. On Windows modes
// mean nothing, and nothing is checked.
func CheckPrivate(path string, alone bool) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find %s: %w", path, err)
	}
	if runtime.GOOS == "windows" {
		_, err := os.Stat(abs)
		return err
	}
	at, links := "/", 0 // at is reached through no symlink
	for rest := split(abs); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." { // of a symlink
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		entry, err := checkEntry(at, next, alone && len(rest) == 0)
		if err != nil {
			return err
		}
		if entry.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return fmt.Errorf("%s goes through more than %d symlinks", path, maxLinks)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(split(target), rest...)
	}
	return nil
}

// split returns the names of a path; it keeps "..", which a symlink may hold.
func split(path string) []string {
	var names []string
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}

// checkEntry checks an entry and the directory at that it is in.
func checkEntry(at, path string, alone bool) (entry fs.FileInfo, err error) {
	dir, err := os.Lstat(at)
	if err != nil {
		return nil, err
	}
	if entry, err = os.Lstat(path); err != nil {
		return nil, err
	}
	if WritableByOthers(dir) {
		switch sticky := dir.Mode()&fs.ModeSticky != 0; {
		case !sticky:
			return nil, writable(at, dir)
		case alone && !entry.IsDir():
			return nil, fmt.Errorf("%s is in a directory that others may write to (mode %s), expected one that is its own: move it, or chmod o-w %s", path, modeOf(dir), at)
		}
		if uid, ok := owner(entry); ok && uid != 0 && uid != os.Geteuid() {
			return nil, fmt.Errorf("%s belongs to user %d, who may replace it in %s (mode %s): move it to a directory that others may not write to", path, uid, at, modeOf(dir))
		}
	}
	if entry.Mode().IsRegular() && WritableByOthers(entry) {
		return nil, writable(path, entry)
	}
	if entry.IsDir() && WritableByOthers(entry) && (alone || entry.Mode()&fs.ModeSticky == 0) {
		return nil, writable(path, entry)
	}
	return entry, nil
}

// WritableByOthers reports whether every user may write to the file or
// directory.
func WritableByOthers(f fs.FileInfo) bool {
	return runtime.GOOS != "windows" && f.Mode()&fs.ModeSymlink == 0 && f.Mode().Perm()&0o002 != 0
}

func writable(path string, f fs.FileInfo) error {
	return fmt.Errorf("%s is writable by others (mode %s): chmod o-w %s", path, modeOf(f), path)
}

func modeOf(f fs.FileInfo) string { return fmt.Sprintf("%04o", f.Mode().Perm()) }
