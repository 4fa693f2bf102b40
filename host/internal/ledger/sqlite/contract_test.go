package sqlite

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger/ledgertest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
)

func TestContract(t *testing.T) {
	ledgertest.Run(t, func(t testing.TB) ledgertest.Kept {
		dir := t.TempDir()
		return ledgertest.Kept{
			Open: func(t testing.TB) ledgertest.Engine {
				s, err := Open(t.Context(), blank.Dir(t, dir), Options{BusyTimeout: 50 * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Kill: func(t testing.TB, e ledgertest.Engine) {
				left := t.TempDir() // as the files are now, the log beside them
				for _, name := range []string{File, File + "-wal"} {
					b, err := os.ReadFile(filepath.Join(dir, name))
					if err == nil {
						err = os.WriteFile(filepath.Join(left, name), b, 0o600)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if err := e.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
				dir = left
			},
			Refuse: func(t testing.TB) (resume func()) {
				other, err := sql.Open("sqlite", filepath.Join(dir, File)+"?_pragma=busy_timeout(10000)")
				if err != nil {
					t.Fatal(err)
				}
				other.SetMaxOpenConns(1)
				if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
					t.Fatal(err)
				}
				return func() {
					if err := other.Close(); err != nil { // which rolls back
						t.Error(err)
					}
				}
			},
		}
	})
}
