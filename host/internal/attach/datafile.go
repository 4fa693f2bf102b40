package attach

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// ErrPath is the error of a file that may not be sent.
var ErrPath = errors.New("path is not of a file that may be sent")

// Copy keeps a file of the data directory as an attachment; see CheckPath. The
// other errors are those of Put.
func (s *Store) Copy(ctx context.Context, owner, name string, c Claim) (Object, error) {
	rel, err := s.dataFile(name)
	if err != nil {
		return Object{}, err
	}
	f, _, err := openFile(s.data, rel)
	if err != nil {
		return Object{}, fmt.Errorf("%w: found nothing that can be read, expected a file", ErrPath)
	}
	defer func() { _ = f.Close() }()
	if c.Name == "" {
		c.Name = path.Base(rel)
	}
	return s.Put(ctx, owner, f, c)
}

// CheckPath is ErrPath unless the path is that of a regular file below the data
// directory, through no symlink, and none of the host's own.
func (s *Store) CheckPath(name string) error {
	rel, err := s.dataFile(name)
	if err != nil {
		return err
	}
	if _, err := lstat(s.data, rel); err != nil {
		return fmt.Errorf("%w: found no regular file there", ErrPath)
	}
	return nil
}

// dataFile is the path within the data directory, with slashes.
func (s *Store) dataFile(name string) (string, error) {
	wrong := fmt.Errorf("%w: expected the absolute path of a file below the data directory that is none of the host's own", ErrPath)
	if !filepath.IsAbs(name) || filepath.Clean(name) != name {
		return "", wrong
	}
	data, err := filepath.Abs(s.data.Name())
	if err != nil {
		return "", fmt.Errorf("find data directory: %w", err)
	}
	rel, err := filepath.Rel(data, name)
	if err != nil || !filepath.IsLocal(rel) {
		if real, rerr := filepath.EvalSymlinks(data); rerr == nil { // the way to the data directory may be a link
			rel, err = filepath.Rel(real, name)
		}
	}
	rel = filepath.ToSlash(rel)
	if err != nil || !filepath.IsLocal(filepath.FromSlash(rel)) || ofHost(rel) {
		return "", wrong
	}
	return rel, nil
}

// ofHost reports what in the data directory is the host's own: databases, keys,
// locks, attachments and plugins that run. What is hidden counts as well.
func ofHost(rel string) bool {
	top, _, deeper := strings.Cut(rel, "/")
	switch {
	case strings.HasPrefix(top, "."):
		return true
	case deeper:
		return top == Dir || top == "run"
	}
	return strings.HasPrefix(top, "pontoon") || strings.HasSuffix(top, ".key") || strings.HasPrefix(top, KeyFile)
}
