package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/schema"
)

// spoiled is a data directory whose database was closed, and has a page since that is
// none.
func spoiled(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir)
	_, chain := newChannel(t, s, "a")
	for i := range 200 {
		if err := commit(s, &ledger.Unit{Conversation: recalled(t, s, chain, fmt.Sprint("c", i)), In: &ledger.Row{State: ledger.Handled, Text: fmt.Sprintf("needle %03d of a row that is long enough to fill pages", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() bool { n, _, err := s.Behind(t.Context()); return err == nil && n == 0 }) // else the index finds it
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, File)
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(all, []byte("needle 100")) / pageSpace * pageSpace
	for i := range pageSpace {
		all[at+i] = byte(i * 7)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// hasty has hardly any time for its look before the start.
var hasty = Options{brief: time.Nanosecond}

// A start after a good end does not wait until a large database is examined: damage ends
// the host a little later, and the next start waits.
func TestDamageIsFoundBesideTheWork(t *testing.T) {
	dir := spoiled(t)
	s, err := Open(t.Context(), dir, hasty)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Serve(ctx); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("serve: %v, want %v", err, ledger.ErrCorrupt)
	}
	if err := s.Writable(); !errors.Is(err, ledger.ErrCorrupt) || !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("writable: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	refuses(t, dir)
}

// refuses wants a start to find the damage before it does anything else.
func refuses(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(t.Context(), dir, hasty)
	if err == nil {
		_ = s.Close()
	}
	if !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("open: %v, want %v", err, ledger.ErrCorrupt)
	}
}

// After a crash, and before the schema is changed, a start waits for the examination.
func TestDamageIsFoundBeforeTheStart(t *testing.T) {
	t.Run("after a crash", func(t *testing.T) {
		dir := spoiled(t)
		if err := os.WriteFile(filepath.Join(dir, File+"-wal"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refuses(t, dir)
	})
	t.Run("of an older schema", func(t *testing.T) {
		dir := spoiled(t)
		d, err := openSQL(filepath.Join(dir, File), "rw", 1)
		if err != nil {
			t.Fatal(err)
		}
		p, err := goose.NewProvider(goose.DialectSQLite3, d, schema.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Down(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		refuses(t, dir)
	})
}

// A database that is whole is examined beside the work, and nobody sees anything of it;
// a host that ends meanwhile does not wait for it.
func TestWholeIsExaminedBesideTheWork(t *testing.T) {
	dir := t.TempDir()
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s, err := Open(t.Context(), dir, hasty)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Writable(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !closed(filepath.Join(dir, File)) {
			t.Error("a log is left, as after a crash")
		}
	}
}
