package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The names of the master key in the environment, and of its file.
const (
	EnvKey     = "PONTOON_MASTER_KEY"
	EnvNewKey  = "PONTOON_MASTER_KEY_NEW" // that rotate-key changes to
	EnvKeyFile = "PONTOON_MASTER_KEY_FILE"
	FileName   = "master.key" // in the data directory
)

// Wanted is what a master key looks like.
const Wanted = "32 bytes as 64 hexadecimal digits or in base64 (openssl rand -hex 32 makes such a one)"

// maxFile bounds what is read of a key file.
const maxFile = 4 << 10

// Source is where a master key is.
type Source struct {
	Env  string // the key itself, of the environment; "" = it is in the file
	File string
}

// SourceIn is where the master key of a data directory is: what the environment
// holds counts before any file.
func SourceIn(data, file string, getenv func(string) string) Source {
	if file == "" {
		file = filepath.Join(data, FileName)
	}
	return Source{Env: getenv(EnvKey), File: file}
}

// String says where the key is, for messages.
func (s Source) String() string {
	if s.Env != "" {
		return "the environment (" + EnvKey + ")"
	}
	return s.File
}

// Read reads the key. That of a file that is not there wraps fs.ErrNotExist; no
// error holds what was found.
func (s Source) Read() (*Key, error) {
	if s.Env != "" {
		k, err := Parse(s.Env)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", EnvKey, err)
		}
		return k, nil
	}
	return ReadFile(s.File)
}

// Parse makes a key of what an operator wrote: hexadecimal digits or base64.
func Parse(text string) (*Key, error) {
	text = strings.TrimSpace(text)
	master, err := hex.DecodeString(text)
	if err != nil || len(master) != KeyBytes {
		plain := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "=")
		master, err = base64.RawStdEncoding.Strict().DecodeString(plain)
	}
	if err != nil || len(master) != KeyBytes {
		return nil, fmt.Errorf("found %d characters that are no master key, expected %s", len([]rune(text)), Wanted)
	}
	return NewKey(master)
}

// ReadFile reads a key file, which only its owner may read: one that others can
// read is refused, since who read it can't be known.
func ReadFile(path string) (*Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	if err := CheckMode(path, info); err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("read master key: %s: found over %d bytes, expected %s", path, maxFile, Wanted)
	}
	k, err := Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("read master key: %s: %w", path, err)
	}
	return k, nil
}

// CheckMode says if a key file is none, or others may read it.
func CheckMode(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, expected 0600, so that nobody else reads it: chmod 600 %s, and if others could, pontoon secret rotate-key", path, mode, path)
	}
	return nil
}

// Write puts the key into a new file that only its owner reads. When it returns
// the file is on the disk.
func (k *Key) Write(path string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write master key: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = fmt.Errorf("write master key: %w", errors.Join(err, os.Remove(path)))
		}
	}()
	if _, err := f.WriteString(hex.EncodeToString(k.master) + "\n"); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes what was made or renamed in a directory outlast a crash.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && runtime.GOOS != "windows" {
		return err
	}
	return nil
}
