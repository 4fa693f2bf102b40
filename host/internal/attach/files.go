package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ErrPath is the error of a file that may not be sent by its path.
var ErrPath = errors.New("path is not of a file that may be sent")

// shelf is a directory whose files may be sent by their paths.
type shelf struct {
	names []string // absolute and clean: as the operator said it, and without symlinks
	root  *os.Root
}

// openShelves opens the directories of Options.Files. One in the data directory
// is refused.
func (s *Store) openShelves(dirs []string) error {
	for _, dir := range dirs {
		sh, err := s.openShelf(dir)
		if err != nil {
			return fmt.Errorf("directory of files that may be sent (--files): %w", err)
		}
		s.shelves = append(s.shelves, sh)
	}
	return nil
}

func (s *Store) openShelf(dir string) (shelf, error) {
	named, err := filepath.Abs(dir)
	if err != nil {
		return shelf{}, err
	}
	resolved, err := filepath.EvalSymlinks(named)
	if err != nil {
		return shelf{}, err
	}
	data, err := s.data.Stat(".")
	if err != nil {
		return shelf{}, err
	}
	for up := resolved; ; up = filepath.Dir(up) {
		if info, err := os.Stat(up); err == nil && os.SameFile(info, data) {
			return shelf{}, fmt.Errorf("%s: found a directory in the data directory, expected one outside of it", dir)
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	root, err := os.OpenRoot(resolved)
	if err != nil {
		return shelf{}, err
	}
	return shelf{slices.Compact([]string{named, resolved}), root}, nil
}

// Copy keeps a file as an attachment if CheckPath allows its path. The other
// errors are those of Put.
func (s *Store) Copy(ctx context.Context, owner, name string, c Claim) (Object, error) {
	f, err := s.openPath(name)
	if err != nil {
		return Object{}, err
	}
	defer func() { _ = f.Close() }()
	if c.Name == "" {
		c.Name = filepath.Base(name)
	}
	return s.Put(ctx, owner, f, c)
}

// CheckPath is ErrPath unless the path is that of a regular file in one of
// Options.Files: reached through no symlink, with one name, not hidden, no larger than
// Options.MaxBytes, and not among Options.Private or in the data directory.
func (s *Store) CheckPath(name string) error {
	f, err := s.openPath(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// MayName is CheckPath without a look at the disk: it reports whether the path
// is in one of Options.Files.
func (s *Store) MayName(name string) bool {
	_, _, err := s.shelved(name)
	return err == nil
}

// openPath opens the file if it may be sent. What is outside of Options.Files
// is refused before the disk is looked at, so that the answer does not tell
// what there is.
func (s *Store) openPath(name string) (*os.File, error) {
	sh, rel, err := s.shelved(name)
	if err != nil {
		return nil, err
	}
	if err := s.reachable(sh, rel); err != nil {
		return nil, err
	}
	f, info, err := openFile(sh.root, rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("found nothing there, expected a file")
	case err != nil:
		err = errors.New("found nothing that can be read, expected a regular file, through no symlink")
	case links(info) > 1:
		err = errors.New("found a file with several names (hard links), expected one with one name: it could be another's")
	case info.Size() > s.max:
		err = fmt.Errorf("found %d bytes, expected at most %d", info.Size(), s.max)
	case s.isPrivate(info):
		err = errors.New("found one of the host's own files, expected another")
	default:
		return f, nil
	}
	if f != nil {
		_ = f.Close()
	}
	return nil, fmt.Errorf("%w: %w", ErrPath, err)
}

// shelved finds the directory that the file is in, and its path there with
// slashes.
func (s *Store) shelved(name string) (shelf, string, error) {
	switch {
	case strings.HasPrefix(strings.ToLower(name), "file:"):
		return shelf{}, "", fmt.Errorf("%w: found a file url, expected an http or https url", ErrPath)
	case len(s.shelves) == 0:
		return shelf{}, "", fmt.Errorf("%w: this host sends no file by its path, expected an upload or a url: the operator may name directories with pontoon serve --files DIR", ErrPath)
	case !filepath.IsAbs(name) || filepath.Clean(name) != name:
		return shelf{}, "", fmt.Errorf("%w: found no plain path, expected an absolute one in a directory that the operator named with pontoon serve --files DIR", ErrPath)
	}
	for _, sh := range s.shelves {
		for _, dir := range sh.names {
			rel, err := filepath.Rel(dir, name)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			if rel = filepath.ToSlash(rel); rel[0] == '.' || strings.Contains(rel, "/.") {
				return shelf{}, "", fmt.Errorf("%w: found a hidden name, expected none that begins with a dot", ErrPath)
			}
			return sh, rel, nil
		}
	}
	return shelf{}, "", fmt.Errorf("%w: found one in another directory, expected one that the operator named with pontoon serve --files DIR", ErrPath)
}

// reachable looks whether a directory on the way to the file is the host's own:
// the data directory may lie in one that is named.
func (s *Store) reachable(sh shelf, rel string) error {
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if info, err := sh.root.Lstat(dir); err == nil && s.isPrivate(info) {
			return fmt.Errorf("%w: found one of the host's own directories, expected another", ErrPath)
		}
	}
	return nil
}

// isPrivate reports the data directory and what else is the host's own.
func (s *Store) isPrivate(info fs.FileInfo) bool {
	if data, err := s.data.Stat("."); err != nil || os.SameFile(info, data) {
		return true
	}
	return slices.ContainsFunc(s.private, func(name string) bool {
		beside, _ := filepath.Glob(name + ".*") // keys that were replaced, and new ones
		return slices.ContainsFunc(append(beside, name), func(name string) bool {
			own, err := os.Stat(name)
			return err == nil && os.SameFile(info, own)
		})
	})
}
