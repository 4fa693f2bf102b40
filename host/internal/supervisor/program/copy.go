package program

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
)

// Limits of what is staged at each start: over those of any adapter, and a
// second or two of work.
const (
	maxFiles = 10_000
	maxBytes = 512 << 20
	maxDepth = 32
)

// chunk is how much is written at once.
const chunk = 1 << 20

// left reports whether a directory is left out of a tree: what it holds differs
// from one look to the next, and no program needs it.
func left(name string) bool { return name == "__pycache__" || name == ".git" }

// copier reads files of a directory, each once, and hashes what it reads and
// writes.
type copier struct {
	from  *os.Root
	into  *os.Root // nil = only hash
	bytes int64
}

// list returns the paths of all files, sorted; it refuses what can't be staged
// before anything is.
func (c *copier) list() ([]string, error) {
	var paths []string
	entries, size := 0, int64(0)
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		d, err := c.from.Open(dir)
		if err != nil {
			return err
		}
		found, err := d.ReadDir(maxFiles - entries + 1)
		_ = d.Close()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if entries += len(found); entries > maxFiles {
			return fmt.Errorf("%s: found more than %d files and directories, which is all that can be pinned", c.from.Name(), maxFiles)
		}
		for _, e := range found {
			path := filepath.Join(dir, e.Name())
			info, err := e.Info()
			if err != nil {
				return err
			}
			switch {
			case e.IsDir() && left(e.Name()):
			case config.WritableByOthers(info):
				return c.writable(path, info)
			case e.IsDir() && depth == maxDepth:
				return fmt.Errorf("%s: found more than %d directories one in the other, which is all that can be pinned", c.name(path), maxDepth)
			case e.IsDir():
				if err := walk(path, depth+1); err != nil {
					return err
				}
			case e.Type().IsRegular():
				if size += info.Size(); size > maxBytes {
					return c.tooLarge()
				}
				paths = append(paths, path)
			default:
				return refuseKind(c.name(path), e.Type())
			}
		}
		return nil
	}
	if err := walk(".", 1); err != nil {
		return nil, err
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(filepath.ToSlash(a), filepath.ToSlash(b)) })
	return paths, nil
}

func (c *copier) name(path string) string { return filepath.Join(c.from.Name(), path) }

func (c *copier) writable(path string, info fs.FileInfo) error {
	name := c.name(path)
	return fmt.Errorf("%s is writable by others (mode %04o): chmod o-w %s", name, info.Mode().Perm(), name)
}

func (c *copier) tooLarge() error {
	return fmt.Errorf("%s: found more than %d MiB, which is all that can be pinned", c.from.Name(), maxBytes>>20)
}

func refuseKind(path string, m fs.FileMode) error {
	return fmt.Errorf("%s: found %s, expected a regular file: only such can be pinned", path, kindOf(m))
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symlink"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something special"
}

// file hashes one file, and copies it to the same path. What is looked at, what
// is hashed and what is written are one: the open file.
func (c *copier) file(path string) (sum []byte, executable bool, err error) {
	src, info, err := c.open(path)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = src.Close() }()
	executable = info.Mode().Perm()&0o111 != 0
	if c.into != nil {
		if err := c.into.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, false, fmt.Errorf("stage: %w", err)
		}
	}
	h := sha256.New()
	// Any file has a first chunk, even if it is empty.
	for first, buf := true, make([]byte, min(info.Size()+1, chunk)); ; first = false {
		n, err := io.ReadFull(src, buf)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return nil, false, err
		}
		if c.bytes += int64(n); c.bytes > maxBytes {
			return nil, false, c.tooLarge()
		}
		if first && bytes.HasPrefix(buf[:n], []byte(treeDomain)) {
			return nil, false, fmt.Errorf("%s: begins as the list of a tree, which no program does", c.name(path))
		}
		_, _ = h.Write(buf[:n]) // a hash never fails
		if c.into != nil && (first || n > 0) {
			if err := c.write(path, buf[:n], first); err != nil {
				return nil, false, fmt.Errorf("stage: %w", err)
			}
		}
		if end {
			break
		}
	}
	if c.into != nil {
		mode := fs.FileMode(0o400)
		if executable {
			mode = 0o500
		}
		if err := c.into.Chmod(path, mode); err != nil {
			return nil, false, fmt.Errorf("stage: %w", err)
		}
	}
	return h.Sum(nil), executable, nil
}

// open opens a regular file that is no symlink and that nobody else may write.
func (c *copier) open(path string) (*os.File, fs.FileInfo, error) {
	before, err := c.from.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, refuseKind(c.name(path), before.Mode())
	}
	// A pipe in its place by now would hang an open that blocks.
	f, err := c.from.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular() || !os.SameFile(before, info):
		err = fmt.Errorf("%s: was replaced while it was read", c.name(path))
	case config.WritableByOthers(info):
		err = c.writable(path, info)
	default:
		return f, info, nil
	}
	_ = f.Close()
	return nil, nil, err
}

// write adds a chunk to a staged file.
//
// A program that is forked meanwhile has the open file too until it execs, and
// as long as anybody has a file open for writing nobody can run it (ETXTBSY):
// hence the lock that keeps forks away, for no longer than our own disk takes.
func (c *copier) write(path string, b []byte, first bool) error {
	flags := os.O_WRONLY | os.O_APPEND
	if first {
		flags |= os.O_CREATE | os.O_EXCL
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := c.into.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
