// Package backup writes all that a host keeps into one file, and puts it back.
// The file is a gzipped tar: pontoon.db, a consistent copy, and the attachments.
// Keys are not in it: whoever finds a backup must not become the operator.
package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
)

// Engine is what a backup needs of the engine that keeps the database.
type Engine interface {
	// Files are the names of the database's files in a data directory. The first is
	// the database, the others are of no use without it.
	Files() []string
	// Lock keeps every host out of a data directory until it is released.
	Lock(dir string) (release func() error, err error)
	// Snapshot copies a data directory's database to a new file, also while a host
	// uses it.
	Snapshot(ctx context.Context, dir, file string) error
	// Admit checks that a file is a whole database, and ends all sessions in it.
	Admit(ctx context.Context, file string) error
}

// Database is the database's name in a backup, whatever its engine calls it.
const Database = "pontoon.db"

// database is the file of a data directory's database.
func database(e Engine, dir string) string { return filepath.Join(dir, e.Files()[0]) }

// Write makes a backup of a data directory, also while a host uses it. The file
// must not exist yet; it is there whole, or not at all.
func Write(ctx context.Context, e Engine, dir, file string) (err error) {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s exists: remove it, or give another name", file)
	}
	temp, err := os.MkdirTemp(filepath.Dir(file), ".pontoon-backup-")
	if err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	// The database first: an attachment is on the disk before a message names it.
	snapshot := filepath.Join(temp, Database)
	if err := e.Snapshot(ctx, dir, snapshot); err != nil {
		return err
	}
	made := filepath.Join(temp, "backup")
	if err := pack(ctx, made, snapshot, filepath.Join(dir, attach.Dir)); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	if err := os.Rename(made, file); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	note(dir, file)
	return nil
}

func pack(ctx context.Context, to, snapshot, attachments string) (err error) {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := gzip.NewWriter(f)
	t := tar.NewWriter(z)
	if err := add(t, snapshot, Database); err != nil {
		return err
	}
	err = filepath.WalkDir(attachments, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile, or there are none
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		rel, err := filepath.Rel(attachments, path)
		name := attach.Dir + "/" + filepath.ToSlash(rel)
		if err != nil || !d.Type().IsRegular() || !isAttachment(name) {
			return err
		}
		return add(t, path, name)
	})
	return errors.Join(err, t.Close(), z.Close(), f.Sync())
}

func add(t *tar.Writer, path, name string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()}); err != nil {
		return err
	}
	_, err = io.CopyN(t, f, info.Size())
	return err
}

var attachmentName = regexp.MustCompile(`^` + attach.Dir + `/` + attach.Bucket + `/agent-inputs/[A-Za-z0-9_-]{1,64}/[0-9a-f-]{36}\.[a-z0-9]{1,8}(\.json)?$`)

// isAttachment reports the files of attachments that are whole.
func isAttachment(name string) bool { return attachmentName.MatchString(name) }

// Restore puts a backup into a data directory that no host uses. If there is a
// database already it is moved aside; its new name is returned. What the backup
// holds is checked before anything is changed. A backup that a host made before
// a migration is the database alone: the attachments stay. Nobody is logged in
// afterwards: sessions that ended since the backup must not come back.
func Restore(ctx context.Context, e Engine, file, dir string) (aside string, err error) {
	unlock, err := e.Lock(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	temp, err := os.MkdirTemp(dir, ".restore-")
	if err != nil {
		return "", fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	whole, err := unpack(ctx, file, temp)
	if err != nil {
		return "", fmt.Errorf("restore %s: %w", file, err)
	}
	if err := e.Admit(ctx, filepath.Join(temp, Database)); err != nil {
		return "", fmt.Errorf("restore %s: %w", file, err)
	}
	return swap(e, temp, dir, whole)
}

// magic is how a SQLite database begins.
const magic = "SQLite format 3\x00"

// unpack writes what the backup holds into dir, and nothing else anywhere else.
// whole is false for a database alone.
func unpack(ctx context.Context, file, dir string) (whole bool, err error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReader(f)
	if begin, err := r.Peek(len(magic)); err == nil && string(begin) == magic {
		return false, write(filepath.Join(dir, Database), r)
	}
	return true, unpackAll(ctx, r, dir)
}

func unpackAll(ctx context.Context, r io.Reader, dir string) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("is no backup: %w", err)
	}
	found := false
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF) && found:
			return end(z)
		case errors.Is(err, io.EOF):
			return fmt.Errorf("is no backup: found no %s in it", Database)
		case err != nil:
			return fmt.Errorf("is broken: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		case h.Typeflag != tar.TypeReg || h.Name != Database && !isAttachment(h.Name):
			return fmt.Errorf("found %.80q, expected %s and attachments", h.Name, Database)
		}
		found = found || h.Name == Database
		if err := write(filepath.Join(dir, filepath.FromSlash(h.Name)), t); err != nil {
			return err
		}
	}
}

// maxPadding is how much may follow the end of an archive; tar rounds up to 10 KiB.
const maxPadding = 64 << 10

// end reads what is behind the archive's end: the sum of all that was compressed
// comes last, and is compared only by who reads to there.
func end(z *gzip.Reader) error {
	switch n, err := io.CopyN(io.Discard, z, maxPadding+1); {
	case n > maxPadding:
		return errors.New("is broken: it goes on behind its end")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("is broken: %w", err)
	}
	return nil
}

func write(path string, r io.Reader) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, r); err != nil {
		return fmt.Errorf("is broken: %w", err)
	}
	return f.Sync()
}

// asidePrefix begins the name of where a restore moves what was there.
const asidePrefix = "before-restore-"

// CutOff is an error if a restore was cut off in dir between moving the old
// database away and putting the new one in its place: a host that began there
// would begin with nothing.
func CutOff(e Engine, dir string) error {
	if _, err := os.Lstat(database(e, dir)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	aside, err := fs.Glob(os.DirFS(dir), asidePrefix+"*")
	if err != nil || len(aside) == 0 {
		return err
	}
	last := filepath.Join(dir, aside[len(aside)-1])
	return fmt.Errorf("a restore was cut off: found no %s in %s, expected one beside %s: restore the backup again, or move the files back from there (or remove it to begin with nothing)",
		e.Files()[0], dir, last)
}

// swap puts what was unpacked in the place of what is there.
func swap(e Engine, temp, dir string, whole bool) (aside string, err error) {
	there := slices.Clone(e.Files())
	if whole {
		there = append(there, attach.Dir)
	}
	for _, name := range there {
		old := filepath.Join(dir, name)
		if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if aside == "" {
			if aside, err = os.MkdirTemp(dir, asidePrefix); err != nil {
				return "", fmt.Errorf("restore: %w", err)
			}
		}
		if err := os.Rename(old, filepath.Join(aside, name)); err != nil {
			return aside, fmt.Errorf("restore: %w", err)
		}
	}
	for _, put := range [][2]string{{attach.Dir, attach.Dir}, {Database, e.Files()[0]}} { // the database last: see CutOff
		made := filepath.Join(temp, put[0])
		if _, err := os.Lstat(made); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Rename(made, filepath.Join(dir, put[1])); err != nil {
			return aside, fmt.Errorf("restore: %w (what was there is in %s)", err, strings.TrimSuffix(aside, "/"))
		}
	}
	return aside, nil
}
