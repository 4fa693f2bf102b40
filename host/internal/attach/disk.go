package attach

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"
)

// maxJSON bounds the small files of this package.
const maxJSON = 64 << 10

// lstat describes a regular file under dir. A symlink is refused wherever in
// the name it is: an os.Root would follow one that stays inside.
func lstat(dir *os.Root, name string) (fs.FileInfo, error) {
	for i, c := range name {
		if c != '/' {
			continue
		}
		info, err := dir.Lstat(name[:i])
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s: found %s, expected a directory", name[:i], kindOf(info.Mode()))
		}
	}
	info, err := dir.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: found %s, expected a file", name, kindOf(info.Mode()))
	}
	return info, err
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symlink"
	case m.IsDir():
		return "a directory"
	case m.IsRegular():
		return "a file"
	}
	return "something special"
}

// openFile opens a regular file for reading, as lstat describes it.
func openFile(dir *os.Root, name string) (*os.File, fs.FileInfo, error) {
	before, err := lstat(dir, name)
	if err != nil {
		return nil, nil, err
	}
	// A pipe in its place by now would hang an open that blocks.
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = fmt.Errorf("%s: was replaced while it was opened", name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// readSmall reads a file of at most maxJSON bytes.
func readSmall(dir *os.Root, name string) ([]byte, error) {
	f, _, err := openFile(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxJSON+1))
	if err == nil && len(b) > maxJSON {
		err = fmt.Errorf("%s: found more than %d bytes", name, maxJSON)
	}
	return b, err
}

// writeNew writes all of r to a new file and waits until the disk has it. What
// a crash left at that name goes. After an error nothing is there.
func writeNew(dir *os.Root, name string, r io.Reader) (int64, error) {
	if err := remove(dir, name); err != nil {
		return 0, err
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return n, errors.Join(err, remove(dir, name))
	}
	return n, nil
}

// writeFile puts a small file in place at once: whole and on the disk, or not.
func writeFile(dir *os.Root, temp, name string, b []byte) error {
	if _, err := writeNew(dir, temp, strings.NewReader(string(b))); err != nil {
		return err
	}
	return rename(dir, temp, name)
}

// rename moves a file and waits until the disk knows. After an error from the
// move itself the file at temp is gone.
func rename(dir *os.Root, temp, name string) error {
	if err := dir.Rename(temp, name); err != nil {
		return errors.Join(err, remove(dir, temp))
	}
	return syncDir(dir, path.Dir(name))
}

// remove removes a file, if there is one.
func remove(dir *os.Root, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// makeDirs makes directories in turn; the one above each is there by then.
func makeDirs(dir *os.Root, names ...string) error {
	for _, name := range names {
		if err := makeDir(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// makeDir makes one directory that only the owner reads, or takes the one that
// is there and is no symlink.
func makeDir(dir *os.Root, name string) error {
	err := dir.Mkdir(name, 0o700)
	if err == nil {
		return syncDir(dir, path.Dir(name))
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := statDir(dir, name)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return dir.Chmod(name, 0o700)
	}
	return nil
}

// statDir describes a directory that is no symlink.
func statDir(dir *os.Root, name string) (fs.FileInfo, error) {
	info, err := dir.Lstat(name)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s: found %s, expected a directory", name, kindOf(info.Mode()))
	}
	return info, err
}

// syncDir waits until the disk knows the names in a directory. Windows can't
// be asked.
func syncDir(dir *os.Root, name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := dir.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
