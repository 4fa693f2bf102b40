// Package blank has an empty database for tests, which open a store of their own
// each: to migrate took half of their time.
package blank

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver

	"github.com/pontoon-bridge/pontoon/schema"
)

// test is what testing's and rapid's tests have in common.
type test interface {
	Helper()
	Fatal(args ...any)
}

// Dir puts the database of a host that never ran into dir if there is nothing in it
// yet, and returns dir.
func Dir(t test, dir string) string {
	t.Helper()
	if there, err := os.ReadDir(dir); err != nil || len(there) > 0 {
		return dir
	}
	database, err := migrated()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pontoon.db"), database, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// migrated makes the database once a process.
var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "blank")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "x.db")
	d, err := sql.Open("sqlite", file+"?_pragma=synchronous(OFF)&_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	d.SetMaxOpenConns(1)
	p, err := goose.NewProvider(goose.DialectSQLite3, d, schema.SQLite)
	if err != nil {
		return nil, err
	}
	if _, err := p.Up(context.Background()); err != nil {
		return nil, err
	}
	if err := d.Close(); err != nil { // which moves the log into the file
		return nil, err
	}
	return os.ReadFile(file)
})
