package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Offline is what is done with databases by who opens no store, such as package
// backup.
type Offline struct{}

// Files are the names of the database's files in a data directory: the database,
// and what it keeps beside it while it is open, or was not closed.
func (Offline) Files() []string { return []string{File, File + "-wal", File + "-shm", File + openMark} }

// Lock is the function Lock.
func (Offline) Lock(dir string) (release func() error, err error) { return Lock(dir) }

// Snapshot writes a consistent copy of the database in dir to a new file, also
// while a host uses it.
func (Offline) Snapshot(ctx context.Context, dir, file string) error {
	path := filepath.Join(dir, File)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	d, err := openSQL(path, "ro", 1, "busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if _, err := d.ExecContext(ctx, "VACUUM INTO ?", file); err != nil {
		return errors.Join(fmt.Errorf("copy database: %w", err), os.Remove(file))
	}
	return os.Chmod(file, 0o600)
}

// examine runs one of SQLite's checks.
func examine(ctx context.Context, d *sql.DB, pragma string) error {
	var found string
	err := d.QueryRowContext(ctx, "PRAGMA "+pragma+"(1)").Scan(&found)
	switch {
	case fatality(err) != nil:
		return fmt.Errorf("%w: %w", fatality(err), err)
	case err != nil:
		return fmt.Errorf("database can't be read: %w", err)
	case found != "ok":
		return fmt.Errorf("%w: %s", ledger.ErrCorrupt, strings.TrimSpace(found))
	}
	return nil
}

// Admit reads all of a database file that no host uses and says what is wrong with
// it: nil if it is whole and of a schema that this program knows. Then it ends all
// sessions in it.
func (Offline) Admit(ctx context.Context, path string) error {
	if err := check(ctx, path); err != nil {
		return err
	}
	return endSessions(ctx, path)
}

func check(ctx context.Context, path string) error {
	d, err := openSQL(path, "ro", 1, "query_only(1)")
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := examine(ctx, d, "integrity_check"); err != nil {
		return err
	}
	have, newest, err := schemas(ctx, d)
	if err != nil {
		return err
	}
	if have > newest {
		return fmt.Errorf("database has schema %d, this program knows up to %d", have, newest)
	}
	return nil
}

func endSessions(ctx context.Context, path string) error {
	d, err := openSQL(path, "rw", 1)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if there, err := has(ctx, d, "session"); err != nil || !there { // of an older schema
		return err
	}
	if _, err := d.ExecContext(ctx, "DELETE FROM session"); err != nil {
		return fmt.Errorf("end sessions: %w", err)
	}
	return nil
}
