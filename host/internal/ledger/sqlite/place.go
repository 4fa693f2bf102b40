package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// lockFile is held while a host uses a data directory.
const lockFile = "pontoon.lock"

// Lock takes the data directory for whoever is not a host; release it. It is
// made if need be. The error says if a host uses it.
func Lock(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	inUse := func() error { return fmt.Errorf("data directory %s is in use by another host", dir) }
	l := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
	held, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("data directory %s is not writable: %w", dir, err)
	}
	if !held {
		return nil, inUse()
	}
	// The directory too: the file may have been removed while a host holds it.
	unlock, held, err := lockDirectory(dir)
	if err == nil && !held {
		err = inUse()
	}
	if err != nil {
		return nil, errors.Join(err, l.Unlock())
	}
	return func() error { return errors.Join(unlock(), l.Unlock()) }, nil
}

// fresh refuses to begin with an empty database where a host was before, of which
// keys are left.
func fresh(path string, keys []string) error {
	var left []string
	for _, name := range keys {
		if _, err := os.Lstat(filepath.Join(filepath.Dir(path), name)); err == nil {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s is missing or empty beside keys of a host (%s): restore a backup (pontoon restore FILE --data %s), or put the database back; to begin with an empty host, move the keys away",
		ledger.ErrLost, path, strings.Join(left, ", "), filepath.Dir(path))
}

// CheckThere refuses a data directory whose database is missing or empty beside keys
// of a host, with ErrLost, or is no file. Open does so too.
func CheckThere(dir string, keys []string) error {
	path := filepath.Join(dir, File)
	empty, err := missing(path)
	if err != nil || !empty {
		return err
	}
	return fresh(path, keys)
}

// missing reports that there is no database, or that its file is empty.
func missing(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // who makes the directory says what is wrong
		return true, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", path)
	}
	if err != nil {
		return false, fmt.Errorf("open database: %w", err)
	}
	return info.Size() == 0, nil
}

// lost is an error if the database is not any more where it was opened: the data
// directory was deleted, or another file is in its place.
func (h *health) lost() error {
	info, err := os.Stat(h.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s was deleted while the host ran: start it again once the directory is back, or after pontoon restore FILE --data %s", ledger.ErrLost, h.path, h.dir)
	case err != nil:
		return nil //nolint:nilerr // not known: the next commit tells
	case !os.SameFile(info, h.file):
		return fmt.Errorf("%w: %s was replaced while the host ran: start it again", ledger.ErrLost, h.path)
	}
	for _, b := range h.beside {
		info, err := os.Stat(b.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, b.file) {
			return fmt.Errorf("%w: %s was deleted or replaced while the host ran: start it again", ledger.ErrLogLost, b.path)
		}
	}
	return nil
}

// beside is a file that SQLite keeps beside the database, as long as anybody has it
// open.
type beside struct {
	path string
	file os.FileInfo
}

// keepBeside remembers the write-ahead log and its index. All connections of a host
// are to use the same: who opens the database anew makes a log of its own if it is
// not there, and nobody would find what was committed to the one before.
func (h *health) keepBeside() error {
	for _, end := range []string{"-wal", "-shm"} {
		info, err := os.Stat(h.path + end)
		if err != nil {
			return fmt.Errorf("find the write-ahead log: %w", err)
		}
		h.beside = append(h.beside, beside{h.path + end, info})
	}
	return nil
}

// watch ends the writer for good if the database is not there any more. It is run
// within a job, which is followed by saveLog.
func (w *writer) watch() error {
	if w.broken != nil {
		return w.broken
	}
	err := w.lost()
	if err == nil {
		return nil
	}
	w.broken = fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	if w.toSave = errors.Is(err, ledger.ErrLogLost); !w.toSave {
		w.failed <- w.broken
	}
	return w.broken
}

// saveLog moves a write-ahead log that was deleted into the database: the writer has
// it open still, and nothing that was stored is to be lost. No transaction may be
// open.
func (w *writer) saveLog() {
	w.toSave = false
	if err := w.db.checkpoint(truncate); err != nil {
		w.broken = fmt.Errorf("%w: %w, and what the log holds could not be moved into the database: %w", ledger.ErrLost, w.broken, err)
	}
	w.failed <- w.broken
}
