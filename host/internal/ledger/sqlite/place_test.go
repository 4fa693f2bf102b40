package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// A host whose data directory was deleted, or whose database was replaced, writes
// into nothing: it must find out, refuse, and end with an error that says so.
func TestLostDatabaseIsNoticed(t *testing.T) {
	for name, lose := range map[string]func(dir string) error{
		"data directory deleted": os.RemoveAll,
		"database deleted":       func(dir string) error { return os.Remove(filepath.Join(dir, File)) },
		"database replaced": func(dir string) error {
			other := filepath.Join(dir, "other")
			return errors.Join(os.WriteFile(other, nil, 0o600), os.Rename(other, filepath.Join(dir, File)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			s := open(t, dir)
			defer func() { _ = s.Close() }()
			_, chain := newChannel(t, s, "a")
			c := recalled(t, s, chain, "c")
			if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "kept"}}); err != nil {
				t.Fatal(err)
			}
			if err := lose(dir); err != nil {
				t.Fatal(err)
			}
			patient, cancel := context.WithTimeout(t.Context(), await.Limit)
			defer cancel()
			err := s.Serve(patient)
			if !errors.Is(err, ledger.ErrLost) || !strings.Contains(err.Error(), filepath.Join(dir, File)) {
				t.Errorf("the host ends with: %v", err)
			}
			if err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "lost"}}); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("a message into nothing: %v", err)
			}
			if err := s.Writable(); !errors.Is(err, ledger.ErrLost) {
				t.Errorf("ready: %v", err)
			}
		})
	}
}

// A write-ahead log that is deleted or replaced is noticed as well, and all that was
// stored is in the database then: the writer has the log open still.
func TestLostLogIsNoticed(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"log deleted": func(path string) error { return os.Remove(path + "-wal") },
		"log replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".other", nil, 0o600), os.Rename(path+".other", path+"-wal"))
		},
		"index deleted": func(path string) error { return os.Remove(path + "-shm") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			defer func() { _ = s.Close() }()
			_, chain := newChannel(t, s, "a")
			c := recalled(t, s, chain, "c")
			stored := 0
			store := func() error {
				err := commit(s, &ledger.Unit{Conversation: c, In: &ledger.Row{Text: "kept"}})
				if err == nil {
					stored++
				}
				return err
			}
			if err := store(); err != nil {
				t.Fatal(err)
			}
			if err := lose(filepath.Join(dir, File)); err != nil {
				t.Fatal(err)
			}
			await.Until(t, "messages are refused", func() bool { return store() != nil })
			patient, cancel := context.WithTimeout(t.Context(), await.Limit)
			defer cancel()
			if err := s.Serve(patient); !errors.Is(err, ledger.ErrLogLost) || errors.Is(err, ledger.ErrLost) || !strings.Contains(err.Error(), filepath.Join(dir, File)+"-") {
				t.Errorf("the host ends with: %v", err)
			}
			if err := s.Writable(); !errors.Is(err, ledger.ErrLogLost) {
				t.Errorf("ready: %v", err)
			}
			// What a host has that is killed now: the database alone.
			raw, err := os.ReadFile(filepath.Join(dir, File))
			if err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(t.TempDir(), File)
			if err := os.WriteFile(copied, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			d, err := openSQL(copied, "rwc", 1)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			found := 0
			if err := d.QueryRowContext(t.Context(), "SELECT count(*) FROM message").Scan(&found); err != nil || found != stored {
				t.Errorf("%d messages are there, %v, expected the %d that were stored", found, err, stored)
			}
		})
	}
}

// Who asks whether messages can be stored is told at once.
func TestLostDatabaseIsNotWritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, dir)
	defer func() { _ = s.Close() }()
	if err := s.Writable(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Writable(); !errors.Is(err, ledger.ErrLost) {
		t.Errorf("ready: %v", err)
	}
}

// Keys without a database are what is left of a host: an empty one must not take its
// place in silence.
func TestNoEmptyHostBesideKeys(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"missing": func(string) error { return nil },
		"empty":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"no tables": func(path string) error {
			d, err := openSQL(path, "rwc", 1, "journal_mode(WAL)")
			if err != nil {
				return err
			}
			_, err = d.Exec("PRAGMA user_version = 1")
			return errors.Join(err, d.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(os.WriteFile(filepath.Join(dir, "a.key"), []byte("k"), 0o600), make(filepath.Join(dir, File))); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), dir, Options{Keys: []string{"a.key", "b.key"}})
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, ledger.ErrLost) || !strings.Contains(err.Error(), "a.key") || strings.Contains(err.Error(), "b.key") || !strings.Contains(err.Error(), "pontoon restore") {
				t.Errorf("opened beside a key: %v", err)
			}
		})
	}
	dir := t.TempDir() // and with its database it goes on
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.key"), []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), dir, Options{Keys: []string{"a.key"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
}

// The lock holds although its file was removed.
func TestLockHoldsWithoutItsFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer func() { _ = s.Close() }()
	if err := os.Remove(filepath.Join(dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	second, err := Open(t.Context(), dir, Options{})
	if err == nil {
		_ = second.Close()
		t.Fatal("two hosts use one data directory")
	}
	if !strings.Contains(err.Error(), "in use by another host") {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_ = open(t, dir).Close()
}
